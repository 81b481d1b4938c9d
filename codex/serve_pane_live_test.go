//go:build live

package codex_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// mustPane starts the agent in a pane and waits until it is ready. edit are
// "NAME=value" of its environment.
func (w *world) mustPane(edit ...string) *pane {
	w.Helper()
	binary := testworld.Got(os.Executable())(w)
	p := &pane{world: w, start: agent.NewStart()}
	env := append(append(edit, w.env...), // the first of a name counts
		"SERVE_ROLE=serve", "SERVE_DIR="+w.dir, "SERVE_SANDBOX=danger-full-access", "SERVE_APPROVAL=never",
		"NETSKY_HOME="+w.home.Root(), "NETSKY_START="+p.start, "NETSKY_TEST_CODEX="+w.program)
	testworld.Must(w, w.home.ClearReports("agent1"))
	testworld.Must(w, w.home.SaveLaunch(agent.Launch{Agent: "agent1", Start: p.start, Argv: []string{binary}, Env: env, Dir: w.dir}))
	p.tmux("new-session", "-d", "-s", "a1", "-x", "120", "-y", "40", "-e", "SERVE_ROLE=keeper", "-e", "NETSKY_HOME="+w.home.Root(), "exec "+binary)
	w.Cleanup(func() {
		if w.Failed() {
			if screen, err := exec.Command("tmux", "-S", p.socket(), "capture-pane", "-p", "-t", "a1").Output(); err == nil {
				w.Logf("pane:\n%s", strings.TrimSpace(string(screen)))
			}
		}
		exec.Command("tmux", "-S", p.socket(), "kill-server").Run() // hangs up; all of it ends
		var list []proc.Process
		testworld.Until(func() bool {
			list, _ = proc.Descendants(0, "NETSKY_HOME="+w.home.Root())
			return len(list) == 0
		})
		for _, q := range list {
			syscall.Kill(q.PID, syscall.SIGKILL)
		}
	})
	return p
}

// mustKill kills the sidecar of this pane, once its keeper has put it on record.
func (p *pane) mustKill() {
	p.Helper()
	var k agent.Keeper
	p.until("the keeper's record", func() bool {
		k, _ = p.home.LoadKeeper("agent1")
		return k.Start == p.start && k.PID > 0
	})
	testworld.Must(p, syscall.Kill(k.PID, syscall.SIGKILL), "kill %d", k.PID)
}

// mustClose ends the pane, and waits for its keeper: one that still writes its
// last record would write it over the next one's.
func (p *pane) mustClose() {
	p.Helper()
	p.tmux("kill-server")
	p.mustEnd("NETSKY_HOME=" + p.home.Root())
}

// mustSee waits until the pane shows a text.
func (p *pane) mustSee(text string) {
	p.Helper()
	p.until("on the screen: "+text, func() bool { return strings.Contains(p.text(), text) })
}

func (p *pane) keys(keys ...string) { p.tmux(append([]string{"send-keys", "-t", "a1"}, keys...)...) }

// program is the process of the agent whose command line has a word.
func (w *world) program1(word string) (found proc.Process) {
	w.Helper()
	w.until("a process with "+word, func() bool {
		list, _ := proc.Descendants(0, "NETSKY_HOME="+w.home.Root())
		for _, q := range list {
			line, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(q.PID), "cmdline"))
			if strings.Contains(string(line), word) {
				found = q
				return true
			}
		}
		return false
	})
	return found
}

const composer = "Ask Codex to do anything"

func TestServePane(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	config := filepath.Join(w.home.Root()+".codex", "config.toml")
	before := testworld.Got(os.ReadFile(config))(t)
	if err := os.Mkdir(filepath.Join(w.dir, ".git"), 0o700); err != nil { // which Codex would trust, in writing
		t.Fatal(err)
	}
	p := w.mustPane()
	w.mustState(agent.Idle, "")
	p.mustSee(composer)
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: say by the bus"})
	if e := w.mustAnswer(agent.Owner, id); e.Text != "by the bus" || e.Via != "code" {
		t.Errorf("answer = %+v", e)
	}
	p.mustSee("by the bus")
	p.keys("-l", "loop: users")
	p.mustSee("loop: users")
	p.keys("Enter")
	p.mustSee("users: 2")
	w.mustState(agent.Idle, "")

	p.keys("C-c")
	p.mustSee("Press Enter to bring the screen back")
	id = w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: say without a screen"})
	w.mustAnswer(agent.Owner, id)
	p.keys("Enter")
	p.mustSee("without a screen")
	p.mustSee(composer)

	syscall.Kill(w.program1("resume").PID, syscall.SIGKILL)
	p.mustSee("killed: SIGKILL")
	p.keys("Enter")
	p.mustSee(composer)

	p.keys("C-z")
	p.until("keys after Ctrl-Z", func() bool { p.keys("-l", "z"); return strings.Contains(p.text(), "› z") })
	p.keys("C-u")
	p.mustSee(composer)
	p.keys("-l", "loop: say after ctrl-z")
	p.mustSee("loop: say after ctrl-z")
	p.keys("Enter")
	p.mustSee("• after ctrl-z")

	w.mustSend(envelope.Envelope{From: agent.Root, Kind: envelope.KindShutdown, Text: "x", Start: p.start})
	w.mustAck()
	p.mustSee("[agent1 exited: 0]")
	w.mustEnd("SERVE_DIR=" + w.dir)
	w.mustNoSocket()
	if after, err := os.ReadFile(config); err != nil || string(after) != string(before) {
		t.Errorf("config.toml was changed (%v):\n%s", err, after)
	}
}

