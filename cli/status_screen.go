package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"netsky/agent"
)

func (a *app) drawStatus(w io.Writer, v view, verbose bool) {
	for _, l := range a.screenOf(v, verbose).fit(0, 0, a.colors()) {
		fmt.Fprintln(w, l)
	}
}

// A statusScreen is what status shows, line by line.
type statusScreen struct {
	head   string
	agents []statusRow
	needs  []string // what there is to do, and what is wrong
}

// A statusRow is one agent.
type statusRow struct {
	state agent.State
	lines []string // the first begins with the state's mark
}

func (a *app) screenOf(v view, verbose bool) (s statusScreen) {
	s.head = fmt.Sprintf("netsky %s   %s   daemon %s", Version, tilde(a, v.Home), daemonWords(v))
	if len(v.Agents) == 0 {
		s.needs = append(s.needs, "no agents yet: `netsky up` starts some")
	}
	for _, v2 := range v.Agents {
		since := ""
		if v2.Since != 0 {
			since = ago(v.now.Sub(v2.Since.Time()))
		}
		row := fmt.Sprintf("%s %-14s %-8s %5s  %-7s %s", marks[v2.State].sign, v2.Agent, v2.State, since, v2.Runtime, agentWords(v2))
		r := statusRow{v2.State, []string{strings.TrimRight(row, " ")}}
		if verbose {
			r.lines = append(r.lines, "    "+v2.Evidence+"; "+v2.where(), "    "+orDash(v2.Dir))
		}
		s.agents = append(s.agents, r)
	}
	need := func(format string, args ...any) { s.needs = append(s.needs, fmt.Sprintf(format, args...)) }
	poisoned := 0
	for _, s := range v.Agents {
		poisoned += max(s.Poison, 0)
	}
	if poisoned > 0 {
		need("unreadable messages: %d (`netsky channel poison ls`)", poisoned)
	}
	for _, s := range v.Agents {
		if s.Strays > 0 {
			need("%s's inbox: %d ignored, as only files named *.json are read (%s)", s.Agent, s.Strays, someOf(s.stray, s.Strays))
		}
	}
	if v.Unread > 0 {
		need("mail for you: %d (`netsky inbox`)", v.Unread)
	}
	if v.Asked > 0 {
		need("waiting for your yes: %d (`netsky approvals`)", v.Asked)
	}
	for _, d := range a.dialogs(v.Agents) {
		need("%s", d.words())
	}
	if id, what, ok := v.blocked(); ok {
		need("%s is blocked: %s", id, what)
	}
	for _, n := range v.Notes {
		need("! %s", n)
	}
	return s
}

// where names the agent's start, its program and its pane, each if there is one.
func (s agentView) where() string {
	if s.Start == "" {
		return "no start on record"
	}
	words := "start " + s.Start
	gone := s.State == agent.Dead || s.State == agent.Down
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
	if s.Version != "" && s.Version != Version {
		words += ", netsky " + s.Version
	}
	return words
}

// fit is the screen in so many columns and rows; 0 is without end. What has to
// give way is counted: first agents that need nobody, the calmest first, then the
// last of what there is to do.
func (s statusScreen) fit(width, height int, colors bool) []string {
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
	lines := []string{cut(s.head, width)}
	for i, r := range s.agents {
		if hidden[i] {
			continue
		}
		for n, l := range r.lines {
			l = cut(l, width)
			if m := marks[r.state]; colors && n == 0 {
				l = "\x1b[" + m.color + "m" + m.sign + "\x1b[0m" + strings.TrimPrefix(l, m.sign)
			}
			lines = append(lines, l)
		}
	}
	for _, n := range needs {
		lines = append(lines, cut(n, width))
	}
	if height > 0 {
		lines = append(lines, cut(footer, width))
		lines = lines[max(len(lines)-height, 0):]
	}
	return lines
}

func rowsOf(list []statusRow, hidden map[int]bool) (n int) {
	for i, r := range list {
		if !hidden[i] {
			n += len(r.lines)
		}
	}
	return n
}

// calmest are the indexes of the agents, those that need nobody first; of the
// same state the last first.
func (s statusScreen) calmest() []int {
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
func (s statusScreen) hiddenWords(hidden map[int]bool) string {
	counts := make(map[agent.State]int)
	for i := range hidden {
		counts[s.agents[i].state]++
	}
	var words []string
	for _, state := range urgency {
		if n := counts[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	return fmt.Sprintf("… %d more: %s", len(hidden), strings.Join(words, ", "))
}
