package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/proc"
	"netsky/spawn"
	"netsky/spawn/worktree"
)

//go:embed netsky.toml
var sampleConfig []byte

func (a *app) initCommand() *cli.Command {
	return &cli.Command{
		Name:        "init",
		Usage:       "write netsky.toml with its keys commented",
		Description: "Makes the home directory and writes a netsky.toml in which every key stands with its default, commented out. A\nnetsky.toml that is there is left alone.",
		Action: func(c *cli.Context) error {
			if err := a.notForClones("init"); err != nil {
				return err
			}
			if c.NArg() > 0 {
				return usagef("init: takes no arguments")
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			if _, err := h.Make(); err != nil {
				return err
			}
			_, err = h.ReadFile(home.ConfigFile, 1<<20)
			switch {
			case err == nil:
				a.print("%s: is there already, left as it is", h.Path(home.ConfigFile))
				return nil
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			if err := h.WriteFile(home.ConfigFile, sampleConfig, true); err != nil {
				return err
			}
			a.print("%s: written", h.Path(home.ConfigFile))
			return nil
		},
	}
}

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "which netsky this is",
		Action: func(*cli.Context) error { return a.version() },
	}
}

func (a *app) version() error {
	fmt.Fprintf(a.stdout(), "netsky %s %s %s/%s\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func (a *app) uninstallCommand() *cli.Command {
	return &cli.Command{
		Name:  "uninstall",
		Usage: "end everything and take netsky off this machine",
		Description: "Ends all agents, the ticker and the daemon, and removes the links named netsky on PATH that lead to this binary.\n" +
			"That is all: your mail, records, configuration and the clones' workspaces stay in the home directory, and the\n" +
			"binary stays in its checkout. What Claude Code and Codex have written in directories of their own (~/.claude,\n" +
			"~/.codex) is theirs and stays, also with --purge.\n\n" +
			"With --purge it also removes what netsky made in the home directory: all mail and records, netsky.toml, tmux.conf,\n" +
			"prompts, logs, and the workspaces with all that is in them. Your own files there stay, also among netsky's, and\n" +
			"are named. A git repository below the home with changes that are not committed, files that git ignores, stashes,\n" +
			"or commits that are on no remote stops a purge before anything is ended, as does any other file in a workspace.\n" +
			"Ignored directories (node_modules/) are removed with their repository, and are named first. A purge ends with 3\n" +
			"and removes nothing while something of a killed agent may still run; `netsky forget --unproved` settles that.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "purge", Usage: "also remove what netsky made in the home directory: mail, records, workspaces"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
		},
		Action: a.uninstall,
	}
}

func (a *app) uninstall(c *cli.Context) error {
	if id, err := a.self(); err != nil || id != agent.Owner {
		return usagef("uninstall: only the owner does that, from a terminal of their own")
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	purge := c.Bool("purge")
	_, err = os.Lstat(h.Root())
	there := err == nil
	var ignored []string
	if purge && there {
		if ignored, err = a.unsaved(c.Context, h, "nothing was ended or removed"); err != nil {
			return err
		}
	}
	for _, line := range firstOf(ignored) {
		a.warn("a purge removes what git ignores, too: %s", tilde(a, line))
	}
	if !c.Bool("yes") {
		if ok, err := a.confirm("uninstall", uninstallQuestion(a, h, purge)); err != nil || !ok {
			return err
		}
	}
	l, err := a.launcher()
	if err != nil {
		if l, err = a.launcherWithout(err, true); err != nil {
			return err
		}
	}
	if there {
		lock, err := h.Lock("uninstall")
		switch {
		case errors.Is(err, home.ErrLocked):
			return fmt.Errorf("another uninstall is at work: %w; nothing was done here", err)
		case err == nil: // else the disk may be full
			defer lock.Unlock()
		}
		rep := &downReport{a: a}
		_, err = l.Down(c.Context, spawn.DownOptions{
			Force: true, All: true, By: string(agent.Owner), Keep: a.keepRunning(h), Report: rep.progress,
			Within: a.withDaemon(c.Context, h, agent.Owner, rep),
		})
		full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
		switch {
		case err != nil && purge && full && c.Context.Err() == nil:
			a.warn("%v", err) // the purge makes room, and looks itself whether all has ended
		case err != nil && !exists(h.Root()):
			return fmt.Errorf("uninstall: another uninstall has removed %s meanwhile", tilde(a, h.Root()))
		case err != nil:
			return fmt.Errorf("uninstall: stopped: %w", err)
		}
	}
	switch {
	case !there:
		a.print("%s: is not there", tilde(a, h.Root()))
	case purge:
		if err := a.purge(c.Context, h, l); err != nil {
			return err
		}
	default:
		a.tellUnproved(l.Unproved())
		a.print("kept %s: mail, records, configuration (`%s` removes them)", tilde(a, h.Root()), a.purgeCommand(h))
	}
	return a.removeLinks()
}

// purgeCommand is a command line that purges the home once netsky is off PATH.
func (a *app) purgeCommand(h home.Dir) string {
	command := "netsky"
	if own, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			own = real // the link goes
		}
		command = shellWord(own)
	}
	if a.getenv("NETSKY_HOME") != "" {
		command = "NETSKY_HOME=" + shellWord(h.Root()) + " " + command
	}
	return command + " uninstall --purge"
}

