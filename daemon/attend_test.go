package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/store"
)

// receiverRole makes this test binary the receiver of an agent's mailbox, as a
// child of the agent's program.
const receiverRole = "NETSKY_TEST_RECEIVER"

// receive says that the agent is idle and answers its mail until it is killed.
func receive() int {
	home, err := home.Find(os.Getenv)
	if err != nil {
		return 2
	}
	id, start := agent.ID("agent"+os.Getenv("AGENT_N")), os.Getenv("NETSKY_START")
	b := bus.New(home, bus.Options{})
	r, err := b.Receive(context.Background(), id, bus.ReceiveOptions{Start: start, Report: func(string, error) {}})
	if err != nil {
		fmt.Println(err)
		return 3
	}
	if err := home.SaveReport(id, agent.Report{Start: start, State: agent.Idle, SinceMS: 1, Evidence: "its own word"}); err != nil {
		return 4
	}
	for {
		d, err := r.Next(context.Background())
		if err != nil {
			return 0
		}
		e := d.Envelope()
		if _, err := b.Send(context.Background(), envelope.Envelope{From: id, To: e.From, Kind: envelope.KindReply, InReplyTo: e.ID, Text: "got " + e.Text}); err != nil {
			return 5
		}
		if err := d.Confirm(); err != nil {
			return 6
		}
	}
}

// served is a runtime whose program has a receiver for a child. What it does is
// told by files in dir.
type served struct {
	dir   string
	looks *atomic.Int64 // how often it was asked whether it is idle
}

func (served) Name() string                              { return "served" }
func (served) Check(context.Context, agent.Launch) error { return nil }

func (s served) Prepare(_ context.Context, l *agent.Launch) error {
	me, err := os.Executable()
	if err != nil {
		return err
	}
	l.Env = append(l.Env, receiverRole+"=1", "D="+s.dir, "RESUME="+l.Resume)
	l.Argv = []string{"/bin/sh", "-c", `echo "$AGENT_N $NETSKY_START $RESUME" >>"$D/starts"
if [ -e "$D/trust" ]; then printf 'Do you trust this? <channel>\n'; while [ -e "$D/trust" ]; do sleep 0.1; done; printf '\033[2J\033[Hthanks\n'; fi
[ ! -e "$D/mute" ] || echo "it hears nobody"; while [ -e "$D/mute" ]; do sleep 0.1; done
if [ -e "$D/computes-agent$AGENT_N" ]; then for i in 1 2 3 4 5 6; do sh -c 'while [ -e "$D" ]; do :; done' & done; fi
"$0" & echo $! >"$D/receiver-agent$AGENT_N"
while :; do sleep 0.1; if [ -e "$D/menu" ]; then printf 'What do you want to do?\n'; stty -icanon -echo; dd bs=1 count=1 of="$D/key" 2>/dev/null; rm "$D/menu"; printf '\033[2J\033[H'; fi; if [ -e "$D/trust" ]; then printf 'Do you trust this?\n'; while [ -e "$D/trust" ]; do sleep 0.1; done; printf '\033[2J\033[H'; fi; done`, me}
	return nil
}

// Account is the one of everybody, if there is any.
func (s served) Account(agent.Launch) (name string, changed time.Time) {
	data, _ := os.ReadFile(filepath.Join(s.dir, "account"))
	return string(data), time.Time{}
}

func (s served) Idle(ctx context.Context, l agent.Launch, pid int) (bool, string) {
	s.looks.Add(1)
	if !slices.Contains(l.Env, "D="+s.dir) {
		return false, "asked without the launch's environment"
	}
	for {
		if _, err := os.Stat(filepath.Join(s.dir, "hang")); err != nil {
			break
		}
		select {
		case <-ctx.Done():
			return false, "did not answer"
		case <-time.After(10 * time.Millisecond):
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "busy")); err == nil {
		return false, "a turn runs"
	}
	return true, ""
}

