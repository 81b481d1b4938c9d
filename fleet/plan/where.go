package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"netsky/agent"
	"netsky/config"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/work/tree"
)

// dir returns where an agent works, by the first of: the flag, its own table, [agents],
// its last start, agent0's last start, the caller's directory.
func (p *Planner) dir(id agent.ID, flag, before string) (dir string, err error) {
	switch said := p.configured(id, flag); {
	case flag != "":
		dir, err = config.Expand(p.UserHome, flag)
	case said != "":
		dir, err = p.placed(said)
	default:
		if before == "" {
			if _, err := Before(p.Launcher.Home, agent.Root); err != nil {
				return "", err // this agent would work where agent0 does
			}
		}
		if dir = p.recorded(id, before); dir == "" {
			dir, err = p.Cwd()
		}
	}
	if err == nil && !utf8.ValidString(dir) { // launch files and records are JSON
		err = &UsageError{Err: fmt.Errorf("%s: directory %q: is not valid UTF-8", id, dir)}
	}
	return dir, err
}

func (p *Planner) configured(id agent.ID, flag string) string {
	return cmp.Or(flag, p.Config.Agent[id].Dir, p.Config.Agents.Dir)
}

// recorded returns where the agent, else agent0, was started last: for one that was in its
// worktree, the directory of the owner's that this stands for. A worktree that is not on record any more
// stands for nothing.
func (p *Planner) recorded(id agent.ID, before string) string {
	if _, ok := p.treeOf(id, before); before != "" && (ok || !tree.Within(p.Launcher.Home.Path(home.Workspace(id)), before)) {
		return p.Base(id, before)
	}
	root, _ := p.Launcher.Home.LoadLaunch(agent.Root)
	return root.Dir
}

// Cwd returns where agents work by default: Here, else the root of the git repository
// that contains the current directory, else that directory. A repository of the user's
// whole home directory does not count.
func (p *Planner) Cwd() (string, error) {
	if p.Here != "" {
		return p.Here, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", advice.With(fmt.Errorf("the current directory: it can't be found, or has been removed: %w", err), "cd to another one, or name one with --dir")
	}
	home := p.UserHome
	for d := dir; d != "/" && !Holds(d, home); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, nil
		}
	}
	return dir, nil
}

// Holds reports whether a directory is another one or contains it.
func Holds(dir, other string) bool {
	if other == "" {
		return false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(other); err == nil {
		other = real
	}
	return dir == other || strings.HasPrefix(other, strings.TrimSuffix(dir, "/")+"/")
}

// checkout returns the source tree in which this binary was built, if it is still there.
func checkout() (string, bool) {
	own, err := os.Executable()
	if err == nil {
		own, err = filepath.EvalSymlinks(own)
	}
	if err != nil {
		return "", false
	}
	root := filepath.Dir(filepath.Dir(own))
	if _, err := os.Lstat(filepath.Join(root, "scripts", "up")); err != nil {
		return "", false
	}
	mod, err := home.ReadOwn(filepath.Join(root, "go.mod"), 1<<20)
	return root, err == nil && bytes.HasPrefix(mod, []byte("module netsky\n"))
}

// OwnCheckout returns netsky's own source tree if agents of a first up would work there
// without an explicit request: they may edit it, and typing the README's first lines must
// not lead there.
func (p *Planner) OwnCheckout(ids []agent.ID, flag string) (dir string, ok bool, err error) {
	open := false // whether the directory must be chosen
	for _, id := range ids {
		before, err := Before(p.Launcher.Home, id)
		if err != nil {
			continue // Plans refuses it unless both are named
		}
		open = open || p.configured(id, flag) == "" && p.recorded(id, before.Dir) == ""
	}
	if !open {
		return "", false, nil
	}
	here, err := p.Cwd()
	if err != nil {
		return "", false, err
	}
	own, ok := checkout()
	return own, ok && Holds(own, here), nil
}

// Elsewhere returns the agents that work outside the directory here only because an
// earlier up has set it, and the directory of the first of them.
func (p *Planner) Elsewhere(plans []spawn.Plan, flag, here string) (agents []string, dir string) {
	for _, one := range plans {
		before, _ := p.Launcher.Home.LoadLaunch(one.Agent)
		if p.configured(one.Agent, flag) != "" || p.recorded(one.Agent, before.Dir) == "" || Holds(one.Dir, here) {
			continue
		}
		if agents = append(agents, string(one.Agent)); len(agents) == 1 {
			dir = one.Dir
		}
	}
	return agents, dir
}
