package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
)

// netsky is the binary under test.
var netsky string

// painterRole makes this test binary a program that never stops printing.
const painterRole = "NETSKY_TEST_PAINTER"

func paint() {
	for range time.Tick(20 * time.Millisecond) {
		if _, err := fmt.Println(time.Now().Nanosecond()); err != nil {
			os.Exit(1)
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(painterRole) != "" {
		paint()
	}
	if os.Getenv(receiverRole) != "" {
		os.Exit(receive())
	}
	os.Exit(testworld.Main(m, func(path string) { netsky = path }))
}

// A world is a home, a tmux server and a launcher of the test's own.
type world struct {
	testing.TB
	ctx  context.Context
	home home.Dir
	bus  *bus.Bus
	l    *spawn.Launcher
	env  []string // of the daemon
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	h := testworld.FastHome(tb)
	testworld.Must(tb, h.WriteFile(home.ConfigFile, []byte("[dashboard]\nlisten = \"127.0.0.1:0\"\n"), false))
	dir := filepath.Dir(h.Root())
	socket := filepath.Join(dir, "s")
	w := &world{TB: tb, ctx: context.Background(), home: h, bus: testworld.Bus(tb, h)}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "NETSKY_TMUX_SOCKET=" + socket, "NETSKY_HOME=" + h.Root()}
	w.l = spawn.New(spawn.Site{
		Home: h, Bus: w.bus, Journal: store.NewJournal(h), Binary: netsky, Environ: w.env,
		Tmux: &tmux.Server{
			Socket: socket, Conf: h.Path(home.TmuxConfFile), Env: w.env, Tags: []string{spawn.TagHome, spawn.TagStart},
		},
	})
	tb.Cleanup(w.end)
	return w
}

// end leaves nothing of the world running. The daemon goes first, which would
// come back to a tmux server that is being ended. Of a failed test's daemon it tells what it did.
func (w *world) end() {
	who, ok := w.home.LockHolder(agent.DaemonName)
	if w.Failed() {
		w.stacks(who.Process)
	}
	if ok {
		proc.End(context.Background(), []proc.Process{who.Process}, 0)
	}
	var err error
	testworld.WaitOr(w, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err = w.l.Tmux.Stop(ctx); err != nil { // it hangs, or has much to do
			err = w.l.Tmux.Reap(context.Background())
		}
		return err == nil
	}, func() string { return err.Error() })
	testworld.EndAll(w, w.home)
	w.l.Journal.Close()
}

// stacks ends a daemon and logs what each of its goroutines was at.
func (w *world) stacks(p proc.Process) {
	if !p.Alive() {
		w.Log("no daemon is left")
		return
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID)) // whether it was stopped, say
	_ = p.Signal(unix.SIGQUIT)
	testworld.Until(func() bool { return !p.Alive() })
	w.Logf("the daemon was at\n%s%s", stat, w.log())
}

// start starts the daemon.
func (w *world) start() proc.Process {
	w.Helper()
	p, _, err := daemon.Start(w.ctx, w.home, []string{netsky, "daemon", "run"}, w.env)
	if err != nil {
		log, _ := os.ReadFile(w.home.Path(home.LogDir, "daemon.log"))
		w.Fatalf("%v\n%s", err, log)
	}
	return processOf(p.PID)
}

func processOf(pid int) proc.Process {
	p, err := proc.Find(pid)
	if err != nil {
		return proc.Process{PID: pid, Start: -1}
	}
	return p
}

// kill kills a daemon and waits until it is gone.
func (w *world) kill(p proc.Process) {
	w.Helper()
	syscall.Kill(p.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool { return !p.Alive() }, func() string { return "the daemon survives SIGKILL" })
}

// sh is a runtime whose agents run a shell script.
type sh string

func (sh) Name() string                              { return "test" }
func (sh) Check(context.Context, agent.Launch) error { return nil }