func (s served) Dialog(screen string, _ agent.Launch) (agent.Dialog, bool) {
	if strings.Contains(screen, "Do you trust this?") {
		return agent.Dialog{Name: "trust", Text: "Do you trust this? <channel>"}, true
	}
	if strings.Contains(screen, "What do you want to do?") {
		return agent.Dialog{Name: "limit", Text: "What do you want to do?"}, true
	}
	return agent.Dialog{}, false
}

func (s served) Dismisses(name string) bool { return name == "limit" }

// ward is a world whose daemon runs in this process and knows served agents.
type ward struct {
	*world
	r     served
	stop  func()
	plans atomic.Int64
	hangs agent.ID // its plan takes for ever
	fails agent.ID // and this one has none

	hang, repage time.Duration
	wakes        int
}

func newWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{world: newWorld(t)}
	w.r = served{dir: filepath.Dir(w.home.Root()), looks: new(atomic.Int64)}
	w.begin()
	return w
}

// begin starts the daemon; stop ends it and waits.
func (w *ward) begin() {
	w.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	file, err := w.home.OpenAppend(home.LogDir + "/netsky.jsonl")
	if err != nil {
		w.Fatal(err)
	}
	o := daemon.Options{
		Home: w.home, Bus: w.bus, Launcher: w.l, Version: "test", Hang: w.hang, Repage: w.repage, Wakes: w.wakes,
		Log:      slog.New(slog.NewJSONHandler(io.Writer(file), nil)),
		Runtimes: func() map[string]spawn.Runtime { return map[string]spawn.Runtime{"served": w.r} },
		Plan: func(ctx context.Context, id agent.ID, environ []string) (spawn.Plan, error) {
			w.plans.Add(1)
			if err := w.planned(ctx, id); err != nil {
				return spawn.Plan{}, err
			}
			return spawn.Plan{
				Agent: id, Runtime: w.r, Dir: w.home.Root(), Resume: "conversation-7",
				Prompt: prompts.Input{Home: w.home, Runtime: "served"},
			}, nil
		},
	}
	go func() { ended <- daemon.Run(ctx, o) }()
	stopped := false
	w.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-ended; err != nil {
				w.Errorf("daemon: %v", err)
			}
			file.Close()
		}
	}
	w.Cleanup(func() { w.stop() })
	testworld.WaitOr(w, func() bool { _, err := daemon.Ping(w.ctx, w.home); return err == nil }, func() string { return "no daemon" })
}

func (w *ward) touch(name string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.r.dir, name), nil, 0o600); err != nil {
		w.Fatal(err)
	}
}

func (w *ward) remove(name string) {
	w.Helper()
	if err := os.Remove(filepath.Join(w.r.dir, name)); err != nil {
		w.Fatal(err)
	}
}

// killReceiver kills the receiver of an agent as soon as it holds the mailbox.
func (w *ward) killReceiver(id agent.ID) {
	w.Helper()
	var who home.Holder
	testworld.WaitOr(w, func() (ok bool) { who, ok = w.home.LockHolder("receiver-" + string(id)); return ok }, func() string { return "no receiver" })
	syscall.Kill(who.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool { return !who.Alive() }, func() string { return "the receiver survives" })
}

// shows waits for what status says of an agent.
func (w *ward) shows(id agent.ID, state agent.State, detail string) (st spawn.Status) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		st = w.statuses().Find(id)
		return st.State == state && strings.Contains(st.Detail, detail)
	}, func() string { return fmt.Sprintf("%+v, want %s (%s)", st, state, detail) })
	return st
}

