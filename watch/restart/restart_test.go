package restart_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
	"netsky/watch/restart"
)

// netsky is the binary under test.
var netsky string

// With these in its environment the test binary carries out the requests of that home, and
// kills itself at the step of that number; 0 is none.
const (
	runHome   = "RESTART_TEST_HOME"
	runKill   = "RESTART_TEST_KILL"
	runNetsky = "RESTART_TEST_NETSKY"
	stepsFile = "run/steps"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(runHome); dir != "" {
		os.Exit(carryOut(dir))
	}
	os.Exit(testworld.Main(m, func(path string) { netsky = path }))
}

func carryOut(dir string) int {
	h, err := home.At(dir)
	if err != nil {
		return 2
	}
	netsky = os.Getenv(runNetsky)
	last, _ := strconv.Atoi(os.Getenv(runKill))
	n := 0
	restart.SetStep(func(name string) {
		n++
		if f, err := h.OpenAppend(stepsFile); err == nil {
			fmt.Fprintln(f, n, name)
			f.Close()
		}
		if n == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	list, err := restart.Open(h)
	if err != nil {
		return 2
	}
	for _, r := range list {
		restart.Run(context.Background(), options(launcher(h), nil), &r)
	}
	return 0
}

// demo is the runtime of demo agents, which prevent wants not to start.
type demo struct{ prevent error }

func (demo) Name() string                                { return "demo" }
func (d demo) Check(context.Context, agent.Launch) error { return d.prevent }

func (demo) Prepare(_ context.Context, l *agent.Launch) error {
	l.Argv = []string{netsky, "demo", "serve", string(l.Agent)}
	return nil
}

func launcher(h home.Dir) *spawn.Launcher {
	dir := filepath.Dir(h.Root())
	socket := filepath.Join(dir, "s")
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "NETSKY_TMUX_SOCKET=" + socket, "NETSKY_HOME=" + h.Root()}
	return spawn.New(spawn.Site{
		Home: h, Bus: bus.New(h, bus.Options{}), Journal: store.NewJournal(h), Binary: netsky, Environ: env,
		Tmux: &tmux.Server{Socket: socket, Conf: h.Path(home.TmuxConfFile), Env: env, Tags: []string{spawn.TagHome, spawn.TagStart}},
	})
}

func options(l *spawn.Launcher, prevent error) restart.Options {
	return restart.Options{
		Launcher: l,
		Plan: func(_ context.Context, id agent.ID, environ []string) (spawn.Plan, error) {
			return spawn.Plan{Agent: id, Runtime: demo{prevent}, Dir: l.Home.Root(), Prompt: prompts.Input{Home: l.Home, Runtime: "demo"}}, nil
		},
		Barred: func(agent.ID) string { return "" },
	}
}

type world struct {
	*testing.T
	home home.Dir
	l    *spawn.Launcher
}

func newWorld(t *testing.T, ids ...agent.ID) *world {
	t.Helper()
	h := testworld.FastHome(t)
	w := &world{T: t, home: h, l: launcher(h)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if w.l.Tmux.Stop(ctx) != nil {
			w.l.Tmux.Reap(context.Background())
		}
		testworld.EndAll(t, h)
		w.l.Journal.Close()
	})
	testworld.Must(t, w.l.Bus.Make(agent.Owner))
	w.up(ids...)
	return w
}

func (w *world) up(ids ...agent.ID) {
	w.Helper()
	var plans []spawn.Plan
	for _, id := range ids {
		p, _ := options(w.l, nil).Plan(w.Context(), id, nil)
		plans = append(plans, p)
	}
	ends, err := w.l.Up(w.Context(), spawn.UpOptions{Plans: plans, By: "owner", ReadyWithin: time.Minute})
	if err != nil || slices.ContainsFunc(ends, func(p spawn.Progress) bool { return p.Step != spawn.StepReady && p.Step != spawn.StepAlready }) {
		w.Fatalf("%+v %v", ends, err)
	}
}

func (w *world) statuses() spawn.Statuses {
	w.Helper()
	return testworld.Got(w.l.Inspect(w.Context()))(w)
}

// submit asks for a restart.
func (w *world) submit(r restart.Request, ids ...agent.ID) restart.Request {
	w.Helper()
	r.By = agent.Owner
	testworld.Must(w, restart.Check(w.Context(), options(w.l, nil), ids, &r))
	testworld.Must(w, restart.Submit(w.home, &r))
	return r
}

// process carries out what is asked for, in a process of its own that is killed at a step,
// and reports whether it was.
func (w *world) process(kill int) (killed bool) {
	w.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), runHome+"="+w.home.Root(), runNetsky+"="+netsky, runKill+"="+strconv.Itoa(kill))
	out, err := c.CombinedOutput()
	if err == nil {
		return false
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && !exit.Exited() {
		return true
	}
	w.Fatalf("%v\n%s", err, out)
	return false
}

func (w *world) load(id string) restart.Request {
	w.Helper()
	r, _, err := restart.Load(w.home, id)
	testworld.Must(w, err)
	return r
}

