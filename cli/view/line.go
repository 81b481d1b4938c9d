package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/spawn"
)

// Line returns the state in at most width columns, 0 for no limit. Nothing is cut in
// the middle of a state: if space is short, agents are counted instead of named, those
// that need nobody first. needs is how many things need the owner, and notes
// stand behind the mail.
func Line(list spawn.Statuses, needs, unread, width int, notes ...string) string {
	var all, urgent, urgentCounts, calmCounts []string
	counts := make(map[agent.State]int)
	for _, s := range list {
		if s.State == agent.Down {
			continue
		}
		name := s.Agent.N()
		if s.Agent == agent.Infinity {
			name = "∞"
		}
		all = append(all, name+":"+string(s.State))
		counts[s.State]++
	}
	needed := 0
	for i, state := range urgency {
		switch n := counts[state]; {
		case n == 0:
		case i < calm:
			needed += n
			urgentCounts = append(urgentCounts, fmt.Sprintf("%d %s", n, state))
			for _, word := range all {
				if strings.HasSuffix(word, ":"+string(state)) {
					urgent = append(urgent, word)
				}
			}
		default:
			calmCounts = append(calmCounts, fmt.Sprintf("%d %s", n, state))
		}
	}
	var mail []string
	if needs > 0 {
		mail = append(mail, fmt.Sprintf("needs:%d", needs))
	}
	if unread > 0 {
		mail = append(mail, fmt.Sprintf("mail:%d", unread))
	}
	mail = append(mail, notes...)
	if len(all) == 0 {
		all = []string{"no agents"}
	}
	up := []string{fmt.Sprintf("%d up", len(all)-needed)}
	if len(all) == needed {
		up = nil
	}
	few := []string{fmt.Sprintf("!%d", max(needed, needs))}
	if needed == 0 && needs == 0 {
		few = []string{"ok"}
	}
	for _, words := range [][][]string{
		{all, mail}, {urgent, mail, calmCounts}, {urgent, mail, up}, {urgentCounts, mail, calmCounts}, {urgentCounts, mail, up}, {urgentCounts, mail}, {few, mail},
	} {
		line := strings.Join(slices.Concat(words...), " ")
		if line != "" && (width == 0 || utf8.RuneCountInString(line) <= width) {
			return line
		}
	}
	return Cut(few[0], width)
}

// Text formats the state for the owner's phone.
func (v View) Text() string {
	var lines []string
	down := 0
	for _, a := range v.Agents {
		if a.State == agent.Down && !a.Wanted {
			down++
			continue
		}
		line := string(a.ID) + " " + string(a.State)
		if words := a.Words(); words != "" {
			line += ": " + envelope.Line(words, 120)
		}
		lines = append(lines, line)
	}
	switch {
	case len(lines) == 0:
		lines = append(lines, "No agent is up.")
	case down > 0:
		lines = append(lines, fmt.Sprintf("%d more down", down))
	}
	for _, h := range v.Hosts {
		lines = append(lines, h.Name+": "+h.Summary(v.now))
	}
	if n := len(v.Needs); n > 0 {
		lines = append(lines, attention.Count(n)+": "+attention.Headline(v.Needs)+". `needs` lists them.")
	} else {
		lines = append(lines, "Nothing needs you.")
	}
	for _, note := range v.Notes {
		lines = append(lines, "! "+envelope.Line(note, 300))
	}
	return strings.Join(lines, "\n")
}
