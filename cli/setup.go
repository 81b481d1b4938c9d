package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/config"
	"netsky/daemon/update"
	"netsky/fleet"
	"netsky/fleet/service"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link/team"
	"netsky/spawn"
)

// setupVerbs installs, examines and removes netsky.
type setupVerbs struct{ *app }

func (a setupVerbs) initCommand() *cli.Command {
	return &cli.Command{
		Name:        "init",
		Usage:       "write netsky.toml, with its keys commented out",
		Description: "Creates netsky's home, and in it a netsky.toml that lists the keys with their defaults, commented out. To a\nnetsky.toml that is there, it adds the keys that are not in it, commented out, and changes nothing else. A copy of a home\nit makes a home of its own, with the mail and the records, in which no agent was started yet.",
		Action: func(c *cli.Context) error {
			if err := a.may("init"); err != nil {
				return err
			}
			if c.NArg() > 0 {
				return usagef("init: takes no arguments")
			}
			h, err := a.home()
			if errors.Is(err, home.ErrCopied) {
				err = home.Adopt(h)
			}
			if err != nil {
				return err
			}
			if _, err := h.Make(); err != nil {
				return err
			}
			there, written, err := config.Init(h)
			words := "written"
			switch {
			case err != nil:
				return err
			case there && !written:
				words = "has every key already, left as it is"
			case there:
				words = "the keys that were not in it are added, commented out"
			}
			a.print("%s: %s", h.Path(home.ConfigFile), words)
			return nil
		},
	}
}

func (a setupVerbs) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version",
		Action: func(*cli.Context) error { return a.version() },
	}
}

func (a setupVerbs) version() error {
	fmt.Fprintf(a.stdout(), "netsky %s %s %s/%s\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func (a setupVerbs) uninstallCommand() *cli.Command {
	return &cli.Command{
		Name:  "uninstall",
		Usage: "end everything and remove netsky from PATH",
		Description: "Ends all agents, the ticker and the daemon, removes the service that `netsky service install` has made, and each link\n" +
			"named netsky on PATH that leads to this binary. The program itself stays. Your mail, records, configuration and the clones' workspaces stay in netsky's home.\n" +
			"What Claude Code and Codex have written to their own directories (~/.claude, ~/.codex) stays, even with --purge.\n\n" +
			"With --purge it also removes what netsky made in its home: all mail and records, netsky.toml, tmux.conf,\n" +
			"prompts, logs, and the workspaces with everything in them. Your own files there stay, even among netsky's, and are\n" +
			"listed. A purge ends and removes nothing while there is work that it would destroy: a git repository below the home\n" +
			"with uncommitted changes, files that git ignores, stashes, or commits that are on no remote; or any other file in a\n" +
			"workspace. Ignored directories (node_modules/) are removed with their repository and are listed first. While something\n" +
			"of a killed agent may still run, a purge removes nothing and exits with 3; see `netsky forget --unproved`.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "purge", Usage: "also remove what netsky made in its home: mail, records, workspaces"},
			&cli.BoolFlag{Name: "yes", Usage: "do not ask"},
		},
		Action: a.uninstall,
	}
}

func (a setupVerbs) uninstall(c *cli.Context) error {
	if err := a.may("uninstall"); err != nil {
		return err
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
		if w, err := workVerbs(a).workOf(nil); err == nil { // a broken home is purged as well
			w.Settle(c.Context)
		}
		if ignored, err = fleet.Unsaved(c.Context, h, "nothing was ended or removed"); err != nil {
			return err
		}
	}
	for _, line := range words.First(ignored) {
		a.warn("a purge also removes what git ignores: %s", tilde(a.app, line))
	}
	if !c.Bool("yes") {
		if ok, err := a.confirm("uninstall", uninstallQuestion(a.app, h, purge)); err != nil || !ok {
			return err
		}
	}
	l, err := a.launcher()
	if err != nil {
		if l, err = fleetVerbs(a).launcherWithout(err, true); err != nil {
			return err
		}
	}
	// First, as it would start again what is ended.
	gone, err := service.Uninstall(c.Context, daemonVerbs(a).serviceOf(h))
	for _, path := range gone.Removed {
		a.print("removed %s", tilde(a.app, path))
	}
	if err != nil {
		a.warn("service: %v", err)
	}
	if there {
		lock, err := h.Lock("uninstall")
		switch {
		case errors.Is(err, home.ErrLocked):
			return fmt.Errorf("another uninstall is running: %w; this one did nothing", err)
		case err == nil: // else the disk may be full
			defer lock.Unlock()
		}
		f := a.fleetOf(l)
		f.UI = ui{a.app, &view.Down{Printer: a.printer(false)}}
		_, err = f.Down(c.Context, fleet.DownRequest{Force: true, All: true})
		hostVerbs(a).hangUp(c.Context, h)
		full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
		switch {
		case err != nil && purge && full && c.Context.Err() == nil:
			a.warn("%v", err) // the purge frees space, and checks itself that everything has ended
		case err != nil && !exists(h.Root()):
			return fmt.Errorf("uninstall: another uninstall has meanwhile removed %s", tilde(a.app, h.Root()))
		case err != nil:
			return fmt.Errorf("uninstall: stopped: %w", err)
		}
	}
	self, outside := team.LoadSelf(h) // a purge removes it
	switch {
	case !there:
		a.print("%s: does not exist", tilde(a.app, h.Root()))
	case purge:
		if err := a.purge(c.Context, h, l); err != nil {
			return err
		}
	default:
		a.fleetOf(l).TellUnproved(l.Unproved())
		a.print("kept %s: mail, records, configuration (`%s` removes them)", tilde(a.app, h.Root()), a.purgeCommand(h))
	}
	if outside == nil && !self.IsOwner() {
		a.print("%s stays a host of the team of %s: `netsky link remove %[1]s` there shuts it out", self.Name, self.Owner)
	}
	return a.removeLinks()
}

