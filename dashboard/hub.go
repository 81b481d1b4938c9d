package dashboard

// A hub brings what has changed to the browsers that follow.
type hub struct{}

func newHub(o Options, approvals func() ([]Approval, error)) *hub { return &hub{} }

func (h *hub) close() {}
