package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex/appserver"
	"netsky/cost/breaker"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/tmux"
	"netsky/watch/backoff"
)

const firstTmux = "3.2" // the oldest tmux that netsky drives

func (e *exam) path() string { return execx.Value(e.Environ, "PATH") }

func checkTmux(ctx context.Context, e *exam) []Finding {
	file := execx.Find(e.path(), "tmux")
	if file == "" {
		return []Finding{{Level: Wrong, Text: "tmux is not on the PATH; no agent can be started", Do: "install tmux " + firstTmux + " or newer"}}
	}
	s := &tmux.Server{Env: e.Environ}
	version, err := s.Version(ctx)
	if err != nil {
		return []Finding{failed(Wrong, file, err, "reinstall tmux")}
	}
	if !newEnough(version) {
		return []Finding{{Level: Wrong, Text: fmt.Sprintf("tmux %s (%s) is too old", version, file), Do: "install tmux " + firstTmux + " or newer"}}
	}
	list := []Finding{ok("tmux %s (%s)", version, file)}
	if e.Launcher == nil {
		return list
	}
	socket := e.Launcher.Tmux.Socket
	switch panes, err := e.Launcher.Tmux.Panes(ctx); {
	case err == nil && len(panes) == 0, errors.Is(err, tmux.ErrNoServer):
		list = append(list, ok("nothing runs on socket %s", socket))
	case err == nil:
		list = append(list, ok("server %s answers, %s", socket, plural(len(panes), "pane")))
	default:
		list = append(list, failed(Wrong, "server "+socket, err, "if it does not answer, `netsky down --all --force` ends the agents without it"))
	}
	return list
}

// newEnough parses "3.3a", "next-3.5" and "openbsd-7.4". An unknown form is trusted.
func newEnough(version string) bool {
	version = strings.TrimPrefix(version, "next-")
	major, rest, _ := strings.Cut(version, ".")
	minor := strings.TrimRight(rest, "abcdefghijklmnopqrstuvwxyz-")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err != nil || err2 != nil || a > 3 || a == 3 && b >= 2
}

func checkGit(ctx context.Context, e *exam) []Finding {
	file := execx.Find(e.path(), "git")
	if file == "" {
		return []Finding{{Level: Warn, Text: "git is not on the PATH; agents work in the directory of `netsky up`, and work that exists nowhere else is not found", Do: "install git"}}
	}
	out, err := execx.Question{Program: file, Args: []string{"--version"}, Env: e.Environ, Dir: "/"}.Ask(ctx)
	if err != nil {
		return []Finding{failed(Warn, "", err, "reinstall git")}
	}
	return []Finding{ok("%s (%s)", strings.TrimSpace(words.FirstLine(string(out))), file)}
}

func checkClaude(ctx context.Context, e *exam) []Finding {
	file, err := claude.Find(e.path())
	if err != nil {
		return e.model("claude", err, claude.ErrMissing, "", "")
	}
	version := "version unknown"
	if v, err := claude.Probe(ctx, file, e.Environ); err == nil {
		version = released(v, claude.Tested)
	}
	return e.model("claude", e.ready(ctx, "claude"), claude.ErrMissing, version, file)
}

// released names a release, and the one that netsky was tested with if that is another.
func released(v, tested execx.Version) string {
	if text := v.Untested("", tested); text != "" {
		return strings.TrimSpace(text)
	}
	return v.String()
}

func checkCodex(ctx context.Context, e *exam) []Finding {
	file, err := appserver.Find(e.path())
	if err != nil {
		return e.model("codex", err, appserver.ErrMissing, "", "")
	}
	version := "version unknown"
	if v, err := appserver.Probe(ctx, file, e.Environ); err == nil {
		version = released(v.Version, appserver.Tested)
	}
	return e.model("codex", e.ready(ctx, "codex"), appserver.ErrMissing, version, file)
}