// purgeCommand returns a command that purges the home once netsky is off PATH.
func (a setupVerbs) purgeCommand(h home.Dir) string {
	command := "netsky"
	if own, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			own = real // the link will be gone
		}
		command = advice.Word(own)
	}
	if a.getenv("NETSKY_HOME") != "" {
		command = "NETSKY_HOME=" + advice.Word(h.Root()) + " " + command
	}
	return command + " uninstall --purge"
}

func uninstallQuestion(a *app, h home.Dir, purge bool) string {
	if purge {
		about := ""
		switch self, err := team.LoadSelf(h); {
		case err != nil: // it is in no team
		case self.IsOwner():
			about = "This is the owner's host: the team ends for all its hosts.\n"
		default:
			about = fmt.Sprintf("This is %s in the team of %s, where `netsky link remove %[1]s` then takes it off the list.\n", self.Name, self.Owner)
		}
		return about + fmt.Sprintf("End all agents and remove netsky and everything it made in %s, including mail and records?", tilde(a, h.Root()))
	}
	return fmt.Sprintf("End all agents and remove netsky? (%s stays)", tilde(a, h.Root()))
}

// confirm asks on the terminal; without one it requires --yes.
func (a setupVerbs) confirm(verb, question string) (bool, error) {
	if _, ok := view.Width(a.in); !ok {
		return false, usagef("%s: not a terminal; use --yes to confirm", verb)
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	var answer string
	fmt.Fscanln(a.in, &answer)
	if answer != "y" && answer != "yes" {
		a.print("nothing was done")
		return false, nil
	}
	return true, nil
}

// purge removes what netsky made in the home, after everything has ended.
func (a setupVerbs) purge(ctx context.Context, h home.Dir, l *spawn.Launcher) error {
	left, err := fleet.Purge(ctx, l, a.fleetOf(l).TellUnproved)
	switch {
	case errors.Is(err, fleet.ErrUnproved):
		return exitError{exitPartly, fmt.Errorf("uninstall: %w", err)}
	case err != nil:
		return err
	case len(left) == 0:
		a.print("removed %s", tilde(a.app, h.Root()))
		return nil
	}
	a.print("removed what netsky made in %s", tilde(a.app, h.Root()))
	const most = 20
	for _, name := range left[:min(len(left), most)] {
		a.print("left %s: not netsky's", tilde(a.app, h.Path(name)))
	}
	if len(left) > most {
		a.print("left %d more that are not netsky's", len(left)-most)
	}
	a.print("netsky does not use this directory again until it is empty or you mark it: touch %s", advice.Word(h.Path(home.MarkerFile)))
	return nil
}

func (a setupVerbs) removeLinks() error {
	links, own, err := fleet.RemoveLinks(append(filepath.SplitList(a.getenv("PATH")), view.Caller{Getenv: a.getenv}.LinkDirs()...))
	for _, link := range links {
		a.print("removed %s (the program %s stays)", tilde(a.app, link), tilde(a.app, own))
	}
	if kept := update.Kept(own); exists(kept) {
		a.print("left %s, the program of before the last update, which other homes may share", tilde(a.app, kept))
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
