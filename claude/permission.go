package claude

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
)

// planTool is the tool whose request Claude Code answers only by its dialog, whatever a hook
// says.
const planTool = "ExitPlanMode"

// Permission returns what the hook asks for: the tool, all its arguments, the model's own
// words and where it would run. It is false if the hook asks for nothing.
func (h Hook) Permission() (q agent.Approval, ok bool) {
	if h.Event != "PermissionRequest" || h.Tool == "" {
		return q, false
	}
	q = agent.Approval{Tool: line(h.Tool, maxName), Dir: cut(h.Dir, maxName)}
	if h.Tool == planTool {
		q.Only = "Claude Code takes the answer to a plan only there"
	}
	best := subject(h.args)
	var change []string
	for i, f := range h.args {
		switch {
		case i == best:
			q.Subject, q.Text = f.Name, f.Text
		case f.Name == "description" && !strings.HasPrefix(h.Tool, "mcp__"):
			q.Reason = f.Text
		case h.Tool == "Edit" && f.Name == "old_string":
			change = append(marked("-", f.Text), change...)
		case h.Tool == "Edit" && f.Name == "new_string":
			change = append(change, marked("+", f.Text)...)
		default:
			q.Fields = append(q.Fields, f)
		}
	}
	if change != nil {
		q.Fields = append(q.Fields, agent.Field{Name: "change", Text: strings.Join(change, "\n")})
	}
	return q, true
}

// marked are the lines of a text behind a mark.
func marked(mark, text string) []string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = mark + lines[i]
	}
	return lines
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

// Taken is how Claude Code shows that it has taken the decision on a call: by a line in the
// conversation's file, measured on 2.1.300 to 2.1.332, or, of a yes, whose line comes with
// the tool's result, by waiting no more. Nil: it can't be told.
func (w PermissionWait) Taken(transcript, call string, allow bool) *agent.Proof {
	if transcript == "" || call == "" {
		return nil
	}
	id, _ := json.Marshal(call) // strings always encode
	p := &agent.Proof{
		File:  transcript,
		Taken: []string{`"hook_permission_decision"`, `"decision":"deny"`, `"toolUseID":` + string(id)},
		// What was asked of the model has the result too, and may be written before.
		Past: []string{`"toolUseResult"`, `"tool_result"`, `"tool_use_id":` + string(id)},
	}
	if allow {
		p.Taken[1] = `"decision":"allow"`
		p.Asking, p.Asks = sessionFile(w.ConfigDir, w.PID), []string{`"status":"` + statusWaiting + `"`}
	}
	return p
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
	Call      string // from Hook.Call
	Subagent  bool   // a subagent asks, which outlives the turn that began it
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
// answered in the pane, or until ctx ends. While the session seems to wait no more, no
// answer is taken: Claude Code ignores what a hook says after the pane.
//
// The call is Claude Code's name of the tool's call, "" if no hook has told it.
func (w PermissionWait) Wait(ctx context.Context, answered func() (allow, ok bool)) (end Outcome, call string) {
	tail := home.Events(w.Home).Tail(w.Agent)
	defer tail.Close()
	_ = tail.Read(func(e agent.Event) { // what was before the question
		if e.Event == agent.EventTool && e.Session == w.Session && e.Input == w.Call {
			call = e.ID
		}
	})
	tick := time.NewTicker(permissionTick)
	defer tick.Stop()
	watch := paneWatch{PermissionWait: w, tail: tail, until: time.Now().Add(dialogDelay)}
	for {
		gone := watch.gone()
		allow, ok := answered()
		switch {
		case gone && watch.done:
			return AllowedAtPane, call
		case gone:
			return AtPane, call
		case !ok, watch.waited && watch.resumed > 0: // a few more looks tell whether it is gone
		case allow:
			return Allowed, call
		default:
			return Denied, call
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Unanswered, call
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
		case agent.EventStop, agent.EventStopFailed:
			gone = gone || e.Session == w.Session && !w.Subagent
		case agent.EventSessionEnd:
			gone = gone || e.Session == w.Session
		case agent.EventToolDone:
			w.done = w.done || e.Session == w.Session && w.Call != "" && e.Input == w.Call
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
