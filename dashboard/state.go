package dashboard

import (
	"encoding/json"
	"fmt"
	"sync"

	"netsky/agent"
)

// stateFile holds what outlives a server. It holds no secret.
const stateFile = "state/dashboard.json"

// state is what is in that file. One that is missing or broken is as none: a
// browser must sign in again, and a page finds no server at its old address.
type state struct {
	home agent.Home

	mu   sync.Mutex // guards what follows
	kept kept
}

type kept struct {
	Port int `json:"port,omitempty"` // the last that was taken for port 0
}

func loadState(home agent.Home) *state {
	s := &state{home: home}
	if data, err := home.ReadFile(stateFile, 1<<20); err == nil && json.Unmarshal(data, &s.kept) != nil {
		s.kept = kept{}
	}
	return s
}

// save writes the file. The caller holds mu.
func (s *state) save() error {
	data, err := json.MarshalIndent(s.kept, "", "  ")
	if err == nil {
		err = s.home.WriteFile(stateFile, append(data, '\n'), false)
	}
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	return nil
}

func (s *state) lastPort() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.Port < 0 || s.kept.Port > 65535 {
		return 0
	}
	return s.kept.Port
}

func (s *state) keepPort(port int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Port = port
	return s.save()
}
