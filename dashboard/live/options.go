package live

import (
	"context"
	"log/slog"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/store"
)

// Options configure a Broadcaster. All but Panes and the limits are required.
type Options struct {
	// Records returns the database, or why it is unavailable at the moment.
	Records   func() (Reader, error)
	Agents    Agents
	Approvals func() ([]Approval, error)
	Panes     Panes // nil: panes are not shown
	Version   string
	Log       *slog.Logger
	Now       func() time.Time

	MaxStreams int           // browsers that follow at the same time; 0 is 64
	Poll       time.Duration // how often records and agents are read while a browser follows; 0 is 250 ms
}

const (
	defaultStreams = 64
	defaultPoll    = 250 * time.Millisecond

	readLimit = 5 * time.Second // for one read of the records, the agents or a round of panes
)

// Reader reads the records. *store.DB implements it.
type Reader interface {
	Logs(context.Context, store.LogFilter) (store.List[store.Log], error)
	DataVersion(context.Context) (int64, error)
}

// Agents returns the agents' current states, in list order. It is called while a
// browser follows, up to four times a second.
type Agents interface {
	Agents(context.Context) ([]Agent, error)
}

// An Agent is the state of one agent. If anything in it changes, it is sent to the
// browsers.
type Agent struct {
	ID       agent.ID    `json:"id"`
	State    agent.State `json:"state"`
	Since    store.Time  `json:"since,omitzero"`
	Evidence string      `json:"evidence"` // what the state was derived from
	Detail   string      `json:"detail,omitempty"`
	Runtime  string      `json:"runtime,omitempty"`
	Model    string      `json:"model,omitempty"`
	Dir      string      `json:"dir,omitempty"`
	Start    string      `json:"start,omitempty"` // the id of its session in the records
	PID      int         `json:"pid,omitempty"`
	Wanted   bool        `json:"wanted"`
	Inbox    int         `json:"inbox"` // envelopes; -1 if they can't be counted
	Claimed  int         `json:"claimed"`
	Held     string      `json:"held,omitempty"` // how many messages wait for its account, in words
	Outbox   int         `json:"outbox"`
	Poison   int         `json:"poison"`
	Restart  string      `json:"restart,omitempty"` // of one that has died: when it is started again, or why not
	Fault    agent.Fault `json:"fault,omitzero"`    // what keeps its model from answering
	// Decidable reports that `netsky approve` can answer the dialog at which it waits.
	Decidable bool `json:"decidable,omitempty"`
	Deaf      bool `json:"deaf,omitempty"` // it waits for a receiver, not at a dialog
}

// Source returns what the list of what needs the owner is derived from, as [attention.Of] has it.
func (a Agent) Source() attention.Agent {
	return attention.Agent{
		ID: a.ID, State: a.State, Since: a.Since, Start: a.Start, Runtime: a.Runtime, Detail: a.Detail, Evidence: a.Evidence,
		Restart: a.Restart, Fault: a.Fault, Wanted: a.Wanted, Poison: a.Poison,
		Asks: a.State == agent.Waiting && !a.Deaf, Decidable: a.Decidable, Deaf: a.Deaf,
	}
}

// Waiting returns how many messages wait for the agent, beside those that are held.
func (a Agent) Waiting() int {
	n, _ := a.State.Backlog(a.Inbox, a.Claimed)
	return n
}

// Working returns how many messages it works on.
func (a Agent) Working() int {
	_, n := a.State.Backlog(a.Inbox, a.Claimed)
	return n
}

// An Approval is a question that waits for the owner, and the commands that answer it.
type Approval struct {
	Code   string     `json:"code"`
	Agent  agent.ID   `json:"agent"`
	Start  string     `json:"start,omitempty"`
	Tool   string     `json:"tool"`
	Text   string     `json:"text"`             // whole: the command, the change, the arguments
	Closed string     `json:"closed,omitempty"` // why only its pane takes a yes
	Reason string     `json:"reason,omitempty"`
	Dir    string     `json:"dir,omitempty"`
	Asked  store.Time `json:"asked"`
	Allow  string     `json:"allow"` // the command that allows it
	Deny   string     `json:"deny"`  // the command that denies it
}

// Panes captures the agents' terminals. Its methods are called from several goroutines,
// for a pane only while a browser watches it.
type Panes interface {
	// Screen returns the agent's pane as it is now, with at most history lines from
	// above it. The error is shown to a person: no session, no tmux.
	Screen(ctx context.Context, id agent.ID, history int) (Screen, error)
	// Screens returns several panes as they are now, in the order of the ids.
	Screens(ctx context.Context, ids []agent.ID) []Shot
	// Watch calls stirred, which never blocks, whenever the pane may have changed,
	// until ctx ends. The channel is closed when ctx has ended or the pane is gone.
	Watch(ctx context.Context, id agent.ID, stirred func()) (gone <-chan struct{}, err error)
}

// A Screen is what `tmux capture-pane -e` prints of a pane.
type Screen struct {
	Text    string // lines, with SGR and OSC 8 sequences in them
	History int    // how many of them are above the screen
	Width   int    // in cells
	Height  int
	CursorX int // from 0, in the screen; with CursorY -1: not shown
	CursorY int
}

// A Shot is a Screen, or why it could not be captured.
type Shot struct {
	Screen
	Err error
}
