//go:build live

package spawn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/tmux"
)

// quiet is a program that knows nothing of netsky.
type quiet struct{ program }

func (quiet) Silent() {}

// repl reads lines and puts them into the file lines.
const repl = `printf 'hello, I am a program\n> '; while read -r line; do echo "$line" >>lines; printf 'heard\n> '; done`

func silent(script string) quiet { return quiet{sh(script)} }

// newSilentWorld has a silent agent1 that has come up.
func newSilentWorld(t *testing.T, script string) *world {
	t.Helper()
	w := newWorld(t)
	w.upReady(silent(script), "agent1")
	return w
}

// points points until ok, as the daemon would. Where that waits, the clock is put on.
func (w *world) points(what string, ok func(pane.Pointed) bool) (p pane.Pointed) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		p = testworld.Got(w.l.Point(w.ctx, "agent1"))(w)
		if ok(p) {
			return true
		}
		w.clock.pass(p.Again)
		return false
	}, func() string {
		return "never " + what + ": " + p.Held + "\n" + w.tmux("capture-pane", "-p", "-t", "=agent1:")
	})
	return p
}

func (w *world) told() {
	w.Helper()
	w.points("told", func(p pane.Pointed) bool { return p.Told > 0 })
}

func (w *world) held(why string) {
	w.Helper()
	w.points("held", func(p pane.Pointed) bool {
		if p.Told > 0 {
			w.Fatalf("told, want held: %s", why)
		}
		return strings.Contains(p.Held, why)
	})
}

// lines are what the program has read, once there are n of them.
func (w *world) lines(n int) (list []string) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		data, _ := os.ReadFile(filepath.Join(w.work(), "lines"))
		list = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		if len(data) == 0 {
			list = nil
		}
		return len(list) >= n
	}, func() string { return strings.Join(list, "|") })
	return list
}

func (w *world) person() person {
	w.Helper()
	s := &tmux.Server{Socket: filepath.Join(w.dir, "p"), Env: w.l.Environ}
	w.Cleanup(func() { s.Stop(w.ctx) })
	words := []string{"exec env -u TMUX"}
	for _, a := range w.l.Tmux.Argv("attach-session", "-t", "=agent1") {
		words = append(words, "'"+a+"'")
	}
	panes := testworld.Got(s.Start(w.ctx, nil, []tmux.Session{{Name: "person", Command: strings.Join(words, " ")}}))(w)
	testworld.WaitOr(w, func() bool { return w.tmux("list-clients", "-t", "=agent1") != "" }, func() string { return "nobody attached" })
	testworld.WaitOr(w, func() bool { // what is typed before that may be lost
		look, err := s.Look(w.ctx, panes[0])
		return err == nil && strings.TrimSpace(strings.Join(look.Screen, "")) != ""
	}, func() string { return "nothing to be seen" })
	return person{w, s, panes[0]}
}

func (p person) types(keys ...string) {
	p.w.Helper()
	testworld.Must(p.w, p.s.Keys(p.w.ctx, p.pane.ID, keys...))
}

// clears takes back a draft.
func (p person) clears() {
	p.w.Helper()
	p.types("C-u")
	testworld.WaitOr(p.w, func() bool {
		return !strings.Contains(p.w.tmux("capture-pane", "-p", "-t", "=agent1:"), "> a draft")
	}, func() string { return "the draft stays" })
}

func (p person) leaves() {
	p.w.Helper()
	testworld.Must(p.w, p.s.Stop(p.w.ctx))
	testworld.WaitOr(p.w, func() bool { return p.w.tmux("list-clients", "-t", "=agent1") == "" }, func() string { return "somebody stays" })
}

// sees waits until the pane shows the text.
func (w *world) sees(text string) {
	w.Helper()
	screen := ""
	testworld.WaitOr(w, func() bool {
		screen = w.tmux("capture-pane", "-p", "-t", "=agent1:")
		return strings.Contains(screen, text)
	}, func() string { return screen })
}

func TestPoint(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	if p, err := w.l.Point(w.ctx, "agent1"); err != nil || p.Told != 0 || p.Again <= 0 {
		t.Errorf("without mail: %+v, %v", p, err)
	}
	w.mail("agent1", "one")
	w.mail("agent1", "two")
	w.told()
	told := w.clock.now()
	want := "netsky: you are agent1, and 2 messages wait for you. First read " + w.home.Path(home.PromptFile("agent1")) + ", then run: netsky channel drain"
	testworld.Equal(t, w.lines(1)[0], want, "told")
	if st := w.status("agent1"); !strings.HasPrefix(st.Detail, "told of its mail at ") {
		t.Errorf("status: %+v", st)
	}
	if p, err := w.l.Point(w.ctx, "agent1"); err != nil || p.Told != 0 || p.Again <= 0 || p.Again > time.Minute {
		t.Errorf("told again at once: %+v, %v", p, err)
	}

	// Told again while it takes nothing, and by a shorter line once it has taken some.
	testworld.Must(t, w.l.Greet("agent1", w.status("agent1").Start))
	w.told()
	if since := w.clock.now().Sub(told); since < 55*time.Second { // a moment passed before told
		t.Errorf("told again after %v", since)
	}
	if got := w.lines(2); len(got) != 2 || got[1] != "netsky: 2 messages wait for you; run: netsky channel drain" {
		t.Errorf("lines %q", got)
	}
	testworld.Fails(t, testworld.Err(w.l.Point(w.ctx, "agent2")), "", "no error for an agent that was never up")
}

