package agent

import "strings"

// An EventKind says what a process other than the agent's receiver observed.
type EventKind string

const (
	EventSeen         EventKind = "seen"          // the runtime has the envelope ID
	EventSessionStart EventKind = "session_start" // a conversation was begun or resumed: Session; Text is how
	EventSessionEnd   EventKind = "session_end"   // Text is why
	EventPrompt       EventKind = "prompt"        // a turn was given something: IDs are the envelopes in it
	EventTool         EventKind = "tool"          // Tool is about to run: Text is its input
	EventToolDone     EventKind = "tool_done"     // Tool has run
	EventPermission   EventKind = "permission"    // Tool waits for approval: ID is the approval's code, Text what it wants
	EventPermitted    EventKind = "permitted"     // the question ID has been answered: Text is the answer
	EventNotification EventKind = "notification"  // the runtime wants attention: Text is the reason
	EventStop         EventKind = "stop"          // the turn has ended: Text is its last text
	EventStopFailed   EventKind = "stop_failed"   // the turn was given up: Error is the kind, Text the message
)

// An Event is a line of state/events/<agent>.jsonl. Several processes append to it, each
// line with one write; readers skip unknown lines.
type Event struct {
	MS      int64     `json:"ms"`
	Event   EventKind `json:"event"`
	Start   string    `json:"start,omitempty"` // the start id it belongs to
	ID      string    `json:"id,omitempty"`
	IDs     []string  `json:"ids,omitempty"`
	Session string    `json:"session,omitempty"` // the conversation, by the runtime's name for it
	Tool    string    `json:"tool,omitempty"`
	Text    string    `json:"text,omitempty"`
	Input   string    `json:"input,omitempty"` // tells a tool's call from those with other arguments
	Error   string    `json:"error,omitempty"`
	Usage   *Usage    `json:"usage,omitempty"` // with EventStop: what the turn used
	Fault   *Fault    `json:"fault,omitempty"` // with EventStopFailed: the vendor's fault it failed of
	// Background is, with the end of a turn, what the program still works on by itself: it
	// begins a turn with the result, whose EventPrompt has Self set, and here whose result.
	// Self means that the program has begun the turn by itself; with the end of a turn, that
	// nobody gave it anything.
	Background []Work `json:"background,omitempty"`
	Self       bool   `json:"self,omitempty"`
	// Transcript is the runtime's own file of the conversation.
	Transcript string `json:"transcript,omitempty"`
}

// A Work is what goes on after the end of a turn: a command, a subagent.
type Work struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // [Command], or the program's own word
	Text string `json:"text"` // the command, or what the subagent is to do
}

// Command is the kind of a work that may be meant to run for good, such as a server.
const Command = "shell"

// Works describes what goes on in the background.
func Works(list []Work) string {
	var words []string
	for _, w := range list {
		words = append(words, strings.TrimSuffix(w.Kind+": "+w.Text, ": "))
	}
	return strings.Join(words, "; ")
}

// A Usage counts the tokens of one turn.
type Usage struct {
	Input       int64 `json:"input"` // without what came from a cache
	CacheRead   int64 `json:"cache_read,omitempty"`
	CacheWrite  int64 `json:"cache_write,omitempty"`
	Output      int64 `json:"output"`
	Requests    int64 `json:"requests,omitempty"`     // to the model
	ContextNow  int64 `json:"context_now,omitempty"`  // total tokens in the last request
	ContextFull bool  `json:"context_full,omitempty"` // the model refused because its context is full
}

// A Dialog is a question shown in an agent's pane that is not from the model: whether to
// trust a directory, to log in, to use a key.
type Dialog struct {
	Name string // in a word or two: "workspace trust", "login"
	Text string // what it asks, in one line
	// Keys answer it with the yes that the owner's own command or recorded consent implies;
	// nil if only a person may answer.
	Keys []string
}

// String describes the dialog in one line.
func (d Dialog) String() string { return strings.TrimSuffix(d.Name+": "+d.Text, ": ") }
