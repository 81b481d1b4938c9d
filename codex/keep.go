package codex

import "encoding/json"

// Kept is the Keep of the last message that was handed to Deliver and never
// settled, maybe by another process; nil if there is none.
func (s *Session) Kept() json.RawMessage { return s.state.Keep }

// Settled says that nothing is left to be done about the last message. When
// that is lost by a crash, Kept brings it back.
func (s *Session) Settled() error {
	if s.state.Keep == nil {
		return nil
	}
	s.state.Keep = nil
	return s.state.save(s.o.Home, s.o.Agent, false)
}

// forget makes the next Open begin a thread; what is kept goes to that one.
func (s *Session) forget() { s.state = State{Keep: s.state.Keep} }
