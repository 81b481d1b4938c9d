package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/codex"
	"netsky/config"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/watch"
	"netsky/work/tree"
)

// agentVerbs are run by agents' programs or in their panes.
type agentVerbs struct{ *app }

func (a agentVerbs) codexCommand() *cli.Command {
	return &cli.Command{
		Name:      "codex",
		Usage:     "run one message through a clone's Codex thread",
		ArgsUsage: "N",
		Description: "Gives the clone's next message (--drain), or a text of yours (--prompt, as if agent0 sent it), to its Codex thread,\n" +
			"sends the answer to the sender, and only then files the message. The next call continues the same thread. The model\n" +
			"is --model, else AGENT_CODEX_MODEL, else `model` under [codex] in netsky.toml, else Codex's default. Sandbox and\n" +
			"approval are those under [codex], else Codex's defaults; anything that Codex asks for is declined, as nobody is there\n" +
			"to approve it. While the vendor's account can't be used, or a budget is used up, it exits with 3 and the message stays.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "prompt", Usage: "run `TEXT`"},
			&cli.BoolFlag{Name: "drain", Usage: "run the next message of the clone's inbox"},
			&cli.BoolFlag{Name: "serve", Usage: "run as the agent: take its mail as it arrives, and show Codex's own screen"},
			&cli.BoolFlag{Name: "headless", Usage: "with --serve: print a transcript instead of Codex's screen"},
			&cli.StringFlag{Name: "model", Usage: "use `MODEL`"},
			&cli.BoolFlag{Name: "fresh", Usage: "start a new thread"},
			&cli.DurationFlag{Name: "limit", Usage: "interrupt a turn that runs longer than `TIME`, such as 90s or 1h"},
		},
		Action: a.codexOnce,
	}
}

func (a agentVerbs) codexOnce(c *cli.Context) error {
	self, err := a.self()
	if err != nil {
		return err
	}
	id, err := oneAgent(c, "one clone's number; use --prompt for a text")
	if err != nil {
		return err
	}
	if self.IsClone() && (self != id || !c.Bool("serve")) {
		return a.may("codex")
	}
	if c.Bool("serve") {
		a.bears = config.Ignored // the watchdog may have started it again
	}
	h, err := a.madeHome()
	if err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	if c.Bool("serve") {
		return a.codexServe(c, l, cfg, id)
	}
	if err := beside(l, id, c.Bool("drain")); err != nil {
		return err
	}
	o := codex.OnceOptions{
		Agent: id, Drain: c.Bool("drain"), Fresh: c.Bool("fresh"), Limit: c.Duration("limit"),
		Model: c.String("model"), ConfigModel: cfg.Codex.Model, Sandbox: cfg.Codex.Sandbox, Approval: cfg.Codex.Approval, Goals: cfg.Codex.Goals,
		Home: h, Bus: l.Bus, Records: l.Journal, Env: execx.Inherited(a.environ), Out: a.out, Err: a.err,
	}
	if c.IsSet("prompt") {
		text := c.String("prompt")
		if words.Blank(text) {
			return usagef("codex: the text of --prompt is empty")
		}
		o.Prompt = &text
	}
	_, o.Terminal = view.Width(a.out)
	if o.Dir, o.Instructions, o.Startup, err = a.codexTexts(l, id); err != nil {
		return err
	}
	err = codex.Once(c.Context, o)
	switch {
	case errors.Is(err, codex.ErrUsage):
		return exitError{exitUsage, err}
	case errors.Is(err, codex.ErrNotYet):
		return exitError{exitPartly, err}
	case errors.Is(err, home.ErrLocked):
		return receiving(l, id)
	}
	return err
}

// beside refuses what would conflict with the running agent. A prompt for one that
// runs on Codex is sent to it.
func beside(l *spawn.Launcher, id agent.ID, drain bool) error {
	la, err := l.RunningLaunch(id)
	switch {
	case err != nil:
		return nil // the locks of its mailbox and thread decide
	case la.Runtime != (&codex.Runtime{}).Name():
		// That program would take the message, or two would speak for one agent.
		return exitError{exitUsage, advice.With(fmt.Errorf("%s: is running on %s, not on Codex", id, la.Runtime),
			"`netsky ask %s \"…\"` asks it there; `netsky down %[1]s` ends it", id)}
	case drain:
		return receiving(l, id)
	}
	return nil
}

// codexServe is the program in a resident Codex agent's pane.
func (a agentVerbs) codexServe(c *cli.Context, l *spawn.Launcher, cfg config.Config, id agent.ID) error {
	owner := phoneVerbs(a).phone(l.Home)
	owner.Config = cfg
	o := codex.ServeOptions{
		Agent: id, Start: a.getenv("NETSKY_START"), Fresh: c.Bool("fresh"), Headless: c.Bool("headless"), Limit: c.Duration("limit"),
		Model: c.String("model"), ConfigModel: cfg.Codex.Model, Sandbox: cfg.Codex.Sandbox, Approval: cfg.Codex.Approval, Goals: cfg.Codex.Goals, Compact: cfg.Codex.Compact,
		Home: l.Home, Bus: l.Bus, Records: l.Journal, Env: a.environ, Out: a.out,
		Memory: watch.BriefingOf(l, id), Edited: func(name string) { _ = tree.NoteStray(l.Home, id, name) }, Approve: ownerVerbs(a).approver(l, id, a.getenv("NETSKY_START")), Config: codex.ToolServer(l.Binary, l.Home, id, a.environ, owner.On()),
	}
	if own := cfg.Agent[id].Model; own != "" && o.Model == "" {
		o.Model = own
	}
	var err error
	if o.Dir, o.Instructions, o.Startup, err = a.codexTexts(l, id); err != nil {
		return err
	}
	return codex.Serve(c.Context, o)
}

// codexTexts returns the agent's directory, instructions and startup text.
func (a agentVerbs) codexTexts(l *spawn.Launcher, id agent.ID) (dir, instructions, startup string, err error) {
	in, err := a.planner(l).Prompt(id, "codex")
	if err != nil {
		return "", "", "", err
	}
	if instructions, err = prompts.Render(in); err != nil {
		return "", "", "", err
	}
	startup, err = prompts.Startup(in)
	return in.Dir, instructions, startup, err
}
