package codex

// PID is the number of a server's process.
func (s *Server) PID() int { return s.peer.t.(*process).cmd.Process.Pid }

// A Feed hands events to subscribers.
type Feed struct{ f feed }

func (f *Feed) Emit(e Event)                      { f.f.emit(e) }
func (f *Feed) Subscribe() (<-chan Event, func()) { return f.f.subscribe() }

// Overrides is what a server is told of a thread's configuration.
func Overrides(config map[string]any) []string { return overrides(config) }
