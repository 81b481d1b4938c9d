package appserver

import (
	"encoding/json"
	"strings"
	"sync"

	"netsky/agent"
)

// An EventKind is a kind of event in a thread.
type EventKind string

const (
	TurnStarted     EventKind = "turn_started"
	Accepted        EventKind = "accepted"      // an input is in the thread; Input is its id
	Message         EventKind = "message"       // the model said Text
	ToolStarted     EventKind = "tool_started"  // Tool, with Text: the command, the arguments
	ToolFinished    EventKind = "tool_finished" // likewise; Failed reports failure
	ApprovalAsked   EventKind = "approval_asked"
	ApprovalSettled EventKind = "approval_settled"
	TokenUsage      EventKind = "token_usage"
	Retrying        EventKind = "retrying"  // Codex is retrying by itself because of Fault, for the Attempt-th time of Of
	Resumed         EventKind = "resumed"   // a retry has succeeded
	Compacted       EventKind = "compacted" // the model knows a summary of what came before
	TurnCompleted   EventKind = "turn_completed"
	TurnInterrupted EventKind = "turn_interrupted"
	TurnFailed      EventKind = "turn_failed"
	ThreadLost      EventKind = "thread_lost" // the last event of a connection; Err is why
)

// An Event is something that has happened in a thread, whichever client caused it.
// Fields that a kind does not need are zero.
type Event struct {
	Kind     EventKind
	Thread   string
	Turn     string
	Input    string // of an Accepted: the id it was submitted under, "" if a person typed it
	Text     string
	Tool     string // "shell", "edit", "server.tool", …
	Failed   bool
	Files    []string // of a ToolFinished: what an edit has changed
	Approval *Approval
	Usage    *Usage
	Err      error // of a TurnFailed a *TurnError
	Fault    agent.Fault
	Attempt  int // 0: not known
	Of       int
	// Missed is how many events before this one were dropped because the subscriber was
	// too slow.
	Missed int
}

// A Usage counts a thread's tokens.
type Usage struct {
	Input, CachedInput, Output, Reasoning, Total int64 // of the whole thread
	Last                                         int64 // of the last model request, all kinds together
	Window                                       int64 // size of the model's context; 0: unknown
}

// eventRoom is how many events are kept for a slow subscriber. A turn makes a few for
// each tool it calls; the oldest are dropped.
const eventRoom = 256

// A Feed distributes events to subscribers. The zero Feed is ready to use.
type Feed struct {
	mu   sync.Mutex // guards subs and their contents
	subs map[*subscriber]struct{}
}

type subscriber struct {
	c      chan Event
	missed int
}

// Subscribe opens a subscription; stop closes its channel.
func (f *Feed) Subscribe() (events <-chan Event, stop func()) {
	s := &subscriber{c: make(chan Event, eventRoom)}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		f.subs = make(map[*subscriber]struct{})
	}
	f.subs[s] = struct{}{}
	return s.c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, open := f.subs[s]; open {
			delete(f.subs, s)
			close(s.c)
		}
	}
}

// Emit never blocks: in a full subscription the oldest event is dropped.
func (f *Feed) Emit(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		for {
			e.Missed = s.missed
			select {
			case s.c <- e:
				s.missed = 0
			default:
				select {
				case old := <-s.c:
					s.missed += 1 + old.Missed
				default:
				}
				continue
			}
			break
		}
	}
}

// An item is a thing in a turn, as Codex reports it; only the fields in use.
type item struct {
	Type     string  `json:"type"`
	ID       string  `json:"id"`
	ClientID *string `json:"clientId"`
	Text     string  `json:"text"`
	Command  string  `json:"command"`
	Status   string  `json:"status"`
	ExitCode *int    `json:"exitCode"`
	Server   string  `json:"server"`
	Tool     string  `json:"tool"`
	Query    string  `json:"query"`

	Arguments json.RawMessage `json:"arguments"`
	Changes   []struct {
		Path string `json:"path"`
		Kind struct {
			Type string  `json:"type"`
			Move *string `json:"move_path"`
		} `json:"kind"`
		Diff string `json:"diff"`
	} `json:"changes"`
}

// changes are the files that an edit changes, and how.
func (i item) changes() (list []agent.Field) {
	for _, c := range i.Changes {
		name := strings.TrimSpace(c.Kind.Type + " " + c.Path)
		if to := word(c.Kind.Move); to != "" {
			name += ", moved to " + to
		}
		list = append(list, agent.Field{Name: name, Text: strings.TrimSuffix(c.Diff, "\n") + "\n"})
	}
	return list
}

// tool returns the kind of tool that an item is, or "" if it is not one.
func (i item) tool() (name, text string) {
	switch i.Type {
	case "commandExecution":
		return "shell", i.Command
	case "fileChange":
		for n, c := range i.Changes {
			if n > 0 {
				text += " "
			}
			text += c.Path
		}
		return "edit", text
	case "mcpToolCall":
		return i.Server + "." + i.Tool, string(i.Arguments)
	case "dynamicToolCall", "collabAgentToolCall":
		return i.Tool, string(i.Arguments)
	case "webSearch":
		return "web_search", i.Query
	case "imageView", "imageGeneration", "sleep":
		return i.Type, ""
	}
	return "", ""
}

func (i item) failed() bool {
	return i.Status == "failed" || i.Status == "declined" || i.ExitCode != nil && *i.ExitCode != 0
}

// itemEvent returns the event of an item that began or ended; ok is false if none is
// needed.
func itemEvent(i item, ended bool) (e Event, ok bool) {
	if name, text := i.tool(); name != "" {
		e = Event{Kind: ToolStarted, Tool: name, Text: text}
		if ended {
			e.Kind, e.Failed = ToolFinished, i.failed()
			for _, c := range i.Changes {
				if e.Files = append(e.Files, c.Path); word(c.Kind.Move) != "" {
					e.Files = append(e.Files, word(c.Kind.Move))
				}
			}
		}
		return e, true
	}
	if !ended {
		return e, false
	}
	switch i.Type {
	case "userMessage":
		e.Kind = Accepted
		if i.ClientID != nil {
			e.Input = *i.ClientID
		}
		return e, true
	case "agentMessage":
		return Event{Kind: Message, Text: i.Text}, true
	case "contextCompaction":
		return Event{Kind: Compacted}, true
	}
	return e, false
}
