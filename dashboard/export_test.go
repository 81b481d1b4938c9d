package dashboard

// Due is how many keys wait for the browser that has the most of them.
func (s *Server) Due() (n int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.hub.clients {
		n = max(n, len(c.due))
	}
	return n
}