func TestAttendRestarts(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	w.answered(w.mail("agent1", "one"))
	before := w.statuses().Find("agent1")

	// Busy: it is left alone, and status says what is the matter.
	w.touch("busy")
	w.killReceiver("agent1")
	waits := w.mail("agent1", "two")
	st := w.shows("agent1", agent.Waiting, "its receiver has exited; restarting once idle (a turn runs)")
	if st.Inbox != 1 || st.Evidence != "no receiver holds its mailbox" {
		t.Errorf("%+v", st)
	}
	looks := w.r.looks.Load()
	testworld.WaitOr(w, func() bool { return w.r.looks.Load() > looks+2 }, func() string { return "not asked again" })
	if st := w.statuses().Find("agent1"); st.Start != before.Start || w.plans.Load() != 0 {
		t.Fatalf("ended while busy: %+v", st)
	}

	// Idle: it comes back with its conversation, and has its mail.
	w.remove("busy")
	e := w.answered(waits)
	if e.Envelope.Text != "got two" {
		t.Errorf("answer %q", e.Envelope.Text)
	}
	st = w.shows("agent1", agent.Idle, "")
	if st.Start == before.Start || !st.Wanted {
		t.Errorf("%+v, was %+v", st, before)
	}
	starts, err := os.ReadFile(filepath.Join(w.r.dir, "starts"))
	if err != nil || string(starts) != fmt.Sprintf("1 %s \n1 %s conversation-7\n", before.Start, st.Start) {
		t.Errorf("starts %q, %v", starts, err)
	}
	testworld.WaitOr(w, func() bool { return strings.Contains(w.log(), `"msg":"restart"`) }, w.log)

	// And again, after a while.
	w.killReceiver("agent1")
	w.answered(w.mail("agent1", "three"))
	if n := w.plans.Load(); n != 2 {
		t.Errorf("%d restarts, want 2", n)
	}
}

// A daemon that was not there when the receiver died knows by the report that
// there was one; and what is wanted down is not brought back.
func TestAttendAfterwards(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	w.stop()
	w.killReceiver("agent1")
	w.killReceiver("agent2")
	if err := home.Desired(w.home).Set("agent1", false, "owner"); err != nil {
		t.Fatal(err)
	}
	before := w.statuses()
	w.begin()
	w.answered(w.mail("agent2", "hello"))
	if st := w.statuses().Find("agent1"); st.Start != before.Find("agent1").Start || w.plans.Load() != 1 {
		t.Errorf("%+v, was %+v", st, before.Find("agent1"))
	}
}

// What takes long about one agent holds up nothing about the others, nor the end of
// the daemon.
func TestAttendBeside(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1", "agent2")
	w.touch("hang")
	w.killReceiver("agent1")
	testworld.WaitOr(w, func() bool { return w.r.looks.Load() > 0 }, func() string { return "never asked whether it is idle\n" + w.log() })
	st, db := w.statuses().Find("agent2"), w.db()
	syscall.Kill(st.PID, syscall.SIGKILL)
	testworld.WaitOr(w, func() bool {
		s, err := db.Session(w.ctx, st.Start)
		return err == nil && s.State == agent.Dead
	}, func() string { return "the death of agent2 is not on record\n" + w.log() })
	if n := w.r.looks.Load(); n != 1 {
		t.Errorf("agent1's runtime was asked %d times at once", n)
	}
	w.stop()
}

func TestAttendDialog(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.touch("trust")
	w.up(w.r, "agent1")
	w.shows("agent1", agent.Waiting, "trust")
	mail := func() (list []envelope.Envelope) {
		t.Helper()
		for _, place := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered} {
			all, err := w.bus.List(agent.Owner, place, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				if e.Err == nil && e.Envelope.Kind == envelope.KindApproval {
					list = append(list, e.Envelope)
				}
			}
		}
		return list
	}
	testworld.WaitOr(w, func() bool { return len(mail()) > 0 }, func() string { return "the owner was not told\n" + w.log() })
	want := "agent1 is waiting at a dialog in its pane (trust): Do you trust this? &lt;channel>\nOnly you can answer it: netsky attach agent1"
	if e := mail()[0]; e.From != "agent1" || e.Text != want || e.Via != "code" {
		t.Errorf("%+v", e)
	}

	// Another daemon knows that it was told.
	w.stop()
	w.begin()

	// Answered: it starts, and takes its mail.
	w.remove("trust")
	w.answered(w.mail("agent1", "hello"))
	w.shows("agent1", agent.Idle, "")
	start := w.statuses().Find("agent1").Start

	// The mail about it needs nothing of the owner any more.
	w.read(mail()[0].ID, "answered in the pane: trust: Do you trust this?")

	// An agent without its receiver is not ended while a dialog is open.
	w.touch("trust")
	w.killReceiver("agent1")
	id := w.mail("agent1", "two")
	w.shows("agent1", agent.Waiting, "trust")
	if st := w.statuses().Find("agent1"); st.Start != start || w.plans.Load() != 0 {
		t.Errorf("restarted at a dialog: %+v", st)
	}
	testworld.WaitOr(w, func() bool { return len(mail()) == 2 }, func() string { return "the owner was not told\n" + w.log() })
	w.remove("trust")
	w.answered(id)
	w.read(mail()[1].ID, "") // how it went depends on how soon the agent is restarted
	testworld.WaitOr(w, func() bool { n, err := w.bus.Count(agent.Owner, bus.Inbox); return err == nil && n == 0 }, func() string { return "the owner's mail is not filed" })
	if list := mail(); len(list) != 2 || list[0].ID == list[1].ID {
		t.Errorf("told %v, want each of two dialogs once", list)
	}
}

