package doctor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/claude"
	"netsky/cli/doctor"
	"netsky/config"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/link/server"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
	"netsky/watch/backoff"
)

// patient returns a home in which nothing is wrong, and how to examine it.
func patient(t *testing.T) (home.Dir, *doctor.Options) {
	t.Helper()
	h := testworld.FastHome(t)
	testworld.Got(h.Make())(t)
	b := testworld.Bus(t, h, agent.Owner, "agent1")
	db := testworld.Got(store.Open(t.Context(), h))(t)
	db.Close()
	env := append(os.Environ(), "TMUX_TMPDIR="+t.TempDir())
	o := &doctor.Options{Home: h, Version: "test", Environ: env, Config: config.Default(), Within: 10 * time.Second}
	o.Launcher = spawn.New(spawn.Site{
		Home: h, Bus: b, Journal: store.NewJournal(h), Binary: mustExecutable(t), Environ: env,
		Tmux: &tmux.Server{Socket: filepath.Join(t.TempDir(), "s"), Env: env},
	})
	o.Start = func(context.Context) error { return home.Desired(h).Set(agent.DaemonName, false, "owner") }
	return h, o
}

func mustExecutable(t *testing.T) string {
	t.Helper()
	return testworld.Got(os.Executable())(t)
}

func lines(r doctor.Report, check string, level doctor.Level) (list []string) {
	for _, f := range r.Checks {
		if f.Check == check && f.Level == level {
			list = append(list, f.Text+"; "+f.Do)
		}
	}
	return list
}

func write(t *testing.T, h home.Dir, rel, text string, mode os.FileMode) {
	t.Helper()
	testworld.Must(t, os.WriteFile(h.Path(rel), []byte(text), 0o600))
	testworld.Must(t, os.Chmod(h.Path(rel), mode))
}

