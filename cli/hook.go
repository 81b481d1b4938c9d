package cli

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"netsky/attention/approve"
	"netsky/claude"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
)

// hookCommand is what Claude Code runs at each event of an agent. If it fails, the agent
// continues: it blocks only a prompt that repeats delivered messages.
func (a agentVerbs) hookCommand() *cli.Command {
	return &cli.Command{
		Name: "hook", Usage: "record an event that Claude Code reports", ArgsUsage: "EVENT", Hidden: true,
		Description: "For Claude Code, which runs it at each event of an agent, with JSON on stdin. The event is written to state/events/\n" +
			"in netsky's home, where `netsky status` and the receiver read it.",
		Action: func(c *cli.Context) error {
			err := a.hook(c.Context, c.Args().First())
			if errors.Is(err, claude.ErrAgain) {
				return exitError{exitUsage, err} // 2 tells Claude Code to block the prompt
			}
			if err != nil {
				a.warn("hook: %v", err)
			}
			return nil
		},
	}
}

func (a agentVerbs) hook(ctx context.Context, event string) error {
	self, err := a.self()
	if err != nil || !self.IsAgent() {
		return err
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	a.forgive()
	b, err := a.bus()
	if err != nil {
		return err
	}
	return claude.HookRun{
		Home: h, Bus: b, Agent: self, Start: a.getenv("NETSKY_START"), ConfigDir: claude.ConfigDir(a.getenv), Out: a.out,
		Warn: func(err error) { a.warn("hook: %v", err) },
		Own: func() *approve.Own {
			cfg, err := a.cfg()
			return a.own(h, err == nil && cfg.Claude.CommitAndCheck == config.Allow)
		},
	}.Run(ctx, event, a.in)
}

// own returns what agents may do in their worktrees without asking, if the owner has said that they may.
func (a agentVerbs) own(h home.Dir, allowed bool) *approve.Own {
	if !allowed {
		return nil
	}
	return &approve.Own{Home: h, Check: fleet.CheckOf(a.config), Path: a.getenv("PATH")}
}
