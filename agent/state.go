package agent

import (
	"fmt"
	"strings"
	"time"

	"netsky/internal/proc"
)

// A State is the state of an agent, in one word.
type State string

const (
	Starting     State = "starting"
	Idle         State = "idle"
	Busy         State = "busy"
	Waiting      State = "waiting" // for a dialog or an approval
	Blocked      State = "blocked" // login, quota
	Hung         State = "hung"
	Dead         State = "dead"
	CrashLooping State = "crash-looping"
	Down         State = "down"
	Unknown      State = "unknown"
)

// Word is "ready" for an agent that can take work, else the state.
func (s State) Word() string {
	if s == Idle || s == Busy {
		return "ready"
	}
	return string(s)
}

// Ready reports whether an agent in this state has finished starting.
func (s State) Ready() bool { return s == Idle || s == Busy || s == Waiting || s == Blocked }

// StartsWithin is how long a start may take to report that it is ready; after that it needs
// the owner.
const StartsWithin = time.Minute

// Backlog returns how many of an agent's messages wait and how many it works on, of those in
// its inbox and those that were claimed for it: in a state without work, these wait too.
func (s State) Backlog(inbox, claimed int) (waiting, working int) {
	waiting, working = max(inbox, 0), max(claimed, 0) // negative: they can't be counted
	switch s {
	case Down, Dead, CrashLooping, Blocked:
		return waiting + working, 0
	}
	return waiting, working
}

// A Report is state/agents/<agent>.json: what the agent's receiver reports or, if it has
// none, what others have found.
type Report struct {
	Start    string   `json:"start"`
	State    State    `json:"state"`
	SinceMS  int64    `json:"since_ms"`
	Evidence string   `json:"evidence,omitempty"` // what the verdict is based on
	Detail   string   `json:"detail,omitempty"`   // what it is busy with or waits for
	Dialog   string   `json:"dialog,omitempty"`   // the name of the dialog in its pane that Detail describes
	By       Reporter `json:"by,omitempty"`
	// Fault is what keeps the model from answering: the state is Blocked, or Busy while
	// the program itself tries again, for the Attempt-th time of Of, if it says so.
	Fault   Fault `json:"fault,omitzero"`
	Attempt int   `json:"attempt,omitempty"`
	Of      int   `json:"of,omitempty"`
}

// Shown returns the dialog in the agent's pane that the report describes, without Keys.
func (r Report) Shown() Dialog {
	return Dialog{Name: r.Dialog, Text: strings.TrimPrefix(strings.TrimPrefix(r.Detail, r.Dialog), ": ")}
}

// A Reporter is the author of a report; "" is the agent's receiver.
type Reporter string

const (
	ByPane     Reporter = "pane"     // a look at its pane, which shows a dialog
	ByWatchdog Reporter = "watchdog" // its receiver is gone
)

// A Launch is state/launch/<agent>.json: all that the keeper in the pane needs. It may
// hold secrets (the environment), so it is never printed.
type Launch struct {
	Agent      ID       `json:"agent"`
	Start      string   `json:"start"` // the start id
	Runtime    string   `json:"runtime"`
	Argv       []string `json:"argv"` // argv[0] is an absolute path
	Env        []string `json:"env"`  // the whole environment
	Dir        string   `json:"dir"`
	PromptFile string   `json:"prompt_file"`
	Model      string   `json:"model,omitempty"`
	Resume     string   `json:"resume,omitempty"` // the conversation to continue
	Silent     bool     `json:"silent,omitempty"` // the program reports nothing and holds no mailbox
	Socket     string   `json:"socket,omitempty"` // of the tmux server of its session
	StartedMS  int64    `json:"started_ms"`
	Lost       Lost     `json:"lost,omitzero"`
	// Untested says which release of its program it is, if that is not the tested one.
	Untested string `json:"untested,omitempty"`
}

// A Lost is the conversation that an agent had before, and that a start could not continue.
type Lost struct {
	Conversation string `json:"conversation"`
	Why          string `json:"why"`
}

// String says it, after the agent's name.
func (l Lost) String() string {
	return fmt.Sprintf("its conversation %s can't be continued: %s; it begins a new one, and is told what the records hold", l.Conversation, l.Why)
}

// A Keeper is state/keepers/<agent>.json: the program in the pane and how it ended,
// written by the keeper. EndedMS is 0 while the program runs; afterwards exactly one of
// Status, Signal and Lost is set.
type Keeper struct {
	Start        string `json:"start"`
	proc.Process        // the program
	Program      string `json:"program"`
	// Own is the keeper's process, the ancestor of all that the program starts while it
	// lives (Linux).
	Own       proc.Process `json:"keeper,omitzero"`
	Above     proc.Lineage `json:"above,omitzero"`    // the keeper's
	Version   string       `json:"version,omitempty"` // of the netsky that the keeper runs
	StartedMS int64        `json:"started_ms"`
	EndedMS   int64        `json:"ended_ms,omitempty"`
	Status    *int         `json:"status,omitempty"` // 0 to 255
	Signal    string       `json:"signal,omitempty"` // "SIGKILL"
	// Lost is why the keeper could not record the end, in words; then another process
	// did then, and EndedMS is when it noticed. Status and Signal are not known.
	Lost string `json:"lost,omitempty"`
	// ClearedMS is when nothing was left below the keeper, as it ended: the proof that
	// nothing of this start runs. 0: not observed.
	ClearedMS int64 `json:"cleared_ms,omitempty"`
	ClearedBy ID    `json:"cleared_by,omitempty"` // who confirmed ClearedMS, if it is not proved
}

// A Ticker is state/ticker.json, written by the process that restarts the daemon: its
// identity, and the result of its last attempt.
type Ticker struct {
	proc.Process
	Binary string `json:"binary"`
	Socket string `json:"socket,omitempty"` // of the tmux server of its session
	TickMS int64  `json:"tick_ms,omitempty"`
	// EveryMS is how often it ticks.
	EveryMS int64  `json:"every_ms,omitempty"`
	Error   string `json:"error,omitempty"` // "" if the daemon runs or is not wanted
}

// How describes how the program ended: "exited 3", "killed by SIGKILL".
func (k Keeper) How() string {
	switch {
	case k.Status != nil:
		return fmt.Sprintf("exited %d", *k.Status)
	case k.Lost != "":
		return k.Lost
	}
	return "killed by " + k.Signal
}

// Desired is state/desired/<agent> or state/desired/daemon: what the owner last wanted.
// Nothing restarts what is wanted down.
type Desired struct {
	Up   bool   `json:"up"`
	AtMS int64  `json:"at_ms"`
	By   string `json:"by"`
	// Forgotten, if not nil, means that the owner has hidden an agent that is down, and how
	// many messages waited for it then.
	Forgotten *int `json:"forgotten,omitempty"`
}

// DaemonName is the daemon's name among the desired states and the locks.
const DaemonName = "daemon"
