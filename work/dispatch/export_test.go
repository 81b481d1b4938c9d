package dispatch

// SetStep has f called after each step that survives a crash.
func SetStep(f func()) { step = f }
