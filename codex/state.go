package codex

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
)

const stateDir = "state/codex"

// StateFile returns the path of an agent's state, below the home.
func StateFile(id agent.ID) string { return stateDir + "/" + string(id) + ".json" }

// A State is state/codex/<agent>.json.
type State struct {
	Thread string `json:"thread_id"`
	Model  string `json:"model,omitempty"` // the settings with which the thread was last opened
	// Started is set when the thread has accepted its first text. Before that Codex may
	// not have it on disk, and it has not seen the startup text.
	Started bool `json:"started,omitempty"`
	// Message is the id of the last message that was submitted to the thread, or
	// was about to be.
	Message string `json:"message,omitempty"`
	// Keep is a message held by a version before the courier. It is moved to the ledger
	// of what the agent owes, and is nil from then on.
	Keep *kept `json:"keep,omitempty"`
}

type kept struct {
	Envelope envelope.Envelope `json:"envelope"`
}

// maxState is far more than a state needs, in bytes; it may contain a message.
const maxState = 8 << 20

// loadState reads the agent's state, or returns the zero State if there is none. An
// invalid file is moved aside, and aside is its new path below the home.
func loadState(home home.Dir, id agent.ID) (s State, aside string, err error) {
	file := StateFile(id)
	data, err := home.ReadFile(file, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, "", nil
	}
	if err != nil {
		return State{}, "", fmt.Errorf("%s: %w", id, err)
	}
	if err := json.Unmarshal(data, &s); err == nil && s.Thread != "" {
		return s, "", nil
	}
	aside = file + ".bad-" + strconv.FormatInt(time.Now().UnixMilli(), 10)
	if err := home.WriteFile(aside, data, false); err != nil {
		return State{}, "", fmt.Errorf("%s: set %s aside: %w", id, file, err)
	}
	return State{}, aside, home.Remove(file)
}

// save replaces the agent's state. With sync it survives a loss of power, so that the
// agent keeps its thread and no message loses its answer.
func (s State) save(home home.Dir, id agent.ID, sync bool) error {
	if err := home.Save(StateFile(id), s, sync); err != nil {
		return fmt.Errorf("%s: save its thread: %w", id, err)
	}
	return nil
}

// Message returns the id of the message on whose turn the agent works, "" if that is
// unknown: a person may have typed at its pane.
func (r *Runtime) Message(id agent.ID, _ string) string {
	return courier.ReadLedger(r.Home, id).InHand()
}

// Conversation returns the thread that a start of the agent continues, "" if none has
// accepted a text yet. It changes nothing.
func Conversation(h home.Dir, id agent.ID) (string, error) {
	s, err := home.Load[State](h, StateFile(id))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !s.Started {
		return "", nil
	}
	return s.Thread, err
}
