package spawn_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// askerRole is a program that shows a question before it says that it is ready,
// and puts every byte that it reads into a file in its directory.
const askerRole = "SPAWN_TEST_ASKER"

func ask(how string) int {
	if out, err := askerStty(); err != nil {
		fmt.Printf("stty: %v: %s\n", err, out)
		return 1
	}
	dir, _ := os.Getwd()
	log, err := os.OpenFile(filepath.Join(dir, "typed-"+os.Getenv("AGENT_N")), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	question, yes := "Trust "+dir+"?", false
	switch how {
	case "elsewhere":
		question = "Trust /elsewhere?"
	case "moon":
		question = "Buy a moon?"
	}
	draw := func() {
		arrow := map[bool]string{true: "> ", false: "  "}
		fmt.Printf("\x1b[2J\x1b[H%s\r\n%sNo\r\n%sYes\r\n", question, arrow[!yes], arrow[yes])
	}
	draw()
	typed := make(chan byte)
	go func() {
		for in := bufio.NewReader(os.Stdin); ; {
			c, err := in.ReadByte()
			if err != nil {
				os.Exit(0)
			}
			typed <- c
		}
	}()
	for jumped := how != "jumps"; ; {
		c := <-typed
		if _, err := log.Write([]byte{c}); err != nil {
			return 1
		}
		switch {
		case c == 'B' && how != "stuck": // the end of Down
			yes = !yes
			if how == "late" { // as on a machine with far too much to do
				time.Sleep(2 * time.Second)
			}
			draw()
			if !jumped { // the menu is laid out anew, as Claude Code's is, once the arrow was seen to have moved
				jumped = testworld.Until(func() bool { _, err := os.Stat(filepath.Join(dir, "seen")); return err == nil })
				yes = false
				draw()
				os.WriteFile(filepath.Join(dir, "jumped"), nil, 0o600)
			}
		case c == '\r' && how == "deaf":
		case c == '\r' && !yes:
			return 3
		case c == '\r':
			fmt.Print("\x1b[2J\x1b[H")
			if how != "mute" {
				sayReady()
			}
		}
	}
}

func askerStty() ([]byte, error) {
	cmd := exec.Command("stty", "raw", "-echo")
	cmd.Stdin = os.Stdin
	return cmd.CombinedOutput()
}

func sayReady() {
	home, err := home.At(os.Getenv("NETSKY_HOME"))
	if err == nil {
		err = home.SaveReport(agent.ID("agent"+os.Getenv("AGENT_N")), agent.Report{
			Start: os.Getenv("NETSKY_START"), State: agent.Idle, SinceMS: 1, Evidence: "itself",
		})
	}
	if err != nil {
		fmt.Println(err)
	}
}

// An asker is the runtime of agents that ask. The zero one shows its questions
// to nobody.
type asker struct{ how string }

func (asker) Name() string                              { return "asker" }
func (asker) Check(context.Context, agent.Launch) error { return nil }

func (a asker) Prepare(_ context.Context, l *agent.Launch) error {
	self, err := os.Executable()
	l.Argv, l.Env = []string{self}, append(l.Env, askerRole+"="+a.how)
	return err
}

// A seenAsker's questions are seen; the trust of the launch's own directory is
// implied.
type seenAsker struct{ asker }

func (a seenAsker) Dialog(screen string, l agent.Launch) (agent.Dialog, bool) {
	lines := strings.Split(screen, "\n")
	if len(lines) < 3 || !strings.HasSuffix(lines[0], "?") {
		return agent.Dialog{}, false
	}
	dir, trust := strings.CutPrefix(strings.TrimSuffix(lines[0], "?"), "Trust ")
	if !trust {
		return agent.Dialog{Name: "unknown dialog", Text: lines[0]}, true
	}
	d := agent.Dialog{Name: "trust", Text: dir}
	if a.how == "jumps" && strings.HasPrefix(lines[2], ">") {
		os.WriteFile(filepath.Join(l.Dir, "seen"), nil, 0o600)
		testworld.Until(func() bool { _, err := os.Stat(filepath.Join(l.Dir, "jumped")); return err == nil })
	}
	if dir == l.Dir {
		d.Keys = []string{"Enter"}
		if strings.HasPrefix(lines[1], ">") {
			d.Keys = []string{"Down", "Enter"}
		}
	}
	return d, true
}

// typed is what an asker has read.
func (w *world) typed(name string) string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.work(), "typed-"+agent.ID(name).N()))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(data)
}

// isTyped waits for an asker to have read what is wanted, and wants no more.
func (w *world) isTyped(name, want string) {
	w.Helper()
	testworld.WaitOr(w, func() bool { return len(w.typed(name)) >= len(want) }, func() string { return name + ": too little typed" })
	testworld.Equal(w, w.typed(name), want, "%s was typed", name)
}

const answer = "\x1b[B\r"

func TestDialogAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, p := range w.up(seenAsker{asker{"plain"}}, "agent1", "agent2") {
		if p.Step != spawn.StepReady || p.State != agent.Idle {
			t.Errorf("%s: %s %s %v, want ready, idle", p.Agent, p.Step, p.State, p.Err)
		}
		w.isTyped(string(p.Agent), answer)
	}
}

// What the agent says of itself later replaces what was read off its pane.
func TestDialogAnsweredByAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.up(seenAsker{asker{"moon"}}, "agent1")
	w.tmux("send-keys", "-t", "=agent1:", "Down", "Enter")
	testworld.Equal(t, w.becomes("agent1", agent.Idle).Evidence, "itself", "idle by")
	if _, ok, err := w.l.Lookout(w.status("agent1"), seenAsker{}).Look(w.ctx, true); ok || err != nil {
		t.Errorf("Look = %v, %v", ok, err)
	}
	testworld.Equal(t, w.status("agent1").State, agent.Idle, "after a look")
}

