package mcp

// Scale makes everything that the mailman waits for shorter by so much.
func (m *Mailman) Scale(by int) *Mailman {
	m.scale = by
	return m
}