// Each broken thing is reported, repaired in one pass, and leaves nothing for a second.
func TestFixConverges(t *testing.T) {
	t.Parallel()
	const box = home.Channels + "/agent1/"
	for name, c := range map[string]struct {
		check string
		level doctor.Level
		says  string // part of the finding
		harm  func(t *testing.T, h home.Dir)
		stays bool // only a person can repair it
	}{
		"open directory":    {"files", doctor.Wrong, "state", func(t *testing.T, h home.Dir) { testworld.Must(t, os.Chmod(h.Path("state"), 0o755)) }, false},
		"closed directory":  {"files", doctor.Wrong, "state/launch", func(t *testing.T, h home.Dir) { testworld.Must(t, os.Chmod(h.Path("state/launch"), 0o500)) }, false},
		"open mailbox":      {"files", doctor.Wrong, box + "inbox", func(t *testing.T, h home.Dir) { testworld.Must(t, os.Chmod(h.Path(box, "inbox"), 0o711)) }, false},
		"open file":         {"files", doctor.Wrong, "state/owner-read", func(t *testing.T, h home.Dir) { write(t, h, "state/owner-read", "", 0o644) }, false},
		"missing directory": {"home", doctor.Wrong, "state/approvals", func(t *testing.T, h home.Dir) { testworld.Must(t, os.Remove(h.Path("state/approvals"))) }, false},
		"missing and open": {"files", doctor.Wrong, "state/agents", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.Remove(h.Path("state/approvals")))
			testworld.Must(t, os.Chmod(h.Path("state/agents"), 0o777))
		}, false},
		"half a mailbox": {"mailboxes", doctor.Wrong, "agent1: its mailbox lacks sent", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.Remove(h.Path(box, "sent")))
			testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Runtime: "demo", Dir: "/"}))
		}, false},
		"temporary file": {"files", doctor.Warn, "1 unfinished file", func(t *testing.T, h home.Dir) {
			write(t, h, "state/.tmp-4194999-1", "x", 0o600)
			old := time.Now().Add(-time.Hour)
			testworld.Must(t, os.Chtimes(h.Path("state/.tmp-4194999-1"), old, old))
		}, false},
		"spool": {"spool", doctor.Warn, "1 record", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.Rename(h.Path(home.DBFile), h.Path("meta.away"))) // a journal without a database
			testworld.Must(t, os.Mkdir(h.Path(home.DBFile), 0o700))
			if err := store.NewJournal(h).Record(t.Context(), store.AddLog{Part: "test", Text: "spooled"}); !errors.Is(err, store.ErrSpooled) {
				t.Fatal(err)
			}
			testworld.Must(t, os.Remove(h.Path(home.DBFile)))
			testworld.Must(t, os.Rename(h.Path("meta.away"), h.Path(home.DBFile)))
		}, false},
		"dead daemon": {"daemon", doctor.Wrong, "not running, but should be", func(t *testing.T, h home.Dir) {
			testworld.Must(t, home.Desired(h).Set(agent.DaemonName, true, "owner"))
		}, false},
		"killed daemon": {"daemon", doctor.Warn, "run/daemon.pid", func(t *testing.T, h home.Dir) { write(t, h, home.DaemonPID, "1\n", 0o600) }, false},
		"a link in a mailbox": {"files", doctor.Wrong, box + "claimed", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.Remove(h.Path(box, "claimed")))
			testworld.Must(t, os.Symlink("/", h.Path(box, "claimed")))
		}, true},
		"stray":           {"mailboxes", doctor.Warn, "x.txt", func(t *testing.T, h home.Dir) { write(t, h, box+"inbox/x.txt", "x", 0o644) }, true},
		"poison":          {"mailboxes", doctor.Warn, "1 message set aside", func(t *testing.T, h home.Dir) { write(t, h, box+"poison/x.json", "x", 0o600) }, true},
		"no mailbox":      {"mailboxes", doctor.Warn, "channels/agent/mine", func(t *testing.T, h home.Dir) { testworld.Must(t, os.Mkdir(h.Path(home.Channels, "mine"), 0o700)) }, true},
		"bad spool":       {"spool", doctor.Warn, "could not be read", func(t *testing.T, h home.Dir) { write(t, h, home.SpoolDir+"/x.bad", "x", 0o600) }, true},
		"damaged records": {"records", doctor.Wrong, "repairs it", func(t *testing.T, h home.Dir) { write(t, h, home.DBFile, strings.Repeat("no database ", 900), 0o600) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, o := patient(t)
			if r := doctor.Run(t.Context(), *o); r.Wrong != 0 || slices.ContainsFunc(r.Checks, func(f doctor.Finding) bool { return f.Fixable }) {
				t.Fatalf("before: %+v", r.Checks)
			}
			c.harm(t, h)
			r := doctor.Run(t.Context(), *o)
			if got := strings.Join(lines(r, c.check, c.level), "\n"); !strings.Contains(got, c.says) {
				t.Fatalf("%s %s: %q, want %q; %+v", c.check, c.level, got, c.says, r.Checks)
			}
			first := doctor.Fix(t.Context(), *o)
			if fixed := len(first.Fixed) > 0; fixed == c.stays {
				t.Errorf("fixed %q", first.Fixed)
			}
			if left := lines(first, c.check, c.level); !c.stays && len(left) > 0 {
				t.Errorf("left after one pass: %q, failed %q", left, first.Failed)
			}
			second := doctor.Fix(t.Context(), *o)
			if len(second.Fixed)+len(second.Failed) > 0 {
				t.Errorf("a second pass did %q, failed at %q", second.Fixed, second.Failed)
			}
		})
	}
}

// An account that is at its limit is named, with the time.
func TestAccounts(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	fault := agent.Fault{Reason: agent.UsageLimit, Account: "anthropic:me", UntilMS: time.Now().Add(time.Hour).UnixMilli(), Text: "limit reached"}
	if _, _, err := breaker.Of(h, fault.Account).Trip(t.Context(), "agent1", fault); err != nil {
		t.Fatal(err)
	}
	r := doctor.Run(t.Context(), *o)
	if got := strings.Join(lines(r, "accounts", doctor.Warn), "\n"); !strings.Contains(got, "anthropic:me: usage limit until") || !strings.Contains(got, "tried again at 2") {
		t.Errorf("%q", got)
	}
}

// What is advised for an agent whose directory is gone is not refused: an up ends no agent.
func TestDirectoryGone(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	testworld.Must(t, home.Desired(h).Set("agent1", true, "owner"))
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Start: "s1", Runtime: "demo", Dir: filepath.Join(t.TempDir(), "gone")}))
	says := func() string { return strings.Join(lines(doctor.Run(t.Context(), *o), "paths", doctor.Wrong), "\n") }
	testworld.Contains(t, says(), " is gone; `netsky up agent1 --dir DIR` starts it elsewhere", "a dead agent")
	testworld.Must(t, h.SaveKeeper("agent1", agent.Keeper{Start: "s1", Process: proc.Self()}))
	testworld.Contains(t, says(), " is gone; `netsky down agent1 && netsky up agent1 --dir DIR` starts it elsewhere", "one that is up")
}

