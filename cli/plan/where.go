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
	"netsky/agent/home"
	"netsky/cli/config"
	"netsky/spawn"
)

// dir is where an agent works: the flag, its own table, [agents], where it
// worked before, where agent0 works, and for a first up where the caller is.
func (p *Planner) dir(id agent.ID, flag, before string) (dir string, err error) {
	switch said := p.configured(id, flag); {
	case flag != "":
		dir, err = config.Expand(p.UserHome, flag)
	case said != "":
		dir, err = p.placed(said)
	default:
		if before == "" {
			if _, err := Before(p.Launcher.Home, agent.Root); err != nil {
				return "", err // where agent0 works, this one would too
			}
		}
		if dir = p.recorded(before); dir == "" {
			dir, err = p.Cwd()
		}
	}
	if err == nil && !utf8.ValidString(dir) { // launch files and records are JSON
		err = &UsageError{fmt.Errorf("%s: directory %q: is not valid UTF-8", id, dir)}
	}
	return dir, err
}

func (p *Planner) configured(id agent.ID, flag string) string {
	return cmp.Or(flag, p.Config.Agent[id].Dir, p.Config.Agents.Dir)
}

// recorded is where an agent, or else agent0, was started before.
func (p *Planner) recorded(before string) string {
	if before != "" {
		return before
	}
	root, _ := p.Launcher.Home.LoadLaunch(agent.Root)
	return root.Dir
}

// Cwd is where agents work if nobody has said it: what the caller has chosen,
// the root of the repository that holds the current directory, or that directory
// itself. The person's own directory is not taken for a repository: whoever keeps
// it in git does not mean all of it.
func (p *Planner) Cwd() (string, error) {
	if p.Here != "" {
		return p.Here, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home := p.UserHome
	for d := dir; d != "/" && !Holds(d, home); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, nil
		}
	}
	return dir, nil
}

// Holds reports whether a directory is another or lies above it.
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

// checkout is the source tree in which this binary was built, if it lies in it.
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

// OwnCheckout is netsky's own source tree if agents of a first up would work there
// though nobody has said so: they may edit what is there, so nobody gets it by typing
// the README's first lines.
func (p *Planner) OwnCheckout(ids []agent.ID, flag string) (dir string, ok bool, err error) {
	open := false // whether somebody has to say it
	for _, id := range ids {
		before, err := Before(p.Launcher.Home, id)
		if err != nil {
			continue // it is refused, or both are named
		}
		open = open || p.configured(id, flag) == "" && p.recorded(before.Dir) == ""
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

// Elsewhere are the agents that work elsewhere than where the caller is, when only the
// record of an earlier up says so, and where the first of them works.
func (p *Planner) Elsewhere(plans []spawn.Plan, flag, here string) (agents []string, dir string) {
	for _, one := range plans {
		before, _ := p.Launcher.Home.LoadLaunch(one.Agent)
		if p.configured(one.Agent, flag) != "" || p.recorded(before.Dir) == "" || Holds(one.Dir, here) {
			continue
		}
		if agents = append(agents, string(one.Agent)); len(agents) == 1 {
			dir = one.Dir
		}
	}
	return agents, dir
}
