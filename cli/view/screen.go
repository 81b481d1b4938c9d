package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/bus/envelope"
	"netsky/internal/words"
	"netsky/view"
)

// marks precede each agent, as in systemctl.
var marks = map[agent.State]struct{ sign, color string }{
	agent.Idle:         {"●", "32"},
	agent.Busy:         {"●", "36"},
	agent.Starting:     {"◌", "36"},
	agent.Waiting:      {"◆", "33"},
	agent.Blocked:      {"◆", "33"},
	agent.Hung:         {"✗", "31"},
	agent.Dead:         {"✗", "31"},
	agent.CrashLooping: {"✗", "31"},
	agent.Unknown:      {"?", "33"},
	agent.Down:         {"○", "2"},
}

// urgency lists the states, those that most need a person first.
var urgency = []agent.State{
	agent.Waiting, agent.Blocked, agent.Dead, agent.CrashLooping, agent.Hung, agent.Unknown, agent.Starting, agent.Busy, agent.Idle, agent.Down,
}

// calm is the index in urgency from which on nobody is needed.
const calm = 6

// NeedLines are the lines of what needs the owner: the count and the first few.
func (v View) NeedLines(few int) (lines []string) {
	if len(v.Needs) == 0 {
		return nil
	}
	lines = []string{attention.Count(len(v.Needs)) + ": `netsky needs`"}
	for _, n := range v.Needs[:min(len(v.Needs), few)] {
		lines = append(lines, fmt.Sprintf("  %s  %s%s (%s)", n.Code, envelope.Plain(envelope.Line(n.Line(), 200)), n.Stale(v.now), n.How()))
	}
	if more := len(v.Needs) - few; more > 0 {
		lines = append(lines, fmt.Sprintf("  … %d more", more))
	}
	return lines
}

// A Screen is the output of status, in lines.
type Screen struct {
	head   string
	agents []row
	needs  []string // what to do, and what is wrong
}

// A row is one agent, or above those of another host what it is.
type row struct {
	state agent.State // "" of a host
	lines []string    // the first begins with the state's mark
	old   bool        // what is known of that host is
}

// Screen formats the view; verbose adds evidence, directories and ids.
func (v View) Screen(verbose bool) (s Screen) {
	s.head = fmt.Sprintf("netsky %s   %s   ", v.version, v.home)
	if v.dirs != "" {
		s.head += "agents in " + envelope.Plain(v.dirs) + "   "
	}
	s.head += "daemon " + daemonWords(v)
	if len(v.Agents) == 0 {
		none := "no agents yet"
		if len(v.Hosts) > 0 {
			none = "no agents on this host yet"
		}
		s.needs = append(s.needs, none+": `netsky up` starts some")
	}
	s.agents = append(s.agents, v.rows(v.Agents, verbose)...)
	for _, h := range v.Hosts {
		s.agents = append(s.agents, v.hostRows(h, verbose)...)
	}
	need := func(format string, args ...any) { s.needs = append(s.needs, fmt.Sprintf(format, args...)) }
	s.needs = append(s.needs, v.NeedLines(5)...)
	s.needs = append(s.needs, v.strays...)
	if v.Unread+v.Settled > 0 {
		need("%s (`netsky inbox`)", v.Mail())
	}
	for _, n := range v.Notes {
		need("! %s", n)
	}
	return s
}

// rows are agents, in columns.
func (v View) rows(list []view.Agent, verbose bool) (rows []row) {
	name, wide := len(agent.Infinity)+1, len(agent.Starting) // of the longest state there is
	for _, a := range list {
		name, wide = max(name, len(a.ID)), max(wide, len(a.State))
	}
	for _, a := range list {
		since := ""
		if a.Since != 0 {
			since = words.Ago(v.now.Sub(a.Since.Time()))
		}
		line := fmt.Sprintf("%s %-*s %-*s %5s  %-7s %s", marks[a.State].sign, name, a.ID, wide, a.State, since, a.Runtime, envelope.Plain(a.Words()))
		r := row{state: a.State, lines: []string{strings.TrimRight(line, " ")}}
		if verbose {
			r.lines = append(r.lines, "    "+a.Evidence+"; "+where(a, v.version), "    "+words.OrDash(a.Dir))
		}
		rows = append(rows, r)
	}
	return rows
}

// hostRows are another host, and its agents.
func (v View) hostRows(h attention.Host, verbose bool) []row {
	head := h.Name + "  " + cmp.Or(h.AsOf(v.now), "netsky "+h.Version)
	if h.More > 0 {
		head += fmt.Sprintf("  and %d more there: `netsky --on %s status`", h.More, h.Name)
	}
	rows := append([]row{{lines: []string{head}}}, v.rows(h.Agents, verbose)...)
	for i := range rows {
		rows[i].old = !h.Up
	}
	return rows
}

