package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"
)

func (a commandTable) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a shell script that completes verbs, options, agents, codes and ids",
		ArgsUsage: "bash|zsh|fish",
		Description: "bash: netsky completion bash > ~/.local/share/bash-completion/completions/netsky\n" +
			"zsh:  netsky completion zsh > DIR/_netsky (DIR: a directory in your $fpath)\n" +
			"fish: netsky completion fish > ~/.config/fish/completions/netsky.fish",
		Action: func(c *cli.Context) error {
			shell, err := one(c, "bash, zsh or fish")
			if err != nil {
				return err
			}
			script := Script(shell)
			if script == "" {
				return usagef("completion: %q: must be bash, zsh or fish", shell)
			}
			fmt.Fprint(a.stdout(), script)
			return nil
		},
	}
}

// completing answers a shell that asks for completions, and reports whether one asked.
func (a commandTable) completing(args []string) bool {
	q, ok := Asked(args)
	if !ok {
		return false
	}
	runtimes := func() []string {
		cfg, _ := a.cfg() // a broken netsky.toml names none
		return slices.Concat([]string{"claude", "codex", "demo"}, slices.Sorted(maps.Keys(cfg.Runtime)))
	}
	for _, text := range (Completer{Table: a.cli(), Home: a.home, Runtimes: runtimes}).Lines(q) {
		a.print("%s", text)
	}
	return true
}
