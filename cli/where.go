package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/spawn"
)

// agentDir is where an agent works: the flag, its own table, [agents], where it
// worked before, where agent0 works, and for a first up where the caller is.
func (a *app) agentDir(l *spawn.Launcher, c config, id agent.ID, flag, before string) (dir string, err error) {
	switch said := configuredDir(c, id, flag); {
	case flag != "":
		dir, err = a.expand(flag)
	case said != "":
		dir, err = a.placed(said)
	default:
		if before == "" {
			if _, err := launchBefore(l.Home, agent.Root); err != nil {
				return "", err // where agent0 works, this one would too
			}
		}
		if dir = recordedDir(l, id, before); dir == "" {
			dir, err = a.here()
		}
	}
	if err == nil && !utf8.ValidString(dir) { // launch files and records are JSON
		err = usagef("%s: directory %q: is not valid UTF-8", id, dir)
	}
	return dir, err
}

func configuredDir(c config, id agent.ID, flag string) string {
	for _, d := range []string{flag, c.Agent[id].Dir, c.Agents.Dir} {
		if d != "" {
			return d
		}
	}
	return ""
}

// recordedDir is where an agent, or else agent0, was started before.
func recordedDir(l *spawn.Launcher, id agent.ID, before string) string {
	if before != "" {
		return before
	}
	root, _ := l.Home.LoadLaunch(agent.Root)
	return root.Dir
}

// here is where agents work if nobody has said it: what the caller has chosen,
// the root of the repository that holds the current directory, or that directory
// itself. The person's own directory is not taken for a repository: whoever keeps
// it in git does not mean all of it.
func (a *app) here() (string, error) {
	if a.chosenDir != "" {
		return a.chosenDir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home := a.getenv("HOME")
	for d := dir; d != "/" && !holds(d, home); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d, nil
		}
	}
	return dir, nil
}

// holds reports whether a directory is another or lies above it.
func holds(dir, other string) bool {
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

// chooseDir settles where the agents of a first up work, when that would be
// netsky's own checkout: they may edit what is there, so nobody gets it by
// typing the README's first lines.
func (a *app) chooseDir(l *spawn.Launcher, ids []agent.ID, flag string) error {
	cfg, err := a.cfg()
	if err != nil {
		return err
	}
	open := false // whether somebody has to say it
	for _, id := range ids {
		before, err := launchBefore(l.Home, id)
		if err != nil {
			continue // it is refused, or both are named
		}
		open = open || configuredDir(cfg, id, flag) == "" && recordedDir(l, id, before.Dir) == ""
	}
	if !open {
		return nil
	}
	here, err := a.here()
	if err != nil {
		return err
	}
	own, ok := checkout()
	if !ok || !holds(own, here) {
		return nil
	}
	if _, ok := terminal(a.in); !ok {
		return exitError{exitUsage, errOwnCheckout{own}}
	}
	fmt.Fprintf(a.err, "This is netsky's own checkout, %s.\nIn which directory shall the agents work? They may edit what is there (. is this one): ", tilde(a, own))
	answer, err := readLine(a.in)
	if err != nil && answer == "" {
		return err
	}
	if answer = strings.TrimSpace(answer); answer == "" {
		return exitError{exitUsage, errOwnCheckout{own}}
	}
	dir, err := a.expand(answer)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("%s: is not a directory; nothing was started", dir)
	}
	a.chosenDir = dir
	return nil
}

// errOwnCheckout reports agents that would work in netsky's own checkout though
// nobody said so.
type errOwnCheckout struct{ dir string }

func (e errOwnCheckout) Error() string {
	return e.dir + ": is netsky's own checkout, where agents work only if you say so; nothing was started"
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

// tellWhere says that agents work elsewhere than where the caller is, when only
// the record of an earlier up says so.
func (a *app) tellWhere(l *spawn.Launcher, plans []spawn.Plan, flag string) {
	cfg, err := a.cfg()
	if err != nil {
		return
	}
	here, err := a.here()
	if err != nil {
		return
	}
	var elsewhere []string
	dir := "" // where the first of them works
	for _, p := range plans {
		before, _ := l.Home.LoadLaunch(p.Agent)
		if configuredDir(cfg, p.Agent, flag) != "" || recordedDir(l, p.Agent, before.Dir) == "" || holds(p.Dir, here) {
			continue
		}
		if elsewhere = append(elsewhere, string(p.Agent)); len(elsewhere) == 1 {
			dir = p.Dir
		}
	}
	if len(elsewhere) == 0 {
		return
	}
	a.warn("%s works in %s, as before; you are in %s", elsewhere[0], tilde(a, dir), tilde(a, here))
	which := strings.Join(elsewhere, " ")
	fmt.Fprintln(a.err, a.called("to have "+which+" work here: netsky down "+which+", then netsky up "+which+" --dir "+shellWord(here)+"; `dir` under [agents] in netsky.toml sets it for good"))
}

// inOtherDir is the error of a --dir that agents which are up can't obey.
type inOtherDir struct {
	agents []string
	dir    string // where the first of them works
	wanted string
}

func disobeyedDir(plans []spawn.Plan, states spawn.Statuses, flag string) error {
	if flag == "" {
		return nil
	}
	e := inOtherDir{}
	for _, p := range plans {
		st := states.Find(p.Agent)
		if !st.Alive() || st.Dir == "" || st.Dir == p.Dir {
			continue
		}
		if e.agents = append(e.agents, string(p.Agent)); len(e.agents) == 1 {
			e.dir, e.wanted = st.Dir, p.Dir
		}
	}
	if len(e.agents) == 0 {
		return nil
	}
	return exitError{exitPartly, e}
}

func (e inOtherDir) Error() string {
	verb := "works"
	if len(e.agents) > 1 {
		verb = "work"
	}
	return fmt.Sprintf("%s %s in %s: left so, as up ends no agent", strings.Join(e.agents, ", "), verb, e.dir)
}

// readLine reads a line and nothing behind it.
func readLine(in io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < 4096; {
		n, err := in.Read(b)
		if n > 0 && b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[:n]...)
		if err != nil {
			return string(line), err
		}
	}
	return "", errors.New("the line is too long")
}
