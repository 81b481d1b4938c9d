package dashboard

// pages adds the pages and their files. They read through s.records,
// s.o.Agents, s.approvals and s.pane, as the API does.
func (s *Server) pages(r *routes) {}