// While a budget is used up it is told of nothing; status says why.
func TestPointBudget(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	b := breaker.Of(w.home, breaker.AllBudget)
	testworld.Got(b.Bar(w.ctx, agent.Root, "the budget of all agents, 10 tokens", "day:x:", false, time.Time{}))(t)
	w.mail("agent1", "one")
	w.held("budget used up: the budget of all agents, 10 tokens")
	if st := w.status("agent1"); !strings.Contains(st.Detail, "budget used up") {
		t.Errorf("status: %+v", st)
	}
	testworld.Got(b.Lift(w.ctx))(t)
	w.told()
}

// What takes none of its mail is told of it some times, later each time, and then no more:
// it is blocked, until some is taken.
func TestPointInVain(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	w.mail("agent1", "one")
	w.mail("agent1", "two")
	var at []time.Time
	var last pane.Pointed
	for !last.Last && len(at) < 20 {
		last = w.points("told", func(p pane.Pointed) bool { return p.Told > 0 })
		at = append(at, w.clock.now())
		if n := len(at); n > 2 && at[n-1].Sub(at[n-2]) < 3*at[n-2].Sub(at[n-3])/2 {
			t.Errorf("told again after %v, before that after %v", at[n-1].Sub(at[n-2]), at[n-2].Sub(at[n-3]))
		}
	}
	if len(at) != 6 || last.Times != 6 {
		t.Errorf("told %d times, the last %+v", len(at), last)
	}
	for range 100 {
		p, err := w.l.Point(w.ctx, "agent1")
		if err != nil || p.Told > 0 || p.Again <= 0 {
			t.Fatalf("after the last time: %+v, %v", p, err)
		}
		w.clock.pass(p.Again)
	}
	if st := w.status("agent1"); st.State != agent.Blocked || !strings.Contains(st.Detail, "told of its mail 6 times") {
		t.Errorf("status: %+v", st)
	}
	testworld.Got(w.bus.Drain(w.ctx, "agent1", 1, func(envelope.Envelope) error { return nil }))(t)
	if err := w.home.Remove(home.LockDir + "/receiver-agent1"); err != nil { // as the process of a drain ends
		t.Fatal(err)
	}
	w.told()
	if st := w.status("agent1"); st.State == agent.Blocked {
		t.Errorf("some was taken: %+v", st)
	}
}

// The pause holds only while mail lies there that the program was told of: one
// that takes its mail hears of the next at once.
func TestPointAfterADrain(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	for n := 1; n <= 3; n++ {
		before := w.clock.now()
		w.mail("agent1", "hello")
		w.told()
		if took := w.clock.now().Sub(before); took >= time.Minute {
			t.Errorf("told only after %v", took)
		}
		w.lines(n)
		w.mail("agent1", "while the first lies there")
		if p, err := w.l.Point(w.ctx, "agent1"); err != nil || p.Told != 0 || p.Again <= 0 {
			t.Errorf("told again before it has drained: %+v, %v", p, err)
		}
		testworld.Got(w.bus.Drain(w.ctx, "agent1", 0, func(envelope.Envelope) error { return nil }))(t)
		// A drain is a process that ends; this one lives on.
		testworld.Must(t, w.home.Remove(home.LockDir+"/receiver-agent1"))
	}
}

func TestPointLeavesDrafts(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	w.points("looked at", func(p pane.Pointed) bool { // how an empty line looks is known by now
		_, err := os.Stat(w.home.Path("state/pointer/agent1.json"))
		return err == nil
	})
	p := w.person()
	p.types("a draft")
	w.sees("> a draft")
	w.mail("agent1", "hello")
	w.held("a person")
	p.leaves()
	w.held("draft")
	if st := w.status("agent1"); !strings.Contains(st.Detail, "not told of its mail at ") || !strings.Contains(st.Detail, "draft") {
		t.Errorf("status: %+v", st)
	}
	p = w.person()
	p.clears()
	p.leaves()
	w.told()
	if got := w.lines(1); len(got) != 1 || !strings.HasPrefix(got[0], "netsky: ") {
		t.Errorf("lines %q", got)
	}
}

