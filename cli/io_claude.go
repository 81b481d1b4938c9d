package cli

import (
	"context"
	"errors"
	"os"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/mcp"
	"netsky/claude"
	"netsky/config"
	"netsky/home"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/tmux"
	"netsky/watch"
)

// serveClaude runs the server of an agent on Claude Code, which also holds its mailbox.
func (a agentVerbs) serveClaude(ctx context.Context, l *spawn.Launcher, o mcp.Options) error {
	session := &claude.Session{
		Home: l.Home, Agent: o.Agent, Start: o.Start, PID: a.claudePID(l.Home, o), ConfigDir: claude.ConfigDir(a.getenv),
		Pane: &tmux.TaggedPane{Server: l.Tmux, Tag: spawn.TagStart, Value: o.Start},
	}
	defer session.Close()
	state, err := claude.LoadState(l.Home, o.Agent)
	if err != nil {
		a.logIO("can't read which conversation it continues", err)
	}
	startup, err := a.startup(l, o.Agent)
	if err != nil {
		a.logIO("can't render the startup text", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := courier.Events(ctx, l.Home, l.Bus, o.Agent)
	if err != nil {
		return nil // ctx has ended
	}
	defer events.Close()
	o.Channel = a.config.Claude.Delivery == "channel"
	var server *mcp.Server
	c := courier.Options{
		Agent: o.Agent, Start: o.Start, Home: l.Home, Bus: l.Bus, Runtime: session.Courier(), Events: events,
		Records: o.Records, Startup: startup, Fresh: !state.Used, Log: o.Log,
		Memory: watch.BriefingOf(l, o.Agent),
	}
	if o.Channel {
		c.Notify = func(ctx context.Context, text string, meta map[string]string) error {
			err := server.Notify(ctx, text, meta)
			if errors.Is(err, mcp.ErrNotReady) {
				return courier.ErrNotReady
			}
			return err
		}
	}
	mail := courier.New(c)
	o.Mail = mail
	server = mcp.New(o)
	over := make(chan error, 1)
	go func() { over <- mail.Run(ctx) }()
	err = server.Serve(ctx)
	cancel()
	return errors.Join(err, <-over)
}

// claudePID returns the pid of the agent's program, our parent.
func (a agentVerbs) claudePID(h home.Dir, o mcp.Options) int {
	if k, err := h.LoadKeeper(o.Agent); err == nil && k.Start == o.Start && k.PID > 0 {
		return k.PID
	}
	return os.Getppid()
}

// startup returns the text in front of a new conversation's first message.
func (a agentVerbs) startup(l *spawn.Launcher, id agent.ID) (string, error) {
	la, err := l.Home.LoadLaunch(id)
	if err != nil {
		return "", err
	}
	return prompts.Startup(a.planner(l).Facts(la))
}

// forgive makes a broken netsky.toml a warning, so that mail does not stop while it is
// edited. What can't be read has its defaults.
func (a agentVerbs) forgive() {
	a.bears = config.Parts
	if _, err := a.cfg(); err != nil {
		a.warn("%v; continuing with the defaults", err)
		a.config, a.cfgErr = config.Default(), nil
	}
}
