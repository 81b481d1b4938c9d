package needs

import (
	"fmt"
	"strings"

	"netsky/spawn/worktree/forecast"
)

// conflict is the need for somebody to decide whose change counts.
func conflict(k forecast.Known) Need {
	n := Need{
		Kind: Conflict, Agents: k.Agents, About: Names(k.Agents), Since: k.Since, Text: strings.Join(k.Files, ", "),
		Title: "has work that conflicts with " + k.Target + " in " + files(k), Otherwise: "its work can't land",
		Commands: []Command{{"Show whose work conflicts with what", "netsky work"}},
		id:       append([]string{k.Target}, k.Files...),
	}
	if len(k.Files) == 0 {
		n.Text = "the names of directories"
	}
	if k.More > 0 {
		n.Text += fmt.Sprintf(" and %d more", k.More)
	}
	told := "; it was told"
	if k.Target == "" {
		n.Title, n.Otherwise, told = "have work that conflicts in "+files(k), "whichever lands second has to resolve it", "; both were told"
	}
	if k.Told {
		n.Otherwise += told
	}
	for _, id := range k.Agents {
		n.id = append(n.id, string(id))
		n.Commands = append(n.Commands, Command{"Show what " + string(id) + " has changed", "netsky diff " + string(id)})
	}
	switch {
	case k.Target != "":
		n.Commands = append(n.Commands, Command{"Have it resolve that", fmt.Sprintf("netsky ask %s \"merge %s into your branch and resolve the conflicts\"", k.Agents[0], k.Target)})
	case len(k.Agents) == 2:
		n.Commands = append(n.Commands,
			Command{"Land one of them first", fmt.Sprintf("netsky land %s", k.Agents[0])},
			Command{"Then have the other resolve it", fmt.Sprintf("netsky ask %s \"merge what %s has landed into your branch and resolve the conflicts\"", k.Agents[1], k.Agents[0])})
	}
	return n
}

// files counts those of a conflict.
func files(k forecast.Known) string {
	switch n := len(k.Files) + k.More; n {
	case 0:
		return "directories"
	case 1:
		return "1 file"
	default:
		return fmt.Sprintf("%d files", n)
	}
}
