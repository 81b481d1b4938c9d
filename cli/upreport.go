package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/spawn"
)

// upReport tells how an up goes: on a terminal each agent's line changes in
// place, elsewhere it is written once, when its end is known.
type upReport struct {
	a     *app
	plans map[agent.ID]spawn.Plan
	json  bool
	board *board

	failed map[string]agent.ID // who has failed so first
}

func newUpReport(a *app, plans []spawn.Plan, asJSON bool) *upReport {
	r := &upReport{a: a, plans: make(map[agent.ID]spawn.Plan), json: asJSON, failed: make(map[string]agent.ID)}
	for _, p := range plans {
		r.plans[p.Agent] = p
	}
	out := a.stdout()
	if asJSON {
		out = io.Discard
	}
	r.board = &board{out: out, rows: make(map[string]int)}
	_, r.board.live = terminal(a.out)
	r.board.live = r.board.live && !asJSON && !a.dumb()
	return r
}

func (r *upReport) daemon(p daemon.Pong, started bool, err error) {
	switch {
	case err != nil:
		r.board.set("daemon", line("daemon", "failed", err.Error()), true)
	case started:
		r.board.set("daemon", line("daemon", "ready", fmt.Sprintf("started, pid %d", p.PID)), true)
	default:
		r.board.set("daemon", line("daemon", "ready", fmt.Sprintf("was up, pid %d", p.PID)), true)
		for _, n := range versionNotes(daemonView{State: "running", Version: p.Version, Binary: p.Binary}) {
			r.a.warn("%s", n)
		}
	}
}

func (r *upReport) progress(p spawn.Progress) {
	if p.Step == spawn.StepBlocked {
		r.a.tellBlocked(p.Err)
		return
	}
	if p.Step == spawn.StepSilent {
		r.a.warn("tmux has not answered yet; waiting up to half a minute for it")
		return
	}
	name, plan := string(p.Agent), r.plans[p.Agent]
	what := plan.Runtime.Name() + "  " + tilde(r.a, plan.Dir)
	if may := r.a.config.may(plan.Runtime.Name()); may != "" {
		what += "  " + may
	}
	switch p.Step {
	case spawn.StepSpawned:
		r.board.set(name, line(name, "spawned", what), false)
	case spawn.StepReady:
		if p.State == agent.Waiting {
			p.Note += " (`netsky attach " + name + "`)"
		}
		r.board.set(name, line(name, readyWord(p.State), what+note(p.Note)), true)
	case spawn.StepAlready:
		r.board.set(name, line(name, string(p.State), "was up"+on(p.Runtime)+note(p.Note)), true)
	case spawn.StepSlow:
		r.board.set(name, line(name, "starting", what+note(p.Note)), true)
	case spawn.StepFailed:
		text := line(name, "failed", p.Err.Error())
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
		r.board.set(name, text, true)
	}
}

// stayed reports agents that are up and not as they were wanted now.
func (r *upReport) stayed(list []spawn.Status) (ends []spawn.Progress) {
	for _, st := range list {
		p := spawn.Progress{Agent: st.Agent, Step: spawn.StepAlready, State: st.State, Note: st.Detail, Runtime: st.Runtime, Dir: st.Dir}
		r.progress(p)
		p.Err = fmt.Errorf("runs on %s, not on %s", orDash(st.Runtime), r.plans[st.Agent].Runtime.Name())
		ends = append(ends, p)
	}
	return ends
}

func on(runtime string) string {
	if runtime == "" {
		return ""
	}
	return " on " + runtime
}

// tellingLines are, of what the pane of a program shows that has ended, the lines
// that say why, three at most: neither pictures nor what came before the trouble.
func tellingLines(lines []string) []string {
	const most = 3
	var words []string
	trouble := -1
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if !wordy(l) || strings.HasPrefix(l, "[agent") && strings.HasSuffix(l, "]") { // the keeper's own: the error says it
			continue
		}
		if trouble < 0 && troubled(l) {
			trouble = len(words)
		}
		words = append(words, l)
	}
	if trouble < 0 {
		trouble = max(len(words)-most, 0)
	}
	return words[trouble:min(trouble+most, len(words))]
}