// If anything prevents a new start, nothing is ended: neither at the check nor if it came
// up since.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "agent0", "agent1")
	before := w.statuses()
	broken := errors.New("no such program")
	barred := options(w.l, nil)
	barred.Barred = func(id agent.ID) string {
		if id == "agent1" {
			return "account x: usage limit"
		}
		return ""
	}
	lost := options(w.l, nil)
	lost.Conversation = func(agent.ID) (string, error) { return "", errors.New("its conversation is gone") }
	for _, tt := range []struct {
		name string
		o    restart.Options
		ids  []agent.ID
		want string
	}{
		{"a program that is missing", options(w.l, broken), nil, "agent0: no such program"},
		{"an account that serves nobody", barred, nil, "agent1: not restarted: account x: usage limit"},
		{"a lost conversation", lost, nil, "agent1: its conversation is gone"},
		{"an agent that is not up", options(w.l, nil), []agent.ID{"agent0", "agent7"}, "agent7: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r restart.Request
			testworld.Fails(t, restart.Check(w.Context(), tt.o, tt.ids, &r), tt.want)
			r = restart.Request{By: agent.Owner}
			if tt.ids != nil {
				return
			}
			testworld.Must(t, restart.Check(w.Context(), options(w.l, nil), nil, &r))
			testworld.Must(t, restart.Submit(w.home, &r))
			list, err := restart.Open(w.home)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			restart.Run(w.Context(), tt.o, &list[0])
			if r = w.load(r.ID); !strings.Contains(r.Refused, tt.want) || r.EndedMS == 0 || r.Agents[1].Step != restart.Left {
				t.Errorf("%+v", r)
			}
		})
	}
	for _, st := range w.statuses() {
		if was := before.Find(st.Agent); st.Start != was.Start || st.PID != was.PID || !st.Alive() {
			t.Errorf("%+v", st)
		}
	}
}

// An agent that the owner has ended or started meanwhile is left alone, and the others of a
// restart that had begun are brought back.
func TestOwnersWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "agent0", "agent1", "agent2")
	r := w.submit(restart.Request{Force: true})
	if !w.process(3) { // "ending": nothing has ended yet
		t.Fatal("not killed")
	}
	if got := w.load(r.ID); got.Agents[0].Step != restart.Ending {
		t.Fatalf("%+v", got)
	}
	testworld.Got(w.l.Down(w.Context(), spawn.DownOptions{Agents: []agent.ID{"agent0", "agent1"}, Force: true, By: "owner"}))(t)
	w.up("agent1")
	before := w.statuses()
	w.process(0)
	after := w.statuses()
	if after.Find("agent0").Alive() || after.Find("agent1").Start != before.Find("agent1").Start || after.Find("agent2").Start == before.Find("agent2").Start {
		t.Errorf("%+v", after)
	}
	for i, want := range []restart.Step{restart.Left, restart.Left, restart.Ready} {
		if a := w.load(r.ID).Agents[i]; a.Step != want {
			t.Errorf("%+v", a)
		}
	}
	testworld.ErrorIs(t, testworld.Err(restart.Follow(w.Context(), w.home, r.ID, func(string) {})), restart.ErrPartly)
}

// A request that nobody claims can be withdrawn, and expires.
func TestUnclaimed(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	r := restart.Request{By: agent.Owner, Agents: []restart.Agent{{Agent: "agent1", From: "x"}}}
	testworld.Must(t, restart.Submit(h, &r))
	if ok, err := restart.Withdraw(h, r.ID); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if list, err := restart.Open(h); len(list) > 0 || err != nil {
		t.Fatal(list, err)
	}
	testworld.Must(t, restart.Submit(h, &r))
	r.AtMS -= time.Hour.Milliseconds()
	testworld.Must(t, h.Save("state/restart/new/"+r.ID+".json", r, false))
	if list, err := restart.Open(h); len(list) > 0 || err != nil {
		t.Fatal(list, err)
	}
	testworld.Must(t, restart.Submit(h, &r))
	if list, err := restart.Open(h); len(list) != 1 || err != nil {
		t.Fatal(list, err)
	}
	if ok, err := restart.Withdraw(h, r.ID); ok || err != nil {
		t.Error("withdrew what is claimed", err)
	}
}

// An agent that came back on another conversation, or did not report, is not called back,
// and both conversations are named.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a     restart.Agent
		whole bool
		line  string
	}{
		{restart.Agent{Agent: "agent1", Step: restart.Ready, Start: "s", Conversation: "c", Resumed: "c"}, true, "agent1: ready, start s, conversation c"},
		{restart.Agent{Agent: "agent1", Step: restart.Ready, Start: "s", Conversation: "c", Resumed: "d"}, false, "on another conversation: d instead of c"},
		{restart.Agent{Agent: "agent1", Step: restart.Ready, Start: "s", Conversation: "c"}, false, "a new one instead of c"},
		{restart.Agent{Agent: "agent1", Step: restart.Ready, Start: "s"}, true, "it has no conversation yet"},
		{restart.Agent{Agent: "agent1", Step: restart.Slow, Start: "s", Note: "no report"}, false, "not ready yet: no report"},
		{restart.Agent{Agent: "agent1", Step: restart.Failed, Note: "no program"}, false, "failed: no program"},
	} {
		if got := tt.a.Line(); tt.a.Whole() != tt.whole || !strings.Contains(got, tt.line) {
			t.Errorf("%+v: %v %q", tt.a, tt.a.Whole(), got)
		}
	}
}

// A request that is claimed while somebody reads it is found, in either place.
func TestClaimedWhileRead(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	for range 100 {
		r := restart.Request{Agents: []restart.Agent{{Agent: "agent1"}}}
		testworld.Must(t, restart.Submit(h, &r))
		done := make(chan error, 1)
		go func() {
			_, err := restart.Open(h)
			done <- err
		}()
		for claimed := false; !claimed; {
			var err error
			if _, claimed, err = restart.Load(h, r.ID); err != nil {
				t.Fatal(err)
			}
		}
		testworld.Must(t, <-done)
	}
}