// What the model may not do by itself is asked in the pane, and the state says
// so.
func TestServeApproval(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	p := w.mustPane("SERVE_SANDBOX=read-only", "SERVE_APPROVAL=on-request")
	p.mustSee(composer)
	file := filepath.Join(w.dir, "made")
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: ask touch " + file})
	w.mustState(agent.Waiting, "touch "+file)
	p.mustSee("Would you like to run")
	syscall.Kill(w.program1("resume").PID, syscall.SIGKILL) // the question is asked again
	p.mustSee("Press Enter to bring")
	w.mustState(agent.Waiting, "touch "+file)
	p.keys("Enter")
	p.mustSee("Would you like to run")
	p.until("the end of the question", func() bool { // which takes no key at first
		if !strings.Contains(p.text(), "Yes, proceed") {
			return true
		}
		p.keys("y")
		return false
	})
	w.mustAnswer(agent.Owner, id)
	w.mustState(agent.Idle, "")
	testworld.Equal(t, testworld.Err(os.Stat(file)), nil)
}

// The sidecar is killed in the middle of a turn: all it had started is gone, and
// the next one goes on in the same thread, and answers once.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	p := w.mustPane()
	first := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "first"})
	w.mustAnswer(agent.Owner, first)
	asked := w.holding("hold on")
	id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "hold on"})
	asked()
	p.mustKill()
	p.mustSee("killed: SIGKILL")
	w.mustEnd("SERVE_DIR=" + w.dir)
	p.mustClose()
	w.mustPane()
	if e := w.mustAnswer(agent.Owner, id); !strings.Contains(e.Text, "cut off your turn") {
		t.Errorf("answer = %+v", e)
	}
	last := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: users"})
	testworld.Equal(t, w.mustAnswer(agent.Owner, last).Text, "users: 4", "what knows of all that was said")
	w.mustOnly(agent.Owner, first, id, last)
}

// A command that Codex has running ends with the killed sidecar, too.
func TestServeKilledInTool(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	p := w.mustPane()
	w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: shell sleep 1000"})
	w.program1("sleep")
	p.mustKill()
	w.mustEnd("SERVE_DIR=" + w.dir)
}

// Whatever is killed, and whenever: no message is lost, and none is answered
// twice.
func TestServeKills(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	p := w.mustPane()
	w.mustState(agent.Idle, "")
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	var ids []string
	for n := range 20 {
		ids = append(ids, w.mustSend(envelope.Envelope{From: agent.Owner, Text: fmt.Sprintf("loop: sleep %dms", r.IntN(60))}))
		if n%4 != 3 {
			continue
		}
		w.until("some of them taken", func() bool {
			waiting, err := w.bus.Count("agent1", bus.Inbox)
			return err == nil && waiting <= r.IntN(4)
		})
		switch word := []string{"resume", "app-server", "", "app-server", ""}[n/4]; word {
		case "":
			p.mustKill()
			w.mustEnd("SERVE_DIR=" + w.dir)
			p.mustClose()
			p = w.mustPane()
		default:
			syscall.Kill(w.program1(word).PID, syscall.SIGKILL)
		}
	}
	for _, id := range ids {
		w.mustAnswer(agent.Owner, id)
	}
	w.mustState(agent.Idle, "")
	w.mustOnly(agent.Owner, ids...)
	for _, id := range ids {
		testworld.Equal(t, w.inputs(id), "consumed", "inputs of %s", id)
	}
	if n, err := w.bus.Count("agent1", bus.Poison); n != 0 || err != nil {
		t.Errorf("%d messages in poison (%v)", n, err)
	}
}

// Codex announces a newer model in a dialog over the thread, where one Enter
// changes the model: none shows, whatever model is configured, though the
// person's own Codex has recorded nothing about it.
func TestServeNoAnnouncement(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"gpt-5.5", "gpt-5.6-luna"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			config := filepath.Join(w.home.Root()+".codex", "config.toml")
			data := testworld.Got(os.ReadFile(config))(t)
			before, rest, found := strings.Cut(string(data), "[notice.model_migrations]")
			_, after, more := strings.Cut(rest, "[tui]")
			if !found || !more {
				t.Fatal("the config has no notices to take away")
			}
			_, before, _ = strings.Cut(before, "\n")
			text := fmt.Sprintf("model = %q\n%s[tui]%s", model, before, after)
			testworld.Must(t, os.WriteFile(config, []byte(text), 0o600))
			p := w.mustPane()
			w.mustState(agent.Idle, "")
			id := w.mustSend(envelope.Envelope{From: agent.Owner, Text: "loop: say the thread"})
			w.mustAnswer(agent.Owner, id)
			p.until("the thread", func() bool {
				screen := p.text()
				if strings.Contains(screen, "Try new model") {
					t.Fatalf("a dialog of Codex's:\n%s", screen)
				}
				return strings.Contains(screen, composer) && strings.Contains(screen, "the thread")
			})
			if after, err := os.ReadFile(config); err != nil || string(after) != text {
				t.Errorf("config.toml was changed (%v):\n%s", err, after)
			}
		})
	}
}

// Near a limit Codex offers another model in a dialog, where one Enter changes the model:
// it does not show.
func TestServeNoNudge(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	p := w.mustPane()
	w.mustState(agent.Idle, "")
	p.mustSee(composer)
	for _, line := range []string{"loop: fail 429", "loop: say still the thread"} {
		p.keys("-l", line)
		p.mustSee(line)
		p.keys("Enter")
		want := strings.TrimPrefix(line, "loop: say ")
		if want == line {
			want = "hit your usage limit"
		}
		p.until(want, func() bool {
			screen := p.text()
			if strings.Contains(screen, "Approaching rate limits") {
				t.Fatalf("a dialog of Codex's:\n%s", screen)
			}
			return strings.Contains(screen, "• "+want) || strings.Contains(screen, "ve "+want)
		})
	}
}
