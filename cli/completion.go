package cli

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/urfave/cli/v2"

	"netsky/home"
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
	hosts := func() (names []string) {
		_, list, _ := hostVerbs(a).hosts() // as with runtimes
		for _, h := range list {
			names = append(names, h.Name)
		}
		return names
	}
	c := Completer{Table: a.cli(), Home: a.home, Runtimes: runtimes, Hosts: hosts}
	if q.toHost() {
		c.Home = func() (home.Dir, error) { return home.Dir{}, fs.ErrNotExist } // what is there is not known here
	}
	for _, text := range c.Lines(q) {
		a.print("%s", text)
	}
	return true
}

// toHost takes --on and its host off the words, and reports whether they were there.
func (q *Question) toHost() bool {
	line := slices.DeleteFunc(slices.Clone(q.words), func(w string) bool { return w == "=" }) // see candidates
	host, rest, ok := onHost(line)
	if ok = ok && host != ""; ok {
		q.words = rest
	}
	return ok
}

func plain(words ...string) (list []candidate) {
	for _, w := range words {
		list = append(list, candidate{word: w})
	}
	return list
}
