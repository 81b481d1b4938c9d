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
	// It naps without starting a program, ten of which a second would keep a processor busy.
	l.Argv = []string{"/bin/bash", "-c", `nap() { read -rt 0.1 -u 9; }; exec 9<> <(:)
echo "$AGENT_N $NETSKY_START $RESUME" >>"$D/starts"
if [ -e "$D/trust" ]; then printf 'Do you trust this? <channel>\n'; while [ -e "$D/trust" ]; do nap; done; printf '\033[2J\033[Hthanks\n'; fi
[ ! -e "$D/mute" ] || echo "it hears nobody"; while [ -e "$D/mute" ]; do nap; done
if [ -e "$D/computes-agent$AGENT_N" ]; then sh -c 'while [ -e "$D" ]; do :; done' & fi
"$0" & echo $! >"$D/receiver-agent$AGENT_N"
while :; do nap; if [ -e "$D/menu" ]; then printf 'What do you want to do?\n'; stty -icanon -echo; dd bs=1 count=1 of="$D/key" 2>/dev/null; rm "$D/menu"; printf '\033[2J\033[H'; fi; if [ -e "$D/trust" ]; then printf 'Do you trust this?\n'; while [ -e "$D/trust" ]; do nap; done; printf '\033[2J\033[H'; fi; done`, me}
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
	file := testworld.Got(w.home.OpenAppend(home.LogDir + "/netsky.jsonl"))(w)
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
