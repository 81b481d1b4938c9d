package claude

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/proc"
)

// A Permission is what a model wants to do and needs approval for.
type Permission struct {
	Tool   string
	Text   string // the command, the path, …
	Reason string // the model's own words
	Dir    string
}

// Permission returns what the hook asks for; false if it asks for nothing.
func (h Hook) Permission() (Permission, bool) {
	if h.Event != "PermissionRequest" || h.Tool == "" {
		return Permission{}, false
	}
	p := Permission{Tool: line(h.Tool, maxName), Text: h.Input, Reason: h.About, Dir: cut(h.Dir, maxName)}
	if p.Reason == p.Text {
		p.Reason = ""
	}
	return p, true
}

// Decision returns what a PermissionRequest hook prints to answer: Claude Code closes its
// dialog, and a model that is refused gets the message.
func Decision(allow bool, message string) []byte {
	decision := map[string]string{"behavior": "allow"}
	if !allow {
		decision = map[string]string{"behavior": "deny", "message": message}
	}
	data, err := json.Marshal(map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PermissionRequest", "decision": decision,
	}})
	if err != nil {
		panic("claude: a map of strings is no JSON: " + err.Error())
	}
	return append(data, '\n')
}

// An Outcome is how a question ended.
type Outcome int

const (
	Unanswered Outcome = iota // the wait ended without an answer
	Allowed
	Denied
	AtPane        // the person answered in the pane, or the question ended with its turn
	AllowedAtPane // the person said yes there: the request has been carried out
)

// A PermissionWait waits with the hook process of a permission request for the first
// answer. Claude Code doesn't end the hook when its dialog is answered, so this one
// checks.
type PermissionWait struct {
	Home      home.Dir
	Agent     agent.ID
	Start     string
	ConfigDir string
	PID       int    // Claude Code's process
	Session   string // the conversation that asks
	Tool      string
	Input     string // from Hook.Input
}

const (
	permissionTick = 200 * time.Millisecond
	// dialogDelay is how long a dialog may take to appear after its hook began.
	dialogDelay = 5 * time.Second
	// steady is for how many looks a session must not be waiting before that counts: of
	// several dialogs the next appears a moment after the last is answered.
	steady = 3
)

// Wait calls answered five times a second until it returns ok, until the question is
// answered in the pane, or until ctx ends. A last answer, given before the question is
// found gone, counts.
func (w PermissionWait) Wait(ctx context.Context, answered func() (allow, ok bool)) Outcome {
	tail := w.Home.Events(w.Agent)
	defer tail.Close()
	_ = tail.Read(func(agent.Event) {}) // skip what was before the question
	tick := time.NewTicker(permissionTick)
	defer tick.Stop()
	watch := paneWatch{PermissionWait: w, tail: tail, until: time.Now().Add(dialogDelay)}
	for {
		gone := watch.gone()
		if allow, ok := answered(); ok && allow {
			return Allowed
		} else if ok {
			return Denied
		}
		if gone && watch.done {
			return AllowedAtPane
		} else if gone {
			return AtPane
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Unanswered
		}
	}
}

// A paneWatch observes whether a question is still in the pane.
type paneWatch struct {
	PermissionWait
	tail    *home.EventTail
	until   time.Time // a dialog that has not appeared by then won't
	waited  bool      // the session was seen waiting
	resumed int       // looks in a row at which it was not
	done    bool      // the tool has run
}

func (w *paneWatch) gone() bool {
	return w.told() || w.looked()
}

// told reports whether an event shows that the question is settled.
func (w *paneWatch) told() (gone bool) {
	_ = w.tail.Read(func(e agent.Event) {
		if e.Start != w.Start && e.Start != "" {
			return
		}
		switch e.Event {
		case agent.EventStop, agent.EventStopFailed, agent.EventSessionEnd:
			gone = gone || e.Session == w.Session
		case agent.EventToolDone:
			w.done = w.done || e.Session == w.Session && e.Tool == w.Tool && e.Text == w.Input
			gone = gone || w.done
		}
	})
	return gone
}

// looked reports whether the session's registry shows that.
func (w *paneWatch) looked() bool {
	r, err := FindSession(w.ConfigDir, w.PID)
	if err != nil {
		// A process that is gone asks nothing any more. An unreadable registry proves
		// nothing.
		_, gone := proc.Find(w.PID)
		return errors.Is(gone, fs.ErrNotExist)
	}
	if r.Status == statusWaiting {
		w.waited, w.resumed = true, 0
		return false
	}
	w.resumed++
	return w.resumed >= steady && (w.waited || time.Now().After(w.until))
}
