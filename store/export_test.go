package store

// OnCopyStep has f called before each step of a copy.
func OnCopyStep(f func(name string)) { copyStep = f }
