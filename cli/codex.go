package cli

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/program"
	"netsky/codex"
	"netsky/prompts"
	"netsky/spawn"
)

func (a *app) codexCommand() *cli.Command {
	return &cli.Command{
		Name:      "codex",
		Usage:     "bring one message through a clone's Codex thread",
		ArgsUsage: "N",
		Description: "Hands the clone's next message (--drain), or a text of yours (--prompt, which counts as from agent0), to its\n" +
			"Codex thread, sends the answer to whoever wrote the message, and only then files it. The thread is gone on\n" +
			"with at the next call. The model is that of --model, else AGENT_CODEX_MODEL, else `model` under [codex] in\n" +
			"netsky.toml, else Codex's own; sandbox and approval are those of [codex], else Codex's own, and what Codex asks\n" +
			"is declined, as nobody is there to say yes.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "prompt", Usage: "hand over `TEXT`"},
			&cli.BoolFlag{Name: "drain", Usage: "hand over the next message of the clone's inbox"},
			&cli.BoolFlag{Name: "serve", Usage: "be the agent: take its mail as it comes, and show Codex's own screen"},
			&cli.BoolFlag{Name: "headless", Usage: "with --serve: print a transcript instead of Codex's screen"},
			&cli.StringFlag{Name: "model", Usage: "run on this `MODEL`"},
			&cli.BoolFlag{Name: "fresh", Usage: "forget the thread and begin another"},
			&cli.DurationFlag{Name: "limit", Usage: "interrupt a turn that runs longer than `TIME`, such as 90s or 1h"},
		},
		Action: a.codexOnce,
	}
}

func (a *app) codexOnce(c *cli.Context) error {
	self, err := a.self()
	if err != nil {
		return err
	}
	id, err := oneAgent(c, "one clone's number; a text for it goes behind --prompt")
	if err != nil {
		return err
	}
	if self.IsClone() && (self != id || !c.Bool("serve")) {
		return a.notForClones("codex")
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
		Model: c.String("model"), ConfigModel: cfg.Codex.Model, Sandbox: cfg.Codex.Sandbox, Approval: cfg.Codex.Approval,
		Home: h, Bus: l.Bus, Records: l.Journal, Env: program.Inherited(a.environ), Out: a.out, Err: a.err,
	}
	if c.IsSet("prompt") {
		text := c.String("prompt")
		if blank(text) {
			return usagef("codex: the text of --prompt is empty")
		}
		o.Prompt = &text
	}
	_, o.Terminal = terminal(a.out)
	if o.Dir, o.Instructions, o.Startup, err = a.codexTexts(l, cfg, id); err != nil {
		return err
	}
	err = codex.Once(c.Context, o)
	switch {
	case errors.Is(err, codex.ErrUsage):
		return exitError{exitUsage, err}
	case errors.Is(err, home.ErrLocked):
		return receiving(l, id)
	}
	return err
}

// A notCodex is the error of a Codex turn asked of an agent that is running on
// another runtime: the turn would be taken by that one, or speak for two.
type notCodex struct {
	id      agent.ID
	runtime string
}

func (e notCodex) Error() string {
	return fmt.Sprintf("%s: is running on %s, not on Codex", e.id, e.runtime)
}

// beside refuses what a running agent leaves no room for. A prompt for one that
// runs on Codex is sent to it.
func beside(l *spawn.Launcher, id agent.ID, drain bool) error {
	la, err := l.RunningLaunch(id)
	switch {
	case err != nil:
		return nil // whoever has its mailbox or its thread says so
	case la.Runtime != (&codex.Runtime{}).Name():
		return exitError{exitUsage, notCodex{id, la.Runtime}}
	case drain:
		return receiving(l, id)
	}
	return nil
}

// codexServe is the program in a resident Codex agent's pane.
func (a *app) codexServe(c *cli.Context, l *spawn.Launcher, cfg config, id agent.ID) error {
	o := codex.ServeOptions{
		Agent: id, Start: a.getenv("NETSKY_START"), Fresh: c.Bool("fresh"), Headless: c.Bool("headless"), Limit: c.Duration("limit"),
		Model: c.String("model"), ConfigModel: cfg.Codex.Model, Sandbox: cfg.Codex.Sandbox, Approval: cfg.Codex.Approval,
		Home: l.Home, Bus: l.Bus, Records: l.Journal, Env: a.environ, Out: a.out,
		Approve: a.approver(l, id, a.getenv("NETSKY_START")), Config: a.toolServer(l, id),
	}
	if own := cfg.Agent[id].Model; own != "" && o.Model == "" {
		o.Model = own
	}
	var err error
	if o.Dir, o.Instructions, o.Startup, err = a.codexTexts(l, cfg, id); err != nil {
		return err
	}
	return codex.Serve(c.Context, o)
}

// toolServer is the thread's configuration that gives the model netsky's tools.
// They ask nobody: what they do, the agent may do by the verbs as well, and each
// refuses what is not the agent's to do. Codex starts the server with an empty
// environment.
func (a *app) toolServer(l *spawn.Launcher, id agent.ID) map[string]any {
	env := map[string]any{"AGENT_N": id.N(), "NETSKY_HOME": l.Home.Root()}
	for _, name := range []string{"NETSKY_START", "NETSKY_TMUX_SOCKET", "HOME", "PATH"} {
		if v := a.getenv(name); v != "" {
			env[name] = v
		}
	}
	return map[string]any{"mcp_servers.agent": map[string]any{ // beside the person's own
		"command": l.Binary, "args": []any{"io", "serve", "-s", "agent", "--tools-only"}, "env": env,
		"default_tools_approval_mode": "approve",
	}}
}

// codexTexts are where the agent works and what it is told.
func (a *app) codexTexts(l *spawn.Launcher, cfg config, id agent.ID) (dir, instructions, startup string, err error) {
	before, err := launchBefore(l.Home, id)
	if err != nil && !named(cfg.Agent[id].Dir, cfg.Agents.Dir) {
		return "", "", "", err
	}
	if dir, err = a.agentDir(l, cfg, id, "", before.Dir); err != nil {
		return "", "", "", err
	}
	extra, err := a.addenda(cfg, id)
	if err != nil {
		return "", "", "", err
	}
	in := prompts.Input{Agent: id, Dir: dir, Owner: cfg.Owner.Name, Machine: machine(), Home: l.Home, Runtime: "codex", Addenda: extra}
	if instructions, err = prompts.Render(in); err != nil {
		return "", "", "", err
	}
	startup, err = prompts.Startup(in)
	return dir, instructions, startup, err
}