// A conversation that Claude Code removes soon, or has removed, is named.
func TestConversations(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	config := t.TempDir()
	file := filepath.Join(config, "projects", "x", "c.jsonl")
	testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	testworld.Must(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Start: "s1", Runtime: "claude", Env: []string{"CLAUDE_CONFIG_DIR=" + config}}))
	testworld.Must(t, claude.SaveState(h, "agent1", claude.State{Session: "0b5c2a34-6d1f-4a6b-9c33-0123456789ab", Transcript: file, Start: "s1", Used: true}))
	says := func(days int, level doctor.Level) string {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(days)*24*time.Hour + time.Hour) }
		return strings.Join(lines(doctor.Run(t.Context(), *o), "conversations", level), "\n")
	}
	testworld.Contains(t, says(20, doctor.OK), "1 conversation on Claude Code", "after 20 days")
	testworld.Contains(t, says(26, doctor.Warn), "agent1: nothing was written to its conversation for 26 days; Claude Code removes it after 30", "after 26 days")
	testworld.Must(t, os.WriteFile(filepath.Join(config, "settings.json"), []byte(`{"cleanupPeriodDays": 90}`), 0o600))
	testworld.Equal(t, says(26, doctor.Warn), "", "with a longer period")
	testworld.Must(t, os.Remove(file))
	testworld.Contains(t, says(0, doctor.Warn), "agent1: the file of its conversation is gone", "without its file")
}

// Mail stays whatever is repaired.
func TestFixKeepsMail(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	for _, p := range bus.Places() {
		write(t, h, home.Mailbox("agent1")+"/"+string(p)+"/m.json", `{"from":"owner"}`, 0o644)
		write(t, h, home.Mailbox("agent1")+"/"+string(p)+"/other", "mine", 0o644)
	}
	testworld.Must(t, os.MkdirAll(h.Path("state/mine"), 0o755))
	write(t, h, "state/mine/file", "mine", 0o644)
	doctor.Fix(t.Context(), *o)
	for _, p := range bus.Places() {
		for _, name := range []string{"m.json", "other"} {
			if info, err := os.Stat(h.Path(home.Mailbox("agent1"), string(p), name)); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%s/%s: %v, %v", p, name, info, err)
			}
		}
	}
	if info, err := os.Stat(h.Path("state/mine")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a person's directory: %v, %v", info, err)
	}
}

// An agent that the watchdog is about to start again needs nobody.
func TestRestartIsDue(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	testworld.Must(t, home.Desired(h).Set("agent1", true, "owner"))
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Start: "s1", Runtime: "demo"}))
	says := func() string { return strings.Join(lines(doctor.Run(t.Context(), *o), "agents", doctor.Warn), "\n") }
	if got := says(); !strings.Contains(got, "agent1 is wanted up, and is dead") || !strings.Contains(got, "`netsky up agent1` starts it") {
		t.Errorf("without a watchdog: %q", got)
	}
	lock, err := h.Lock(home.WatchdogLock)
	testworld.Must(t, err)
	defer lock.Unlock()
	d, err := home.Desired(h).Load("agent1")
	testworld.Must(t, err)
	r := backoff.Record{WordMS: d.AtMS}
	r.Ended("s1", "exited 3", backoff.Crash, time.Now())
	testworld.Must(t, backoff.Save(h, "agent1", r))
	if got := says(); !strings.Contains(got, "; restart") || !strings.Contains(got, "(attempt 1); nothing needs to be done: the watchdog starts it") {
		t.Errorf("with one: %q", got)
	}
	r.NextMS += time.Hour.Milliseconds() / 4
	testworld.Must(t, backoff.Save(h, "agent1", r))
	testworld.Contains(t, says(), "; restart in 15m (attempt 1); `netsky up agent1` starts it", "much later")
}

// With a mistake in netsky.toml nothing can be started, and nothing promises to.
func TestNoStartWithoutConfig(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	testworld.Must(t, home.Desired(h).Set(agent.DaemonName, true, "owner"))
	o.ConfigErr = errors.New("netsky.toml: line 3: what?")
	o.Start = func(context.Context) error { t.Error("started"); return nil }
	r := doctor.Fix(t.Context(), *o)
	if got := lines(r, "daemon", doctor.Wrong); len(got) != 1 || !strings.Contains(got[0], "; correct netsky.toml first; then `netsky doctor --fix` starts it") || len(r.Failed) != 0 {
		t.Errorf("%q, failed %q", got, r.Failed)
	}
}

