package live

// Due returns how many keys wait for the browser that has the most of them.
func (b *Broadcaster) Due() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.clients {
		n = max(n, len(c.due))
	}
	return n
}
