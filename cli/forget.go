package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"netsky/agent"
)

func (a *app) forgetCommand() *cli.Command {
	return &cli.Command{
		Name:      "forget",
		Usage:     "take an agent that is down off status",
		ArgsUsage: "AGENT…",
		Description: "Nothing is deleted: its mail, records, prompt and workspace stay where they are, and what still waits for it is\n" +
			"named. It shows again when it is started, or when a new message waits for it.",
		Action: a.forget,
	}
}

func (a *app) forget(c *cli.Context) error {
	if err := a.notForClones("forget"); err != nil {
		return err
	}
	ids, err := agentArgs(c)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return usagef("forget: wants an agent that is down; `netsky status` lists them")
	}
	self, err := a.self()
	if err != nil {
		return err
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	list, err := l.Inspect(c.Context)
	if err != nil { // what can't be seen may run
		return err
	}
	var errs []error
	done := 0
	for _, id := range ids {
		st := list.Find(id)
		switch {
		case !l.Bus.Exists(id):
			errs = append(errs, fmt.Errorf("%s: was never started", id))
			continue
		case st.State != agent.Down || st.Wanted:
			errs = append(errs, fmt.Errorf("%s: is %s; `netsky down %s` ends it", id, st.State, id))
			continue
		}
		if err := l.Home.Forget(id, string(self), st.Waiting()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
			continue
		}
		done++
		kept := "its mail stays in " + tilde(a, l.Home.Path(agent.Mailbox(id)))
		if n := st.Waiting(); n > 0 {
			kept += fmt.Sprintf(" (%d not read)", n)
		}
		if work := l.Home.Path(agent.Workspace(id)); exists(work) {
			kept += ", its work in " + tilde(a, work)
		}
		a.print("%s: forgotten; %s; `netsky up %s` brings it back", id, kept, id)
	}
	err = errors.Join(errs...)
	if err != nil && done > 0 {
		return exitError{exitPartly, err}
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
