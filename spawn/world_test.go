package spawn_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
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

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if home := os.Getenv(downRole); home != "" {
		return downAndDie(home)
	}
	if how := os.Getenv(askerRole); how != "" {
		return ask(how)
	}
	if path := os.Getenv(refuserRole); path != "" {
		return refuse(path)
	}
	return testworld.Main(m, func(path string) { netsky = path })
}

// refuserRole is a process that takes connections at a socket and answers
// nothing, as a tmux server does that hangs in its exit.
const refuserRole = "SPAWN_TEST_REFUSER"

func refuse(path string) int {
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			panic(err)
		}
		conn.Close()
	}
}

// A world is a home, a tmux server and a launcher of the test's own.
type world struct {
	testing.TB
	ctx    context.Context
	dir    string // short, as a socket lies in it; work in it is the agents' directory
	socket string
	home   home.Dir
	bus    *bus.Bus
	l      *spawn.Launcher
	clock  *clock // of the bus

	readyWithin time.Duration // for up; 0 is the default
}

// A clock is the true one, or ahead of it, or stands still.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
	still time.Time // if not zero
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.still.IsZero() {
		return c.still
	}
	return time.Now().Add(c.ahead)
}

// stop lets no time pass any more.
func (c *clock) stop() {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = now
}

// newWorld makes a home whose agents inherit env too.
func newWorld(tb testing.TB, env ...string) *world {
	tb.Helper()
	h := testworld.FastHome(tb)
	return newWorldAt(tb, h, filepath.Join(filepath.Dir(h.Root()), "s"), env...)
}

func newWorldAt(tb testing.TB, h home.Dir, socket string, env ...string) *world {
	tb.Helper()
	w := &world{TB: tb, ctx: context.Background(), dir: filepath.Dir(h.Root()), socket: socket, home: h, clock: new(clock)}
	w.bus = bus.New(h, bus.Options{Now: w.clock.now})
	testworld.Must(tb, os.MkdirAll(w.work(), 0o700))
	w.l = launcherAt(h, socket, append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "LANG=C.UTF-8",
	}, env...))
	w.l.Bus = w.bus
	tb.Cleanup(w.end)
	return w
}

func launcherAt(h home.Dir, socket string, env []string) *spawn.Launcher {
	return spawn.New(spawn.Site{
		Home: h, Bus: bus.New(h, bus.Options{}), Journal: store.NewJournal(h), Binary: netsky, Environ: env,
		Tmux: &tmux.Server{
			Socket: socket, Conf: h.Path(home.TmuxConfFile), Env: env, Tags: []string{spawn.TagHome, spawn.TagStart}, Known: home.Servers(h),
		},
	})
}

func (w *world) work() string { return filepath.Join(w.dir, "work") }

// end leaves nothing of the world running.
func (w *world) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if w.l.Tmux.Stop(ctx) != nil {
		testworld.Equal(w, w.l.Tmux.Reap(context.Background()), nil, "tmux")
	}
	testworld.EndAll(w, w.home)
	w.l.Journal.Close()
}

// A program is a runtime whose agents run argv.
type program []string

func (program) Name() string                              { return "test" }
func (program) Check(context.Context, agent.Launch) error { return nil }

func (p program) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = p
	return nil
}

// sh runs a shell script.
func sh(script string) program { return program{"/bin/sh", "-c", script} }

// ready is what a script does to say that it is ready.
const ready = `printf '{"start":"%s","state":"idle","since_ms":1}' "$NETSKY_START" >"$NETSKY_HOME/state/agents/.x$$"
mv "$NETSKY_HOME/state/agents/.x$$" "$NETSKY_HOME/state/agents/agent$AGENT_N.json"
`

// stays is a ready agent that answers nothing.
func stays() program { return sh(ready + "while :; do sleep 60; done") }

// demo is the runtime of demo agents.
type demo struct{}

func (demo) Name() string                              { return "demo" }
func (demo) Check(context.Context, agent.Launch) error { return nil }

func (demo) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{netsky, "demo", "serve", string(l.Agent)}
	return nil
}

func ids(names ...string) (list []agent.ID) {
	for _, n := range names {
		list = append(list, agent.ID(n))
	}
	return list
}