// What was known of the empty line may be lost: without it a line with words is
// taken for a draft, and a bare prompt for none.
func TestPointForgets(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	p := w.person()
	p.types("a draft")
	w.sees("> a draft")
	w.mail("agent1", "hello")
	p.leaves()
	w.held("draft")
	p = w.person()
	p.clears()
	p.leaves()
	testworld.Must(t, w.home.Remove("state/pointer/agent1.json"))
	w.told()
}

// A program that hides the cursor has its input line somewhere else.
func TestPointHiddenCursor(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, `printf '\033[?25l> a draft\nfoot\n'; exec sleep 1000`)
	w.sees("foot")
	p := w.person()
	p.leaves()
	w.mail("agent1", "hello")
	w.held("draft")
}

func TestPointCopyMode(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	w.tmux("copy-mode", "-t", "=agent1:")
	w.mail("agent1", "hello")
	w.held("copy mode")
	w.tmux("send-keys", "-t", "=agent1:", "-X", "cancel")
	w.told()
	w.lines(1)
}

func TestPointWaitsForQuiet(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, `while [ ! -e stop ]; do printf .; sleep 0.2; done; `+repl)
	w.mail("agent1", "hello")
	if p, err := w.l.Point(w.ctx, "agent1"); err != nil || p.Held != "its pane is changing" || p.Again > pane.Calm {
		t.Errorf("Point() = %+v, %v", p, err)
	}
	if st := w.status("agent1"); st.State != agent.Busy {
		t.Errorf("status %s (%s)", st.State, st.Evidence)
	}
	testworld.Must(t, os.WriteFile(filepath.Join(w.work(), "stop"), nil, 0o600))
	w.told()
	w.lines(1)
}

// An Enter that was missed is pressed, and the line is not typed twice.
func TestPointFinishes(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, repl)
	w.mail("agent1", "hello")
	w.tmux("send-keys", "-t", "=agent1:", "-l", "netsky: 1 message waits for you; run: netsky channel drain")
	w.sees("run: netsky channel drain")
	w.told()
	if got := w.lines(1); got[0] != "netsky: 1 message waits for you; run: netsky channel drain" {
		t.Errorf("lines %q", got)
	}
}

func TestPointAnswersNothing(t *testing.T) {
	t.Parallel()
	w := newSilentWorld(t, `printf 'Do you trust this folder?\n\n❯ 1. Yes, proceed\n  2. No, exit\n'; exec cat >lines`)
	w.sees("No, exit")
	w.mail("agent1", "hello")
	w.held("question")
}

func TestSilentUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now()
	p := w.up(silent(repl), "agent1")[0]
	if p.Step != spawn.StepReady || p.Note != "running; reports nothing to netsky" || time.Since(began) < time.Second {
		t.Errorf("%+v after %v", p, time.Since(began))
	}
	st := w.status("agent1")
	if !st.Silent || st.State != agent.Busy && st.State != agent.Idle || st.Detail != "" {
		t.Errorf("status %+v", st)
	}
	st = w.becomes("agent1", agent.Idle)
	if !strings.Contains(st.Evidence, "is quiet") || st.Since.IsZero() {
		t.Errorf("status %+v", st)
	}
	// That time passes is no change: who follows would be told each second.
	next := time.NewTimer(1100 * time.Millisecond)
	<-next.C
	if now := w.status("agent1"); now.Evidence != st.Evidence || now.Detail != st.Detail || !now.Since.Equal(st.Since) {
		t.Errorf("a second later %+v, was %+v", now, st)
	}
	w.tmux("send-keys", "-t", "=agent1:", "x", "Enter")
	w.becomes("agent1", agent.Busy)

	p = w.up(silent("echo unknown flag; exit 2"), "agent2")[0]
	if p.Step != spawn.StepFailed || p.Err.Error() != "exited 2" || !strings.HasPrefix(strings.Join(p.Lines, "|"), "unknown flag|") {
		t.Errorf("%+v", p)
	}
	if st := w.status("agent2"); st.State != agent.Dead {
		t.Errorf("status %+v", st)
	}
}

// Nobody is waited for who can't answer.
func TestDownUnheard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.upReady(silent("trap '' TERM HUP; "+repl), "agent1")
	began := time.Now()
	log, err := w.l.Down(w.ctx, spawn.DownOptions{})
	testworld.Must(t, err)
	testworld.Equal(t, steps(log)["agent1"], "unasked ended", "steps")
	if log[0].Err == nil || log[0].Err.Error() != "its program (runtime test) takes no requests" {
		t.Errorf("%+v", log[0])
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("down took %v", took)
	}
	w.upReady(stays(), "agent1")
	la := testworld.Got(w.home.LoadLaunch("agent1"))(t)
	la.StartedMS -= time.Minute.Milliseconds()
	testworld.Must(t, w.home.SaveLaunch(la))
	if log, err = w.l.Down(w.ctx, spawn.DownOptions{}); err != nil || steps(log)["agent1"] != "unasked ended" || log[0].Err.Error() != "no process of it is reading its mail" {
		t.Errorf("%+v, %v", log, err)
	}
}