// A start that does not get ready within a minute is shown with what its pane shows, and the
// owner is told once, whatever the cause is. It is not ended, and may still get ready.
func TestAttendUnready(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.touch("mute")
	if _, err := w.l.Up(w.ctx, spawn.UpOptions{
		Plans: []spawn.Plan{{Agent: "agent1", Runtime: w.r, Dir: w.home.Root(), Prompt: prompts.Input{Home: w.home, Runtime: "served"}}},
		By:    "owner", ReadyWithin: time.Nanosecond,
	}); err != nil {
		t.Fatal(err)
	}
	la, err := w.home.LoadLaunch("agent1")
	if err != nil {
		t.Fatal(err)
	}
	la.StartedMS -= agent.StartsWithin.Milliseconds()
	if err := w.home.SaveLaunch(la); err != nil {
		t.Fatal(err)
	}
	st := w.shows("agent1", agent.Starting, "its pane shows: it hears nobody")
	if st.Start != la.Start {
		t.Errorf("%+v", st)
	}
	testworld.WaitOr(w, func() bool {
		list, err := w.bus.Locate(w.ctx, "unready-"+la.Start)
		return err == nil && len(list) > 0 && strings.Contains(list[0].Envelope.Text, "its pane shows: it hears nobody.\n`netsky attach agent1` ")
	}, w.log)
	w.remove("mute")
	w.answered(w.mail("agent1", "hello"))
	if st := w.shows("agent1", agent.Idle, ""); st.Start != la.Start {
		t.Errorf("started again: %+v", st)
	}
	testworld.WaitOr(w, func() bool {
		_, settled, err := new(home.Shown).Names(w.home)
		return err == nil && len(settled) == 1
	}, w.log)
}

// A dialog that the program has opened by itself, and that its receiver would have closed,
// does not keep an agent without its receiver from going on.
func TestAttendDismisses(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.up(w.r, "agent1")
	start := w.statuses().Find("agent1").Start
	w.touch("menu")
	w.killReceiver("agent1")
	w.answered(w.mail("agent1", "hello"))
	if st := w.statuses().Find("agent1"); st.Start == start {
		t.Errorf("not restarted: %+v", st)
	}
	if key, err := os.ReadFile(filepath.Join(w.r.dir, "key")); err != nil || string(key) != "\x1b" {
		t.Errorf("pressed %q, %v", key, err)
	}
}

// read waits until all mail of that id counts as read, and what became of it is on
// record.
func (w *ward) read(id, how string) {
	w.Helper()
	testworld.WaitOr(w, func() bool {
		shown, err := home.ShownMail(w.home).Names()
		names, err2 := w.bus.Mail(agent.Owner, false)
		list, err3 := w.bus.FindAll(agent.Owner, names)
		for _, e := range list {
			if e.Envelope.ID == id && !shown[e.Name] {
				return false
			}
		}
		return errors.Join(err, err2, err3) == nil
	}, func() string { return id + " is not read\n" + w.log() })
	testworld.WaitOr(w, func() bool {
		logs, err := w.db().Logs(w.ctx, store.LogFilter{About: id})
		return err == nil && len(logs.Items) == 1 && strings.HasPrefix(logs.Items[0].Text, how)
	}, func() string { return how + " is not on record\n" + w.log() })
}