// troubled reports whether the line speaks of something that went wrong.
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

// dialogs are the dialogs at which agents that have started wait.
func (r *upReport) dialogs(ends []spawn.Progress) (list []dialog) {
	for _, e := range ends {
		if e.State == agent.Waiting && (e.Step == spawn.StepReady || e.Step == spawn.StepAlready) {
			plan := r.plans[e.Agent]
			list = addDialog(list, e.Agent, e.Note, r.a.decidable(cmp.Or(e.Runtime, plan.Runtime.Name()), e.Note))
		}
	}
	return list
}

// readyWord is "ready" for an agent that can take work, else its state.
func readyWord(s agent.State) string {
	if s == agent.Idle || s == agent.Busy {
		return "ready"
	}
	return string(s)
}

func note(s string) string {
	if s == "" {
		return ""
	}
	return "  " + s
}

func line(name, state, rest string) string { return fmt.Sprintf("%-14s %-9s %s", name, state, rest) }

func (r *upReport) close() { r.board.close() }

// finish prints the JSON object, if that was asked for.
func (r *upReport) finish(h home.Dir, p daemon.Pong, ends []spawn.Progress) error {
	if !r.json {
		return nil
	}
	type row struct {
		Agent   agent.ID    `json:"agent"`
		Step    spawn.Step  `json:"step"`
		State   agent.State `json:"state,omitempty"`
		Runtime string      `json:"runtime"`
		Dir     string      `json:"dir"`
		Note    string      `json:"note,omitempty"`
		Error   string      `json:"error,omitempty"`
		Lines   []string    `json:"lines,omitempty"`
	}
	obj := struct {
		Home   string      `json:"home"`
		Daemon daemon.Pong `json:"daemon"`
		Agents []row       `json:"agents"`
	}{Home: h.Root(), Daemon: p}
	for _, e := range ends {
		plan := r.plans[e.Agent]
		o := row{Agent: e.Agent, Step: e.Step, State: e.State, Runtime: plan.Runtime.Name(), Dir: plan.Dir, Note: e.Note, Lines: e.Lines}
		if e.Step == spawn.StepAlready {
			o.Runtime, o.Dir = e.Runtime, e.Dir
		}
		if e.Err != nil {
			o.Error = e.Err.Error()
		}
		obj.Agents = append(obj.Agents, o)
	}
	return r.a.writeJSON(obj)
}

func (a *app) writeJSON(v any) error {
	enc := json.NewEncoder(a.stdout())
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeJSONLine writes one object on one line, for verbs that follow.
func (a *app) writeJSONLine(v any) error { return json.NewEncoder(a.stdout()).Encode(v) }

// A board is a list of lines. On a terminal a line that is set again changes in
// place; elsewhere only final lines are written.
type board struct {
	out  io.Writer
	live bool

	mu    sync.Mutex // guards what follows
	rows  map[string]int
	lines []string
	drawn int
}

// set puts the text at the name's row. final text may have several lines.
func (b *board) set(name, text string, final bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text = envelope.Plain(text)
	if !b.live {
		if final {
			fmt.Fprintln(b.out, text)
		}
		return
	}
	i, ok := b.rows[name]
	if !ok {
		i = len(b.lines)
		b.rows[name] = i
		b.lines = append(b.lines, "")
	}
	b.lines[i] = text
	if b.drawn > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[J", b.drawn)
	}
	b.drawn = 0
	for _, l := range b.lines {
		n := 1
		for _, c := range l {
			if c == '\n' {
				n++
			}
		}
		fmt.Fprintln(b.out, clip(l, b.out, n))
		b.drawn += n
	}
}

// clip cuts a single line to the terminal's width, so that it takes one row.
func clip(s string, out io.Writer, rows int) string {
	w, ok := terminal(out)
	if !ok || rows > 1 {
		return s
	}
	if r := []rune(s); len(r) >= w {
		return string(r[:w-1])
	}
	return s
}

func (b *board) close() {}