func (s sh) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{"/bin/sh", "-c", string(s)}
	return nil
}

// quiet is a script that says nothing of itself.
type quiet struct{ sh }

func (quiet) Silent() {}

// ready is what a script does to say that it is ready.
const ready = `printf '{"start":"%s","state":"idle","since_ms":1}' "$NETSKY_START" >"$NETSKY_HOME/state/agents/.x$$"
mv "$NETSKY_HOME/state/agents/.x$$" "$NETSKY_HOME/state/agents/agent$AGENT_N.json"
`

// demo is the runtime of demo agents.
type demo struct{}

func (demo) Name() string                              { return "demo" }
func (demo) Check(context.Context, agent.Launch) error { return nil }

func (demo) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{netsky, "demo", "serve", string(l.Agent)}
	return nil
}

// up brings agents up, wants each ready, and wakes the daemon if one runs.
func (w *world) up(r spawn.Runtime, ids ...agent.ID) {
	w.Helper()
	w.started(w.l.Up(w.ctx, spawn.UpOptions{Plans: w.plans(r, ids...), By: "owner"}))
}

func (w *world) plans(r spawn.Runtime, ids ...agent.ID) (plans []spawn.Plan) {
	for _, id := range ids {
		plans = append(plans, spawn.Plan{
			Agent: id, Runtime: r, Dir: w.home.Root(), Prompt: prompts.Input{Home: w.home, Runtime: r.Name()},
		})
	}
	return plans
}

// started fails the test unless all agents of an up are up.
func (w *world) started(ends []spawn.Progress, err error) {
	w.Helper()
	testworld.Must(w, err)
	for _, p := range ends {
		if p.Step != spawn.StepReady && p.Step != spawn.StepAlready {
			w.Fatalf("%s: %s %v\n%s", p.Agent, p.Step, p.Err, strings.Join(p.Lines, "\n"))
		}
	}
	testworld.WaitOr(w, func() bool { err = daemon.Wake(w.ctx, w.home); return !errors.Is(err, daemon.ErrHung) }, func() string { return err.Error() })
	testworld.Must(w, err)
}

// statuses are asked for again if tmux has too much to do to answer.
func (w *world) statuses() (list spawn.Statuses) {
	w.Helper()
	var err error
	testworld.WaitOr(w, func() bool {
		list, err = w.l.Inspect(w.ctx)
		return !errors.Is(err, context.DeadlineExceeded)
	}, func() string { return err.Error() })
	testworld.Must(w, err)
	return list
}

// mail sends a message as the owner.
func (w *world) mail(to agent.ID, text string) string {
	w.Helper()
	testworld.Must(w, w.bus.Make(agent.Owner))
	return testworld.Got(w.bus.Send(w.ctx, envelope.Envelope{From: agent.Owner, To: to, Text: text}))(w).ID
}

// answered waits for the answer to a message of the owner's.
func (w *world) answered(id string) bus.Entry {
	w.Helper()
	var e bus.Entry
	testworld.WaitOr(w, func() (ok bool) {
		var err error
		e, ok, err = w.bus.FindAnswer(w.ctx, "", agent.Owner, id, time.Time{})
		return ok && err == nil
	}, func() string { return "no answer to " + id + "\n" + w.log() })
	return e
}

// db opens the records for reading once they are there.
func (w *world) db() (db *store.DB) {
	w.Helper()
	var err error
	testworld.WaitOr(w, func() bool {
		db, err = store.OpenRead(w.ctx, w.home)
		return err == nil
	}, func() string { return err.Error() })
	w.Cleanup(func() { db.Close() })
	return db
}

// log is the daemon's own, and what Go printed if it crashed.
func (w *world) log() string {
	data, _ := os.ReadFile(w.home.Path(home.LogDir, "netsky.jsonl"))
	crash, _ := os.ReadFile(w.home.Path(home.LogDir, "daemon.log"))
	return string(data) + string(crash)
}
