package cli

import (
	"fmt"
	"maps"
	"slices"

	"netsky/cli/complete"

	"github.com/urfave/cli/v2"
)

func (a *app) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "a script that completes verbs, options, agents, codes and ids in your shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "bash: netsky completion bash > ~/.local/share/bash-completion/completions/netsky\n" +
			"zsh:  netsky completion zsh > a directory of your $fpath/_netsky\n" +
			"fish: netsky completion fish > ~/.config/fish/completions/netsky.fish",
		Action: func(c *cli.Context) error {
			shell, err := one(c, "bash, zsh or fish")
			if err != nil {
				return err
			}
			script := complete.Script(shell)
			if script == "" {
				return usagef("completion: %q: wants bash, zsh or fish", shell)
			}
			fmt.Fprint(a.stdout(), script)
			return nil
		},
	}
}

// completing answers a shell that asks what could come next, and reports whether one
// does.
func (a *app) completing(args []string) bool {
	q, ok := complete.Asked(args)
	if !ok {
		return false
	}
	runtimes := func() []string {
		cfg, _ := a.cfg() // what can't be read names none
		return slices.Concat([]string{"claude", "codex", "demo"}, slices.Sorted(maps.Keys(cfg.Runtime)))
	}
	for _, text := range (complete.Completer{Table: a.cli(), Home: a.home, Runtimes: runtimes}).Lines(q) {
		a.print("%s", text)
	}
	return true
}
