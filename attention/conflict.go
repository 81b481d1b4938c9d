package attention

import (
	"fmt"
	"slices"
	"strings"

	"netsky/work"
	"netsky/work/land"
	"netsky/work/merge"
)

// conflict is the need for somebody to decide whose change counts.
func conflict(k merge.Known) Need {
	n := Need{
		Kind: Conflict, Agents: k.Agents, About: Names(k.Agents), Since: k.Since, Text: strings.Join(k.Files, ", "),
		Title: "has work that conflicts with " + k.Target + " in " + files(k), Otherwise: "its work can't land; it is told",
		id: append([]string{k.Target}, k.Files...),
	}
	if k.Target != "" {
		n.Commands = []Command{{"Have it resolve that", land.Resolve(string(k.Agents[0]), k.Target)}}
	}
	n.Commands = append(n.Commands, Command{"Show whose work conflicts with what", "netsky work"})
	if len(k.Files) == 0 {
		n.Text = "the names of directories"
	}
	if k.More > 0 {
		n.Text += fmt.Sprintf(" and %d more", k.More)
	}
	if k.Target == "" {
		n.Title, n.Otherwise = "have work that conflicts in "+files(k), "whichever lands second has to resolve it; both are told"
	}
	for _, id := range k.Agents {
		n.id = append(n.id, string(id))
		n.Commands = append(n.Commands, Command{"Show what " + string(id) + " has changed", "netsky diff " + string(id)})
	}
	return n
}

// Stepwise reports whether what settles the need depends on how the agents' work is: one of two has to land
// first. AddStep adds the next step.
func (n Need) Stepwise() bool { return n.Kind == Conflict && len(n.Agents) == 2 }

// AddStep adds to a conflict between two agents the step that brings the work of one of them nearer to
// landing and can be taken now: what is the next step for it, by how the work is. Once it has landed, the
// conflict is the other's, with the branch.
func (n *Need) AddStep(list []work.State) {
	if !n.Stepwise() {
		return
	}
	var step Command
	for _, st := range list {
		next := Command{"First " + st.Does, st.Next}
		known := func(c Command) bool { return c.Line == next.Line } // among those to look at it with
		if !slices.Contains(n.Agents, st.Agent) || next.Line == "" || slices.ContainsFunc(n.Commands, known) {
			continue
		}
		if st.Proof == work.Checked {
			step = next
			break
		}
		if step.Line == "" {
			step = next
		}
	}
	if step.Line != "" {
		n.Commands = append(slices.Clip(n.Commands), step)
	}
}

// files words how many files are in a conflict.
func files(k merge.Known) string {
	switch n := len(k.Files) + k.More; n {
	case 0:
		return "directories"
	case 1:
		return "1 file"
	default:
		return fmt.Sprintf("%d files", n)
	}
}
