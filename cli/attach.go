package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/spawn"
	"netsky/tmux"
)

func (a paneVerbs) attachCommand() *cli.Command {
	return &cli.Command{
		Name:      "attach",
		Usage:     "attach to an agent's pane; C-b d leaves it",
		ArgsUsage: "[AGENT]",
		Description: "Outside tmux it attaches this terminal; inside netsky's own tmux it switches to the pane; inside another tmux it opens\n" +
			"a window there, which C-b C-b d leaves if that tmux also has the prefix C-b. The status line shows the keys.\n" +
			"Without AGENT it goes to agent0. The pane of an agent on another host, agent3@build1, is opened there, by your own ssh.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "read-only", Aliases: []string{"r"}, Usage: "only watch; keys are not sent to the agent"}},
		Action: func(c *cli.Context) error {
			id := agent.Root
			if c.NArg() > 0 {
				arg, err := one(c, "at most one agent")
				if err != nil {
					return err
				}
				host, ids, _, err := aimed(a).splitAt([]string{arg})
				if err != nil {
					return err
				}
				if host != "" {
					return a.attachAt(c, host, ids[0])
				}
				if id, err = agent.ParseAgent(arg); err != nil {
					return err
				}
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			list, err := l.Inspect(c.Context)
			if err != nil {
				return err
			}
			if st := list.Find(id); st.Pane() == "" {
				return spawn.NoPane(st)
			}
			return a.attach(c.Context, l.Tmux, id, c.Bool("read-only"))
		},
	}
}

// attachAt attaches to the pane of an agent on another host, by ssh.
func (a paneVerbs) attachAt(c *cli.Context, host string, id agent.ID) error {
	line := []string{"attach", string(id)}
	if c.Bool("read-only") {
		line = append(line, "--read-only")
	}
	return hostVerbs(a).on(c.Context, host, line)
}

// attach attaches to the agent's session. It returns only if that fails, or if it has
// switched or opened a window instead.
func (a paneVerbs) attach(ctx context.Context, s *tmux.Server, id agent.ID, readOnly bool) error {
	_, tty := view.Width(a.out)
	leave, err := tmux.Attach(ctx, tmux.AttachOptions{Server: s, Session: string(id), ReadOnly: readOnly, Terminal: tty, Outer: a.getenv("TMUX"), Environ: a.environ})
	switch {
	case errors.Is(err, tmux.ErrNoTerminal):
		return usagef("attach: not a terminal; `netsky peek %s` prints the screen", id)
	case leave != "":
		a.warn("opened %s in a new window of your tmux: %s", id, leave)
	}
	return err
}
