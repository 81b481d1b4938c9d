// This file removes what netsky made: in its home, and the links on PATH. It
// removes nothing while anything of netsky runs or may run, or while the home contains
// work that exists nowhere else. A crash leaves a home that a second uninstall removes.

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/spawn"
	"netsky/work/land"
	"netsky/work/retire"
	"netsky/work/tree"
)

// ErrUnproved is returned by Purge if something of a killed agent may still run.
var ErrUnproved = errors.New("everything known has ended, but nothing was removed: there is no proof that nothing else runs")

// Purge removes what netsky made in the home, after everything has ended. Nothing can
// be started there meanwhile. left are the files there that are not netsky's. unproved
// is called with the starts of which something may run.
func Purge(ctx context.Context, l *spawn.Launcher, unproved func([]spawn.Remnant)) (left []string, err error) {
	h := l.Home
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, name := range []string{home.UpLock, home.DaemonLock, home.LinkServerLock, home.LandingLock} {
		lock, err := h.WaitLock(wait, name, nil)
		if errors.Is(err, home.ErrLocked) {
			what := map[bool]string{true: "work is landing", false: "something is being started"}[name == home.LandingLock]
			return nil, fmt.Errorf("uninstall: nothing was removed because %s: %w", what, err)
		}
		if err != nil {
			return nil, fmt.Errorf("uninstall: nothing was removed: %w", err)
		}
		defer lock.Unlock()
	}
	rest, err := l.Remnants(ctx)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%s still runs", rest[0].What)
	}
	if err != nil {
		return nil, fmt.Errorf("uninstall: nothing was removed: %w", err)
	}
	// Their records are removed with the home; without them nobody could know any more.
	if list := l.Unproved(); len(list) > 0 {
		unproved(list)
		if proc.Reaps { // elsewhere nothing ever is
			return nil, ErrUnproved
		}
	}
	// Once more: agents were working until now.
	if _, err := Unsaved(ctx, h, "everything has ended, nothing was removed"); err != nil {
		return nil, err
	}
	trees, err := tree.List(h)
	if err != nil {
		return nil, fmt.Errorf("uninstall: nothing was removed: %w", err)
	}
	for _, w := range trees { // so that their repositories forget them, and keep what they ended at
		if _, err := retire.Retire(ctx, retire.Options{Home: h, Directories: true}, w.Agent); err != nil {
			return nil, fmt.Errorf("uninstall: stopped before anything else was removed: %w", err)
		}
	}
	left, err = home.Purge(h)
	if err != nil {
		return nil, fmt.Errorf("uninstall: %s: could not remove everything: %w", h.Root(), err)
	}
	return left, nil
}

// Unsaved refuses a purge while there is work that exists nowhere else: in git
// repositories anywhere below the home, and in the workspaces. ignored are the
// directories that would be removed although no repository has them.
func Unsaved(ctx context.Context, h home.Dir, state string) (ignored []string, err error) {
	if err := tree.Sweep(ctx, h); err != nil { // what killed checks have left is nobody's work
		return nil, fmt.Errorf("uninstall: %w; %s", err, state)
	}
	if err := land.Unsettled(h); err != nil { // files of the owner's may be half written
		return nil, advice.With(fmt.Errorf("uninstall: %w; %s", err, state), "`netsky check` or `netsky land` settles it, or names what keeps it from that")
	}
	var loose []string
	list, err := os.ReadDir(h.Path(home.WorkDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		loose = append(loose, h.Path(home.WorkDir, e.Name()))
	}
	lines, judged, err := agents(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("uninstall: nobody can tell whether all work of the agents has landed: %w; %s", err, state)
	}
	found, dirs, err := tree.Find(ctx, h.Root(), loose...)
	if err != nil {
		return nil, fmt.Errorf("uninstall: %s: cannot check for work that exists nowhere else: %w; %s", h.Root(), err, state)
	}
	var advised []string
	if len(lines) > 0 {
		advised = append(advised, "land or remove the agents' work, or push their branches")
	}
	kept := len(lines)
	for _, f := range found {
		if !slices.Contains(judged, f.Dir) {
			lines = append(lines, f.String())
		}
	}
	if len(lines) == 0 {
		return slices.DeleteFunc(dirs, func(d string) bool { return !strings.HasPrefix(d, h.Path(home.WorkDir)+"/") }), nil
	}
	if len(lines) > kept {
		advised = append(advised, map[bool]string{true: "push it or move it away", false: "push or move away the rest"}[kept == 0])
	}
	return nil, fmt.Errorf("%s\nuninstall: this work may exist nowhere else; first %s; %s", strings.Join(first(lines), "\n"), strings.Join(advised, ", and "), state)
}

// agents returns why worktrees that netsky has made for agents can't be retired, and the directories
// of all.
func agents(ctx context.Context, h home.Dir) (lines, dirs []string, err error) {
	trees, err := tree.List(h)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range trees {
		v, err := retire.Judge(ctx, h, w)
		if err == nil {
			err = v.Err(w, true)
		}
		if err != nil {
			lines = append(lines, err.Error())
			if next := advice.Of(err); next != "" {
				lines = append(lines, "  "+next)
			}
		}
		dirs = append(dirs, w.Dir)
	}
	return lines, dirs, nil
}

// first returns the beginning of a list that is too long to print.
func first(lines []string) []string {
	const most = 20
	if len(lines) <= most {
		return lines
	}
	return append(slices.Clone(lines[:most]), fmt.Sprintf("%d more", len(lines)-most))
}

// RemoveLinks removes what scripts/up put on PATH: links named netsky that lead to this
// binary, from these directories. The binary itself stays.
func RemoveLinks(dirs []string) (links []string, own string, err error) {
	own, err = os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("netsky's own path: %w", err)
	}
	if own, err = filepath.EvalSymlinks(own); err != nil {
		return nil, "", err
	}
	for _, dir := range dirs {
		link := filepath.Join(dir, "netsky")
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if to, err := filepath.EvalSymlinks(link); err != nil || to != own {
			continue
		}
		if err := os.Remove(link); err != nil {
			return links, own, err
		}
		links = append(links, link)
	}
	return links, own, nil
}
