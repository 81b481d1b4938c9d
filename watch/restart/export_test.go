package restart

// SetStep sets what is called between two durable steps.
func SetStep(f func(name string)) { step = f }