// Mail that nobody reads, finishes or sends is named, with its age.
func TestOldMail(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	now := time.Now().Add(25 * time.Hour)
	o.Now = func() time.Time { return now }
	testworld.Len(t, lines(doctor.Run(t.Context(), *o), "mail", doctor.Warn), 0, "no mail")
	for _, p := range []bus.Place{bus.Inbox, bus.Claimed, bus.Outbox} {
		write(t, h, home.Mailbox("agent1")+"/"+string(p)+"/m.json", `{"from":"owner"}`, 0o600)
	}
	got := strings.Join(lines(doctor.Run(t.Context(), *o), "mail", doctor.Warn), "\n")
	for _, want := range []string{"agent1: 1 message waiting for up to 24h", "agent1: 1 message taken and not confirmed", "agent1: 1 message in its outbox"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// Mail for an agent that is dead, and not about to be started again, is stuck, however new.
func TestMailOfTheDead(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	testworld.Must(t, home.Desired(h).Set("agent1", true, "owner"))
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Start: "s1", Runtime: "demo"}))
	write(t, h, home.Mailbox("agent1")+"/"+string(bus.Inbox)+"/m.json", `{"from":"owner"}`, 0o600)
	got := strings.Join(lines(doctor.Run(t.Context(), *o), "mail", doctor.Warn), "\n")
	testworld.Contains(t, got, "agent1: 1 message waiting for it, and it is dead")
}

// A file that a running process writes is not removed.
func TestFixKeepsTemporaryOfTheLiving(t *testing.T) {
	t.Parallel()
	h, o := patient(t)
	rel := "state/.tmp-" + strconv.Itoa(proc.Self().PID) + "-77"
	write(t, h, rel, "x", 0o600)
	old := time.Now().Add(-time.Hour)
	testworld.Must(t, os.Chtimes(h.Path(rel), old, old))
	if r := doctor.Fix(t.Context(), *o); len(r.Fixed) > 0 || !h.Mark(rel).Exists() {
		t.Errorf("fixed %q", r.Fixed)
	}
}

// Whatever is broken or missing, there is a report, in bounded time.
func TestWithout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check, says string
		harm        func(t *testing.T, h home.Dir, o *doctor.Options)
	}{
		"home": {"home", "not a netsky home", func(_ *testing.T, _ home.Dir, o *doctor.Options) {
			o.HomeErr, o.Launcher, o.Home = home.ErrNotHome, nil, home.Dir{}
		}},
		"configuration": {"config", "line 3", func(_ *testing.T, _ home.Dir, o *doctor.Options) {
			o.ConfigErr = errors.New("netsky.toml: line 3: what?")
		}},
		"tmux": {"tmux", "not on the PATH", func(t *testing.T, _ home.Dir, o *doctor.Options) {
			o.Environ = []string{"PATH=" + t.TempDir()}
			o.Launcher.Tmux.Env = o.Environ
		}},
		"a tmux that is too old": {"tmux", "too old", func(t *testing.T, _ home.Dir, o *doctor.Options) { o.Environ = fake(t, "tmux", "echo tmux 3.1c") }},
		"a tmux that hangs":      {"tmux", "", func(t *testing.T, _ home.Dir, o *doctor.Options) { o.Environ = fake(t, "tmux", "exec sleep 60") }},
		"a team's server": {"link server", "must be an address and a port", func(t *testing.T, h home.Dir, _ *doctor.Options) {
			testworld.Must(t, h.WriteFile(server.SettingsFile, []byte(`{"listen":"7"}`), true))
		}},
		"a git that fails": {"git", "exit status 3", func(t *testing.T, _ home.Dir, o *doctor.Options) { o.Environ = fake(t, "git", "exit 3") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, o := patient(t)
			c.harm(t, h, o)
			o.Within = 2 * time.Second
			began := time.Now()
			r := doctor.Fix(t.Context(), *o)
			bad := append(lines(r, c.check, doctor.Wrong), lines(r, c.check, doctor.Warn)...)
			if len(bad) == 0 || !strings.Contains(strings.Join(bad, "\n"), c.says) {
				t.Errorf("%q, want %q", bad, c.says)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// fake returns an environment with a program of that name before the others.
func fake(t *testing.T, name, script string) []string {
	t.Helper()
	dir := t.TempDir()
	testworld.Program(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n")
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
}