func (w *world) plans(r spawn.Runtime, list ...agent.ID) (plans []spawn.Plan) {
	for _, id := range list {
		plans = append(plans, spawn.Plan{
			Agent: id, Runtime: r, Dir: w.work(), Prompt: prompts.Input{Home: w.home, Runtime: r.Name()},
		})
	}
	return plans
}

// up brings agents up and wants no error.
func (w *world) up(r spawn.Runtime, names ...string) []spawn.Progress {
	w.Helper()
	return testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: w.plans(r, ids(names...)...), By: "owner", ReadyWithin: w.readyWithin}))(w)
}

// upReady brings agents up and wants each ready.
func (w *world) upReady(r spawn.Runtime, names ...string) {
	w.Helper()
	for _, p := range w.up(r, names...) {
		if p.Step != spawn.StepReady && p.Step != spawn.StepAlready {
			w.Fatalf("%s: %s %v\n%s", p.Agent, p.Step, p.Err, strings.Join(p.Lines, "\n"))
		}
	}
}

// down ends agents and gives the steps of each as "asked acked ended".
func (w *world) down(o spawn.DownOptions) map[string]string {
	w.Helper()
	log := testworld.Got(w.l.Down(w.ctx, o))(w)
	return steps(log)
}

func steps(log []spawn.DownProgress) map[string]string {
	m := make(map[string]string)
	for _, p := range log {
		m[p.What] = strings.TrimSpace(m[p.What] + " " + string(p.Step))
	}
	return m
}

func (w *world) status(name string) spawn.Status {
	w.Helper()
	list := testworld.Got(w.l.Inspect(w.ctx))(w)
	return list.Find(agent.ID(name))
}

func (w *world) statuses() map[agent.ID]spawn.Status {
	w.Helper()
	list := testworld.Got(w.l.Inspect(w.ctx))(w)
	m := make(map[agent.ID]spawn.Status)
	for _, st := range list {
		m[st.Agent] = st
	}
	return m
}

// becomes waits for an agent's state.
func (w *world) becomes(name string, state agent.State) (st spawn.Status) {
	w.Helper()
	testworld.WaitOr(w, func() bool { st = w.status(name); return st.State == state }, func() string {
		return fmt.Sprintf("%s: %s (%s), want %s", name, st.State, st.Evidence, state)
	})
	return st
}

// tmux calls the server of the world as a person would.
func (w *world) tmux(args ...string) string {
	w.Helper()
	out, err := w.tmuxCommand(args...).CombinedOutput()
	if err != nil {
		w.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (w *world) tmuxCommand(args ...string) *exec.Cmd {
	argv := w.l.Tmux.Argv(args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = w.l.Tmux.Environ()
	return cmd
}

// sessions are the names of all sessions on the server.
func (w *world) sessions() string {
	w.Helper()
	panes := testworld.Got(w.l.Tmux.Panes(w.ctx))(w)
	var names []string
	for _, p := range panes {
		names = append(names, p.Session)
	}
	return strings.Join(names, " ")
}

// mail sends a message as the owner.
func (w *world) mail(to, text string) string {
	w.Helper()
	return w.send(envelope.Envelope{From: agent.Owner, To: agent.ID(to), Text: text})
}

func (w *world) send(e envelope.Envelope) string {
	w.Helper()
	testworld.Must(w, w.bus.Make(agent.Owner))
	return testworld.Got(w.bus.Send(w.ctx, e))(w).ID
}

func (w *world) alive(p proc.Process, what string) {
	w.Helper()
	if !p.Alive() {
		w.Errorf("%s, process %d: is gone", what, p.PID)
	}
}

func (w *world) gone(p proc.Process, what string) {
	w.Helper()
	if p.Alive() {
		w.Errorf("%s, process %d: lives", what, p.PID)
	}
}

// process waits for a file into which a script wrote a process's number.
func (w *world) process(path string) (p proc.Process) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		data, err := os.ReadFile(path)
		var pid int
		if err != nil || !strings.HasSuffix(string(data), "\n") {
			return false
		}
		fmt.Sscan(string(data), &pid)
		p, err = proc.Find(pid)
		return err == nil
	}, func() string { return path + ": no living process in it" })
	return p
}

func processOf(pid int) proc.Process {
	p, err := proc.Find(pid)
	if err != nil {
		return proc.Process{PID: pid, Start: -1}
	}
	return p
}
