package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/spawn"
)

//go:embed netsky.toml
var sampleConfig []byte

func (a *app) initCommand() *cli.Command {
	return &cli.Command{
		Name:        "init",
		Usage:       "write netsky.toml with every key commented",
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
			_, err = h.ReadFile(agent.ConfigFile, 1<<20)
			switch {
			case err == nil:
				a.print("%s: is there already, left as it is", h.Path(agent.ConfigFile))
				return nil
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			if err := h.WriteFile(agent.ConfigFile, sampleConfig, true); err != nil {
				return err
			}
			a.print("%s: written", h.Path(agent.ConfigFile))
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
		Description: "Ends all agents, the ticker and the daemon, and removes the link or binary that scripts/up put on PATH. Your mail,\n" +
			"records, configuration and the clones' workspaces stay in the home directory. With --purge they go too, except\n" +
			"when a workspace holds anything: work that is not pushed is never deleted.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "purge", Usage: "remove the home directory as well"},
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
	if !c.Bool("yes") {
		if ok, err := a.confirm(uninstallQuestion(a, h, purge)); err != nil || !ok {
			return err
		}
	}
	l, err := a.launcher()
	if err != nil {
		if l, err = a.launcherWithout(err, true); err != nil {
			return err
		}
	}
	if purge {
		if err := a.workIn(h); err != nil {
			return err
		}
	}
	if _, err := os.Stat(h.Dir()); err == nil {
		if err := h.SetDesired(agent.DaemonName, false, "owner"); err != nil {
			a.warn("%v", err)
		}
		rep := &downReport{a: a}
		_, err := l.Down(c.Context, spawn.DownOptions{Force: true, All: true, By: "owner", Keep: a.keepRunning(h), Report: rep.progress})
		if err := errors.Join(err, a.endDaemon(c.Context, h, rep)); err != nil {
			return fmt.Errorf("uninstall: stopped, as something does not end: %w", err)
		}
	}
	if err := a.removeLinks(); err != nil {
		return err
	}
	if purge {
		if err := os.RemoveAll(h.Dir()); err != nil {
			return err
		}
		a.print("removed %s", tilde(a, h.Dir()))
		return nil
	}
	a.print("kept %s: mail, records, configuration (`rm -r` it if you want)", tilde(a, h.Dir()))
	return nil
}

func uninstallQuestion(a *app, h agent.Home, purge bool) string {
	if purge {
		return fmt.Sprintf("End all agents and remove netsky and %s with all mail and records?", tilde(a, h.Dir()))
	}
	return fmt.Sprintf("End all agents and remove netsky? (%s stays)", tilde(a, h.Dir()))
}

// confirm asks on a terminal; without one the answer has to be --yes.
func (a *app) confirm(question string) (bool, error) {
	if _, ok := terminal(a.in); !ok {
		return false, usagef("uninstall: this is no terminal to ask on; --yes says yes")
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

// workIn refuses to go on when clones' workspaces hold anything.
func (a *app) workIn(h agent.Home) error {
	agents, err := os.ReadDir(h.Path("workspaces"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range agents {
		inside, err := os.ReadDir(h.Path("workspaces", e.Name()))
		if err != nil {
			return err
		}
		if len(inside) > 0 {
			return fmt.Errorf("%s: holds %s: it may be work that is nowhere else; move it away first, nothing was removed",
				h.Path("workspaces", e.Name()), inside[0].Name())
		}
	}
	return nil
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
	for _, dir := range filepath.SplitList(a.getenv("PATH")) {
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
