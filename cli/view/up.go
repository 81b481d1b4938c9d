// This file prints the progress of an up or a down: line by line for people, or as
// one JSON object at the end.

package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/fleet"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/work/git"
)

// An Up reports how an up goes: on a terminal each agent's line changes in place,
// elsewhere it is written once, when the outcome is known.
type Up struct {
	Printer
	board  *Board
	failed map[string]agent.ID // the first agent with that failure
}

// A Printer is where a report goes.
type Printer struct {
	Out io.Writer // stdout
	// Size returns the size of the terminal that Out is, if lines can change in place there; else nil.
	Size    func() (width, height int)
	JSON    bool // one object at the end
	Warn    func(format string, args ...any)
	Home    string // the user's
	Version string // of this netsky
}

func (p Printer) print(format string, args ...any) {
	fmt.Fprintln(p.Out, envelope.Plain(fmt.Sprintf(format, args...)))
}

func (p Printer) json(v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// NewUp begins a report.
func NewUp(p Printer) *Up {
	r := &Up{Printer: p, failed: make(map[string]agent.ID)}
	out := p.Out
	if p.JSON {
		out, p.Size = io.Discard, nil
	}
	r.board = NewBoard(out, p.Size)
	r.Warn = func(format string, args ...any) { r.Above(func() { p.Warn(format, args...) }) }
	return r
}

// Above calls do, which may print lines.
func (r *Up) Above(do func()) { r.board.Above(do) }

// Step reports one step.
func (r *Up) Step(s fleet.Step) {
	if s.Daemon != nil {
		r.daemon(*s.Daemon)
		return
	}
	r.progress(s)
}

func (r *Up) daemon(p fleet.DaemonStep) {
	switch {
	case p.Err != nil:
		r.board.Set("daemon", boardLine("daemon", "failed", p.Err.Error()), true)
	case p.Started != "":
		r.board.Set("daemon", boardLine("daemon", "ready", fmt.Sprintf("%s, pid %d", p.Started, p.PID)), true)
	default:
		r.board.Set("daemon", boardLine("daemon", "ready", fmt.Sprintf("already up, pid %d", p.PID)), true)
		for _, n := range (Daemon{State: "running", Version: p.Version, Binary: p.Binary}).Notes(r.Version) {
			r.Warn("%s", n)
		}
	}
}

func (r *Up) progress(p fleet.Step) {
	name := string(p.Agent)
	what := p.As.Runtime + "  " + words.Tilde(r.Home, p.As.Dir) + branch(p.As.Place)
	if p.As.May != "" {
		what += "  " + p.As.May
	}
	switch p.Step {
	case spawn.StepSpawned:
		r.board.Set(name, boardLine(name, "spawned", what), false)
	case spawn.StepReady:
		if p.State == agent.Waiting {
			p.Note += " (`netsky attach " + name + "`)"
		}
		r.board.Set(name, boardLine(name, p.State.Word(), what+words.Note(p.Note)), true)
	case spawn.StepAlready:
		state := p.State
		if state == agent.Idle { // as for one that has just started
			state = agent.State(state.Word())
		}
		r.board.Set(name, boardLine(name, string(state), "already up"+on(p.Runtime)+words.Note(p.Note)), true)
	case spawn.StepSlow:
		r.board.Set(name, boardLine(name, "starting", what+words.Note(p.Note)), true)
	case spawn.StepFailed:
		text := boardLine(name, "failed", p.Err.Error())
		if errors.Is(p.Err, spawn.ErrUnknown) {
			text += " (`netsky down " + name + "` ends it)"
		}
		if errors.Is(p.Err, spawn.ErrPerson) {
			text += " (close that pane: `netsky attach " + name + "`; or `netsky down " + name + "` ends the whole session)"
		}
		lines := tellingLines(p.Lines)
		same := p.Err.Error() + "\n" + strings.Join(lines, "\n")
		if first, told := r.failed[same]; told && len(lines) > 0 {
			text += ", as " + string(first)
			lines = nil
		} else {
			r.failed[same] = p.Agent
		}
		for _, l := range lines {
			text += "\n  | " + l
		}
		r.board.Set(name, text, true)
	}
}

// branch says on which branch an agent works, if that is its own.
func branch(at plan.Place) string {
	if !at.Apart {
		return ""
	}
	text := " (" + at.Short() + " from " + cmp.Or(git.Branch(at.Base), at.From[:min(7, len(at.From))])
	if at.Moved != "" {
		text += ", moved on to " + at.Moved[:min(7, len(at.Moved))]
	}
	return text + ")"
}

func on(runtime string) string {
	if runtime == "" {
		return ""
	}
	return " on " + runtime
}

// tellingLines returns up to three lines of an ended program's pane that explain why it
// ended: the first that mentions trouble and those after it, without drawings.
func tellingLines(lines []string) []string {
	const most = 3
	var telling []string
	trouble := -1
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if !wordy(l) || strings.HasPrefix(l, "[agent") && strings.HasSuffix(l, "]") { // the keeper's own line: the error has it
			continue
		}
		if trouble < 0 && troubled(l) {
			trouble = len(telling)
		}
		telling = append(telling, l)
	}
	if trouble < 0 {
		trouble = max(len(telling)-most, 0)
	}
	return telling[trouble:min(trouble+most, len(telling))]
}

// troubled reports whether the line mentions something that went wrong.
func troubled(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc([]string{
		"error", "fail", "unable", "cannot", "can't", "could not", "not found", "denied", "refused", "invalid", "unknown",
		"no such", "missing", "unsupported", "required", "fatal", "panic", "expired",
	}, func(word string) bool { return strings.Contains(line, word) })
}

// wordy reports whether most of a line is letters and digits.
func wordy(s string) bool {
	letters, all := 0, 0
	for _, r := range s {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r):
			letters, all = letters+1, all+1
		case !unicode.IsSpace(r):
			all++
		}
	}
	return letters > 0 && 2*letters >= all
}

func boardLine(name, state, rest string) string {
	return fmt.Sprintf("%-14s %-9s %s", name, state, rest)
}

// Finish prints the JSON object, if requested.
func (r *Up) Finish(h home.Dir, res fleet.StartResult) error {
	if !r.JSON {
		return nil
	}
	type row struct {
		Agent   agent.ID    `json:"agent"`
		Step    spawn.Step  `json:"step"`
		State   agent.State `json:"state,omitempty"`
		Runtime string      `json:"runtime"`
		Dir     string      `json:"dir"`
		Branch  string      `json:"branch,omitempty"`
		Base    string      `json:"base,omitempty"`
		Note    string      `json:"note,omitempty"`
		Error   string      `json:"error,omitempty"`
		Lines   []string    `json:"lines,omitempty"`
	}
	obj := struct {
		Home   string      `json:"home"`
		Daemon daemon.Pong `json:"daemon"`
		Agents []row       `json:"agents"`
	}{Home: h.Root(), Daemon: res.Daemon}
	for _, e := range res.Agents {
		o := row{Agent: e.Agent, Step: e.Step, State: e.State, Runtime: e.As.Runtime, Dir: e.As.Dir, Note: e.Note, Lines: e.Lines}
		if at := e.As.Place; at.Apart {
			o.Branch, o.Base = at.Branch, at.Base
		}
		if e.Step == spawn.StepAlready {
			o.Runtime, o.Dir = e.Runtime, e.Dir
		}
		if e.Err != nil {
			o.Error = e.Err.Error()
		}
		obj.Agents = append(obj.Agents, o)
	}
	return r.json(obj)
}
