package away

// SetStep has f called between the ref and the record.
func SetStep(f func()) { step = f }