// checkAccounts reports the accounts with a vendor that serve nobody now.
func checkAccounts(_ context.Context, e *exam) []Finding {
	states, err := breaker.List(e.Home)
	var list []Finding
	for _, s := range states {
		if s.Unneeded(time.Now()) || s.Fault.Reason == agent.Budget {
			continue
		}
		f := Finding{Level: Warn, Text: fmt.Sprintf("%s: %s; nothing is offered to its agents, and mail waits", s.Account, s.Fault)}
		if s.Fault.Scope != "" {
			f.Text = fmt.Sprintf("%s: %s; nothing is offered to the agents that have run into it, and their mail waits; other models serve", s.Account, s.Fault)
		}
		f.Do = "it is tried again at " + s.Retry().Format(time.DateTime)
		if s.Fault.Reason == agent.Login {
			f.Do += ", and at once after a login or `netsky up`"
		}
		list = append(list, f)
	}
	if err != nil {
		list = append(list, failed(Warn, "", err, ""))
	}
	if len(list) == 0 {
		list = append(list, ok("no account is at a limit"))
	}
	return list
}

// ready asks a runtime what would prevent a start here, which includes its login.
func (e *exam) ready(ctx context.Context, runtime string) error {
	r, ok := e.Runtimes[runtime]
	if !ok {
		return nil
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	return r.Check(ctx, agent.Launch{Agent: agent.Root, Dir: dir, Env: e.Environ})
}

// model reports a program with a model. What is missing is wrong only if an agent that is
// wanted up runs on it.
func (e *exam) model(runtime string, err, missing error, version, file string) []Finding {
	users := e.usersOf(runtime)
	level, whom := Warn, ""
	if len(users) > 0 {
		level, whom = Wrong, "; "+some(users)+" can't be started without it"
	}
	switch {
	case err == nil && e.Runtimes[runtime] == nil:
		return []Finding{ok("%s %s (%s)", runtime, version, file)} // not asked: there is no home to ask from
	case err == nil:
		return []Finding{ok("%s %s, ready to start agents: logged in, or configured to need no login (%s)", runtime, version, file)}
	case errors.Is(err, missing) && len(users) == 0:
		return []Finding{ok("%s is not installed; no agent uses it", runtime)}
	}
	f := failed(level, "", err, "")
	if cut(err) {
		f = Finding{Level: Warn, Text: fmt.Sprintf("%s %s (%s) did not answer whether it is logged in", runtime, version, file), Do: "run `" + runtime + "` in a terminal and look"}
	}
	f.Text = words.FirstLine(f.Text)
	if version != "" && !cut(err) {
		f.Text += fmt.Sprintf(" [%s, %s]", version, file)
	}
	f.Text += whom
	return []Finding{f}
}

// usersOf returns the agents that are wanted up and run on a runtime.
func (e *exam) usersOf(runtime string) (names []string) {
	if e.Launcher == nil || e.unused() {
		return nil
	}
	list, _ := e.agents()
	for _, st := range list {
		if st.Wanted && st.Runtime == runtime {
			names = append(names, string(st.Agent))
		}
	}
	return names
}

// checkPaths reports what agents find in their panes: each keeps the PATH and the program
// of its start.
func checkPaths(_ context.Context, e *exam) []Finding {
	statuses, err := e.agents()
	if err != nil && len(statuses) == 0 {
		return nil // that of tmux says why
	}
	var list []Finding
	n := 0
	for _, st := range statuses {
		if !st.Wanted && !st.Alive() {
			continue
		}
		la, err := e.Home.LoadLaunch(st.Agent)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		restart := fmt.Sprintf("`netsky down %[1]s && netsky up %[1]s` starts it with what is installed now", st.Agent)
		if err != nil {
			list = append(list, failed(Wrong, string(st.Agent)+": launch file", err, fmt.Sprintf("`netsky agent %s --fresh --type RUNTIME --dir DIR` writes another", st.Agent.N())))
			continue
		}
		n++
		path := execx.Value(la.Env, "PATH")
		if len(la.Argv) > 0 && filepath.IsAbs(la.Argv[0]) {
			if _, err := os.Stat(la.Argv[0]); err != nil {
				list = append(list, Finding{Level: Wrong, Text: fmt.Sprintf("%s: its program %s is gone", st.Agent, la.Argv[0]), Do: restart})
			}
		}
		if execx.Find(path, "netsky") == "" {
			list = append(list, Finding{Level: Wrong, Text: fmt.Sprintf("%s: no netsky on the PATH of its pane", st.Agent), Do: restart})
		}
		if _, err := os.Stat(la.Dir); err != nil {
			f := Finding{Level: Wrong, Text: fmt.Sprintf("%s: its directory %s is gone", st.Agent, la.Dir), Do: fmt.Sprintf("`netsky up %s --dir DIR` starts it elsewhere", st.Agent)}
			if st.Alive() { // an up ends no agent
				f.Do = fmt.Sprintf("`netsky down %[1]s && netsky up %[1]s --dir DIR` starts it elsewhere", st.Agent)
			}
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		list = append(list, ok("netsky's own program is %s; %s found theirs", e.Launcher.Binary, plural(n, "agent")))
	}
	return list
}

// Bounds of checkDisk.
const (
	lowSpace  = 1 << 30
	noSpace   = 100 << 20
	lowInodes = 10_000
	noInodes  = 1_000
)

func checkDisk(_ context.Context, e *exam) []Finding {
	var st unix.Statfs_t
	if err := unix.Statfs(e.Home.Root(), &st); err != nil {
		return []Finding{failed(Warn, e.Home.Root(), err, "")}
	}
	free, inodes := st.Bavail*uint64(st.Bsize), st.Ffree
	level := OK
	switch {
	case free < noSpace || st.Files > 0 && inodes < noInodes:
		level = Wrong
	case free < lowSpace || st.Files > 0 && inodes < lowInodes:
		level = Warn
	}
	f := Finding{Level: level, Text: fmt.Sprintf("%s free", words.Size(int64(min(free, 1<<62))))}
	if st.Files > 0 {
		f.Text += fmt.Sprintf(", %d inodes", inodes)
	}
	f.Text += " where the home is"
	if level != OK {
		f.Do = "make room: messages can't be sent, and records are lost, on a full disk"
	}
	return []Finding{f}
}

// checkAgents reports the agents that are not as the owner wants them.
func checkAgents(_ context.Context, e *exam) []Finding {
	statuses, err := e.agents()
	if err != nil && len(statuses) == 0 {
		return []Finding{failed(Wrong, "", err, "")}
	}
	var list []Finding
	up := 0
	for _, st := range statuses {
		switch {
		case st.Alive() && st.Wanted:
			up++
		case st.Wanted:
			f := Finding{
				Level: Warn, Text: fmt.Sprintf("%s is wanted up, and is %s (%s)", st.Agent, st.State, words.FirstLine(why(st))),
				Do: fmt.Sprintf("`netsky up %[1]s` starts it with its conversation; `netsky down %[1]s` if it is to stay down", st.Agent),
			}
			if backoff.Soon(e.Home, st.Agent, st.Start) {
				f.Do = "nothing needs to be done: the watchdog starts it; `netsky watchdog events` shows how that goes"
			}
			if st.Restart != "" {
				f.Text += "; " + words.FirstLine(st.Restart)
			}
			list = append(list, f)
		case st.Alive() && !st.Finished():
			list = append(list, Finding{
				Level: Warn, Text: fmt.Sprintf("%s is wanted down, and still runs", st.Agent),
				Do: fmt.Sprintf("`netsky down %s --force` ends it", st.Agent),
			})
		}
	}
	if len(list) == 0 {
		list = append(list, ok("%s up, as wanted", plural(up, "agent")))
	}
	return list
}

func why(st spawn.Status) string {
	if st.Detail != "" {
		return st.Detail
	}
	return st.Evidence
}

// checkVersions reports other builds of netsky that still run.
func checkVersions(_ context.Context, e *exam) []Finding {
	statuses, _ := e.agents()
	var names []string
	for _, st := range statuses {
		if st.Alive() && st.Build != "" && st.Build != e.Version {
			names = append(names, string(st.Agent)+" ("+st.Build+")")
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return []Finding{ok("this netsky is %s; no agent runs another", e.Version)}
	}
	return []Finding{{
		Level: Warn, Text: fmt.Sprintf("this netsky is %s; another one runs in %s", e.Version, some(names)),
		Do: "`netsky restart` renews them after their turns; conversations continue",
	}}
}
