package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/console"
)

func startFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "type", Usage: "run them on this `RUNTIME`: claude, codex, demo or one of netsky.toml"},
		&cli.StringFlag{Name: "dir", Usage: "let them work in `DIR`; else where they worked before, at first in this git repository"},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		&cli.BoolFlag{Name: "yes", Usage: "grant agents full access if no permission mode is set; start more than 50 clones at once"},
	}, more...)
}

// upWish is what the words behind `up` ask for: agents by name, or a number of
// clones with those that go with them.
type upWish struct {
	named     bool
	agents    []agent.ID
	clones    int
	objective string
}

// upArgs reads the words. What is neither a number nor a name is an objective
// only if it can't be a slip of the fingers: an objective costs a turn.
func (a *app) upArgs(c *cli.Context) (u upWish, err error) {
	cfg, err := a.cfg()
	if err != nil {
		return u, err
	}
	if u.objective, err = objectiveFlag(c); err != nil {
		return u, err
	}
	u.clones = cfg.Agents.Clones
	counted := false
	for _, word := range c.Args().Slice() {
		id, notAgent := agent.ParseAgent(word)
		n, notNumber := strconv.Atoi(word)
		switch {
		case notNumber == nil && (counted || u.named):
			return u, usagef("up: %q: wants one number of clones, or agents by their names: netsky up agent1 agent2", word)
		case notNumber == nil:
			if n < 0 || n > agent.MaxClones {
				return u, usagef("up: %d clones: wants 0 to %d", n, agent.MaxClones)
			}
			u.clones, counted = n, true
		case notAgent == nil && counted:
			return u, usagef("up: %d and %s: wants a number of clones or agents by their names, not both", u.clones, id)
		case notAgent == nil:
			u.named = true
			if !slices.Contains(u.agents, id) {
				u.agents = append(u.agents, id)
			}
		case len(strings.Fields(word)) < 2:
			return u, usagef("up: %q: is neither a number nor an agent; an objective goes in quotes, a one-word objective after --objective", word)
		case u.objective != "":
			return u, usagef("up: %q: wants one objective", console.Brief(word, 40))
		default:
			u.objective = word
		}
	}
	if u.objective != "" && len(u.agents) > 1 {
		return u, usagef("up: one objective for %d agents: wants one agent; `netsky ask AGENT TEXT` writes to each", len(u.agents))
	}
	return u, nil
}

// objectiveFlag is the text of --objective.
func objectiveFlag(c *cli.Context) (string, error) {
	text := c.String("objective")
	if c.IsSet("objective") && console.Blank(text) {
		return "", usagef("%s: --objective: the text is empty", c.Command.Name)
	}
	return text, nil
}