// where returns the agent's start, pid and pane, as far as there are any.
func where(s view.Agent, version string) string {
	switch {
	case s.ID.Host() != "":
		return "netsky " + words.OrDash(s.Version)
	case s.Start == "":
		return "no start on record"
	}
	words := "start " + s.Start
	gone := s.Died() || s.State == agent.Down
	switch {
	case s.PID != 0 && gone:
		words += fmt.Sprintf(", was pid %d", s.PID)
	case s.PID != 0:
		words += fmt.Sprintf(", pid %d", s.PID)
	}
	if s.Pane == "" {
		words += ", no pane"
	} else {
		words += ", pane " + s.Pane
	}
	if s.Version != "" && s.Version != version {
		words += ", netsky " + s.Version
	}
	return words
}

// Fit returns the screen in at most width columns and height rows; 0 means no limit.
// What does not fit is counted: first agents that need nobody, the calmest first, then
// the last of the needs.
func (s Screen) Fit(width, height int, colors bool) []string {
	footer := ""
	needs, hidden := s.needs, make(map[int]bool)
	if height > 0 {
		footer = "(every second; Ctrl-C ends)"
		room := max(height-2, 1) // beside head and footer
		if most := max(room-min(rowsOf(s.agents, nil), (room+1)/2), 1); len(needs) > most {
			needs = append(slices.Clone(needs[:most-1]), fmt.Sprintf("… %d more lines: `netsky status` shows all", len(needs)-most+1))
		}
		room -= len(needs)
		for _, i := range s.calmest() {
			if rowsOf(s.agents, hidden) <= room {
				break
			}
			hidden[i] = true
		}
		if len(hidden) > 0 {
			footer = s.hiddenWords(hidden) + "  " + footer
		}
	}
	lines := []string{Cut(s.head, width)}
	for i, r := range s.agents {
		if hidden[i] {
			continue
		}
		for n, l := range r.lines {
			l = Cut(l, width)
			switch m := marks[r.state]; {
			case colors && r.old:
				l = "\x1b[2m" + l + "\x1b[0m"
			case colors && n == 0 && r.state != "":
				l = "\x1b[" + m.color + "m" + m.sign + "\x1b[0m" + strings.TrimPrefix(l, m.sign)
			}
			lines = append(lines, l)
		}
	}
	for _, n := range needs {
		lines = append(lines, Cut(n, width))
	}
	if height > 0 {
		lines = append(lines, Cut(footer, width))
		lines = lines[max(len(lines)-height, 0):]
	}
	return lines
}

func rowsOf(list []row, hidden map[int]bool) (n int) {
	for i, r := range list {
		if !hidden[i] {
			n += len(r.lines)
		}
	}
	return n
}

// calmest returns the indexes of the agents, those that need nobody first; of the same
// state the last first.
func (s Screen) calmest() []int {
	list := make([]int, len(s.agents))
	for i := range list {
		list[i] = len(s.agents) - 1 - i
	}
	slices.SortStableFunc(list, func(x, y int) int {
		return slices.Index(urgency, s.agents[y].state) - slices.Index(urgency, s.agents[x].state)
	})
	return list
}

// hiddenWords counts what is not shown: "… 7 more: 1 dead, 6 idle".
func (s Screen) hiddenWords(hidden map[int]bool) string {
	counts := make(map[agent.State]int)
	for i := range hidden {
		counts[s.agents[i].state]++
	}
	var words []string
	all := 0 // without the lines of hosts
	for _, state := range urgency {
		if n := counts[state]; n > 0 {
			all += n
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	return fmt.Sprintf("… %d more: %s", all, strings.Join(words, ", "))
}

func daemonWords(v View) string {
	switch v.Daemon.State {
	case "hung":
		if v.Daemon.socketless {
			return "without its socket"
		}
		return "hung"
	case "running":
		return fmt.Sprintf("running, pid %d, for %s", v.Daemon.PID, words.Ago(v.now.Sub(v.Daemon.Since.Time())))
	}
	return v.Daemon.Word()
}

// DialogWords describes who waits at a dialog, and what the owner can do about it.
func DialogWords(d approve.Dialog) string {
	first, text := d.Agents[0], ""
	if d.Text != "" {
		text = ": " + strconv.Quote(d.Text)
	}
	if len(d.Agents) == 1 {
		how := ""
		if d.Decidable {
			how = fmt.Sprintf(" or `netsky approve %s`, with --deny to refuse", first)
		}
		return fmt.Sprintf("%s waits for you at its pane%s (`netsky attach %s`%s)", first, text, first, how)
	}
	how := ""
	if d.Decidable {
		how = fmt.Sprintf("; `netsky approve %s --all-same` accepts for all, with --deny refuses", first)
	}
	return fmt.Sprintf("%s wait for you at the same dialog%s (`netsky attach %s`%s)", attention.Names(d.Agents), text, first, how)
}

// Mail says how much mail the owner has not read.
func (v View) Mail() string {
	text := fmt.Sprintf("mail for you: %d", v.Unread)
	if v.Settled > 0 {
		text += fmt.Sprintf(", and %d that settled by itself", v.Settled)
	}
	return text
}
