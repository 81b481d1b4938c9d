package courier

// SetStep has f called between any two durable steps of all couriers. It is to be
// called before the first one runs.
func SetStep(f func(name string)) { step = f }