// purge removes what netsky made in the home, after all has been ended. Nothing
// can be started there meanwhile.
func (a *app) purge(ctx context.Context, h home.Dir, l *spawn.Launcher) error {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, name := range []string{"up", agent.DaemonName} {
		lock, err := h.WaitLock(wait, name, nil)
		if errors.Is(err, home.ErrLocked) {
			return fmt.Errorf("uninstall: nothing was removed, as something is being started: %w", err)
		}
		if err != nil {
			return fmt.Errorf("uninstall: nothing was removed: %w", err)
		}
		defer lock.Unlock()
	}
	left, err := l.Remnants(ctx)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s still runs", left[0].What)
	}
	if err != nil {
		return fmt.Errorf("uninstall: nothing was removed: %w", err)
	}
	// Their records go with the home; without them nobody could tell any more.
	if list := l.Unproved(); len(list) > 0 {
		a.tellUnproved(list)
		if proc.Reaps { // elsewhere nothing ever is
			return exitError{exitPartly, errors.New("uninstall: what is known is ended, nothing was removed: it is not proved that nothing else runs")}
		}
	}
	// Once more: agents were at work until now.
	if _, err := a.unsaved(ctx, h, "everything is ended, nothing was removed"); err != nil {
		return err
	}
	own, err := h.Purge()
	if err != nil {
		return fmt.Errorf("uninstall: %s: not all was removed: %w", h.Root(), err)
	}
	if len(own) == 0 {
		a.print("removed %s", tilde(a, h.Root()))
		return nil
	}
	a.print("removed what netsky made in %s", tilde(a, h.Root()))
	const most = 20
	for _, name := range own[:min(len(own), most)] {
		a.print("left %s: not netsky's", tilde(a, h.Path(name)))
	}
	if len(own) > most {
		a.print("left %d more that are not netsky's", len(own)-most)
	}
	return nil
}

// tellUnproved warns of starts of which something may run.
func (a *app) tellUnproved(list []spawn.Remnant) {
	for _, r := range list {
		a.warn("not proved: %s", r.What)
	}
	if len(list) > 0 {
		a.warn("%s", unprovedHint(list))
	}
}

// tellCarried warns of the starts of which something may run and that an up has
// replaced just now: those that were the last ones before. It is said once.
func (a *app) tellCarried(now, before []spawn.Remnant) {
	if !proc.Reaps {
		return
	}
	var list []spawn.Remnant
	for _, r := range now {
		told := slices.ContainsFunc(before, func(b spawn.Remnant) bool {
			return b.Earlier && b.Agent == r.Agent && b.Start == r.Start && b.Since.Equal(r.Since)
		})
		if r.Earlier && !told {
			list = append(list, r)
		}
	}
	a.tellUnproved(list)
}

// unsaved refuses a purge while there is work that is nowhere else: in git
// repositories anywhere below the home, and in the workspaces. ignored are the
// directories that would go though no repository has them.
func (a *app) unsaved(ctx context.Context, h home.Dir, state string) (ignored []string, err error) {
	var loose []string
	list, err := os.ReadDir(h.Path(home.WorkDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		loose = append(loose, h.Path(home.WorkDir, e.Name()))
	}
	found, dirs, err := worktree.Find(ctx, h.Root(), loose...)
	if err != nil {
		return nil, fmt.Errorf("uninstall: %s: looking for work that is nowhere else: %w; %s", h.Root(), err, state)
	}
	if len(found) == 0 {
		return slices.DeleteFunc(dirs, func(d string) bool { return !strings.HasPrefix(d, h.Path(home.WorkDir)+"/") }), nil
	}
	var lines []string
	for _, f := range found {
		lines = append(lines, f.String())
	}
	return nil, fmt.Errorf("%s\nuninstall: that may be work that is nowhere else: push it or move it away first; %s", strings.Join(firstOf(lines), "\n"), state)
}

// firstOf is the beginning of a list that is too long to print.
func firstOf(lines []string) []string {
	const most = 20
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("%d more", len(lines)-most))
}

func uninstallQuestion(a *app, h home.Dir, purge bool) string {
	if purge {
		return fmt.Sprintf("End all agents and remove netsky and all that it made in %s, mail and records too?", tilde(a, h.Root()))
	}
	return fmt.Sprintf("End all agents and remove netsky? (%s stays)", tilde(a, h.Root()))
}

// confirm asks on a terminal; without one the answer has to be --yes.
func (a *app) confirm(verb, question string) (bool, error) {
	if _, ok := terminal(a.in); !ok {
		return false, usagef("%s: this is no terminal to ask on; --yes says yes", verb)
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	var answer string
	fmt.Fscanln(a.in, &answer)
	if answer != "y" && answer != "yes" {
		a.print("nothing done")
		return false, nil
	}
	return true, nil
}

// removeLinks removes what scripts/up put on PATH: links named netsky that lead
// to this binary. The binary itself lies in the checkout that built it and is
// left there.
func (a *app) removeLinks() error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("netsky's own path: %w", err)
	}
	if own, err = filepath.EvalSymlinks(own); err != nil {
		return err
	}
	for _, dir := range append(filepath.SplitList(a.getenv("PATH")), a.linkDirs()...) {
		link := filepath.Join(dir, "netsky")
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if to, err := filepath.EvalSymlinks(link); err != nil || to != own {
			continue
		}
		if err := os.Remove(link); err != nil {
			return err
		}
		a.print("removed %s (the binary %s stays with its checkout)", tilde(a, link), tilde(a, own))
	}
	return nil
}
