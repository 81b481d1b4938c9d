package live

import (
	"context"
	"log/slog"
	"time"

	"netsky/agent"
	"netsky/store"
	"netsky/view"
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
	WriteWait  time.Duration // for one write to a browser; then the connection is closed; 0 is 10 s
}

const (
	defaultStreams = 64
	defaultPoll    = 250 * time.Millisecond
	defaultWait    = 10 * time.Second

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
	Agents(context.Context) ([]view.Agent, error)
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
