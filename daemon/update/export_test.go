package update

// SetStep has f called between two durable steps.
func SetStep(f func(name string)) { step = f }
