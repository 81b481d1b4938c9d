package git

// Limit sets how many bytes make the scratch full.
func (s *Scratch) Limit(bytes int64) { s.most = bytes }
