package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/internal/words"
)

func startFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "type", Usage: "run on `RUNTIME`: claude, codex, demo or one from netsky.toml"},
		&cli.StringFlag{Name: "dir", Usage: "work in `DIR` (default: as before; at first, this git repository or directory)"},
		&cli.BoolFlag{Name: "here", Usage: "clones work in that directory itself, not in git worktrees of their own"},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		&cli.BoolFlag{Name: "yes", Usage: "agree to the setup command of [work], grant agents full access if no permission mode is set; do not ask about more than 50 clones"},
	}, more...)
}

// upWish is what the arguments of `up` request: agents by name, or the team with a
// number of clones.
type upWish struct {
	named     bool
	agents    []agent.ID
	clones    int
	objective string
}

// upArgs reads the arguments. What is neither a number nor a name is an objective
// only if it can't be a typing error: an objective costs a turn.
func (a fleetVerbs) upArgs(c *cli.Context) (u upWish, err error) {
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
			return u, usagef("up: %q: give one number of clones, or agents by name: netsky up agent1 agent2", word)
		case notNumber == nil:
			if n < 0 || n > agent.MaxClones {
				return u, usagef("up: %d: the number of clones must be 0 to %d", n, agent.MaxClones)
			}
			u.clones, counted = n, true
		case notAgent == nil && counted:
			return u, usagef("up: %d and %s: give a number of clones or agents by name, not both", u.clones, id)
		case notAgent == nil:
			u.named = true
			if !slices.Contains(u.agents, id) {
				u.agents = append(u.agents, id)
			}
		case len(strings.Fields(word)) < 2:
			return u, usagef("up: %q: is neither a number nor an agent; put an objective in quotes, a one-word objective after --objective", word)
		case u.objective != "":
			return u, usagef("up: %q: is a second objective; give one", words.Brief(word, 40))
		default:
			u.objective = word
		}
	}
	if u.objective != "" && len(u.agents) > 1 {
		return u, usagef("up: an objective is for one agent, and %d are named; `netsky ask AGENT TEXT` writes to each", len(u.agents))
	}
	return u, nil
}

// objectiveFlag returns the text of --objective.
func objectiveFlag(c *cli.Context) (string, error) {
	text := c.String("objective")
	if c.IsSet("objective") && words.Blank(text) {
		return "", usagef("%s: --objective: the text is empty", c.Command.Name)
	}
	return text, nil
}