// slowly brings an agent up whose runtime shows its dialogs to nobody.
func (w *world) slowly(how string) spawn.Status {
	w.Helper()
	w.readyWithin = 50 * time.Millisecond
	if p := w.up(asker{how}, "agent1")[0]; p.Step != spawn.StepSlow {
		w.Fatalf("up: %s %v", p.Step, p.Err)
	}
	testworld.WaitOr(w, func() bool { return strings.Contains(w.tmux("capture-pane", "-p", "-t", "=agent1:"), "Yes") },
		func() string { return "no dialog in the pane" })
	return w.status("agent1")
}

func TestLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, r := w.slowly("plain"), seenAsker{}
	want := agent.Dialog{Name: "trust", Text: w.work()}
	// Not asked to answer, it doesn't.
	if d, ok, err := w.l.Lookout(st, r).Look(w.ctx, false); err != nil || !ok || d.Name != want.Name || d.Text != want.Text {
		t.Errorf("Look = %q, %v, %v, want %q", d, ok, err, want)
	}
	if now := w.status("agent1"); now.State != agent.Waiting || now.Detail != "trust: "+w.work() || w.typed("agent1") != "" {
		t.Errorf("%s %q, typed %q", now.State, now.Detail, w.typed("agent1"))
	}
	// Nor in a pane in which somebody scrolls.
	w.tmux("copy-mode", "-t", "=agent1:")
	if _, ok, err := w.l.Lookout(st, r).Look(w.ctx, true); err != nil || !ok || w.typed("agent1") != "" {
		t.Errorf("in copy mode: %v, %v, typed %q", ok, err, w.typed("agent1"))
	}
	w.tmux("send-keys", "-t", "=agent1:", "-X", "cancel")
	testworld.WaitOr(w, func() bool {
		_, _, err := w.l.Lookout(st, r).Look(w.ctx, true)
		testworld.Must(t, err)
		return w.status("agent1").State == agent.Idle
	}, func() string { return "not answered" })
	w.isTyped("agent1", answer)
}

// A dialog that has gone is not waited for any more, though nobody says so.
func TestLookGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, r := w.slowly("mute"), seenAsker{}
	if _, ok, err := w.l.Lookout(st, r).Look(w.ctx, false); !ok || err != nil {
		t.Fatalf("Look = %v, %v", ok, err)
	}
	since := w.becomes("agent1", agent.Waiting).Since
	if _, _, err := w.l.Lookout(st, r).Look(w.ctx, false); err != nil || !w.status("agent1").Since.Equal(since) {
		t.Errorf("waits since %v, then since %v (%v)", since, w.status("agent1").Since, err)
	}
	w.tmux("send-keys", "-t", "=agent1:", "Down", "Enter")
	// A look that finds a change leaves it to the next one.
	testworld.WaitOr(w, func() bool {
		_, ok, err := w.l.Lookout(st, r).Look(w.ctx, false)
		return err == nil && !ok && w.status("agent1").State == agent.Starting
	}, func() string { return fmt.Sprintf("still waits: %+v", w.status("agent1")) })
}

// An answer is given time before a person is told of the dialog.
func TestDialogGoing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clock.stop()
	st := w.slowly("deaf")
	if d, ok, err := w.l.Lookout(st, seenAsker{}).Look(w.ctx, true); !ok || err != nil || d.Keys == nil {
		t.Fatalf("Look = %q, %v, %v", d, ok, err)
	}
	for range 3 {
		if d, ok, err := w.l.Lookout(st, seenAsker{}).Look(w.ctx, true); ok || err != nil {
			t.Errorf("again: %q, %v, %v", d, ok, err)
		}
	}
	w.isTyped("agent1", answer)
	if now := w.status("agent1"); now.State != agent.Starting {
		t.Errorf("%s %q", now.State, now.Detail)
	}
}

// Two that look at once answer once.
func TestDialogOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.slowly("plain")
	done := make(chan error)
	for range 4 {
		go func() {
			l := launcherAt(w.home, w.socket, w.l.Environ)
			defer l.Journal.Close()
			_, _, err := l.Lookout(st, seenAsker{}).Look(w.ctx, true)
			done <- err
		}()
	}
	for range 4 {
		testworld.Equal(t, <-done, nil)
	}
	w.becomes("agent1", agent.Idle)
	w.isTyped("agent1", answer)
}

// While its receiver is there, what it says of the agent stands.
func TestDialogHeard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.slowly("moon")
	lock := testworld.Got(w.home.Lock("receiver-agent1"))(t)
	defer lock.Unlock()
	if _, ok, err := w.l.Lookout(st, seenAsker{}).Look(w.ctx, true); !ok || err != nil {
		t.Fatalf("Look = %v, %v", ok, err)
	}
	if now := w.status("agent1"); now.State != agent.Starting {
		t.Errorf("%s (%s)", now.State, now.Evidence)
	}
}

func TestLookOtherStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st := w.slowly("plain")
	old := st
	old.Start = "0123456789abcdef"
	if _, _, err := w.l.Lookout(old, seenAsker{}).Look(w.ctx, true); !errors.Is(err, spawn.ErrOtherStart) {
		t.Errorf("of another start: %v", err)
	}
	w.down(spawn.DownOptions{Agents: ids("agent1"), Force: true})
	if _, _, err := w.l.Lookout(w.status("agent1"), seenAsker{}).Look(w.ctx, true); err == nil {
		t.Error("without a session: no error")
	}
	testworld.Equal(t, w.typed("agent1"), "", "typed")
}
