//go:build live

package demo_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// mustServe starts agent1 as a process. It dies at the step, or at the test's
// end.
func (w *world) mustServe(step string) *exec.Cmd { w.Helper(); return w.mustServeOn(step, nil) }

func (w *world) mustServeOn(step string, pane io.Writer) *exec.Cmd {
	w.Helper()
	self := testworld.Got(os.Executable())(w)
	c := exec.CommandContext(w.ctx, self)
	c.Env = append(os.Environ(), serveEnv+"="+w.home.Root(), killEnv+"="+step)
	c.Stdout, c.Stderr = pane, os.Stderr
	testworld.Must(w, c.Start())
	w.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c
}

func mustDieByKill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.Wait()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the demo ended by %v, want SIGKILL at its step", c.ProcessState)
	}
}

// TestKilled kills agent1 between every two durable steps and starts it again.
// The owner gets one answer, and agent2 one brief, as if nothing had happened.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ step, text, words string }{
		{"recorded", "/delegate agent2 hi", "agent2 answers: agent2 (demo) received: hi"},
		{"sent", "/delegate agent2 hi", "agent2 answers: agent2 (demo) received: hi"},
		{"reported", "/delegate agent2 hi", "agent2 answers: agent2 (demo) received: hi"},
		{"forgotten", "/delegate agent2 hi", "agent2 answers: agent2 (demo) received: hi"},
		{"recorded", "/delegate agent7 hi", "not sent to agent7: "},
		{"sent", "/delegate agent7 hi", "not sent to agent7: "},
		{"answered", "/delegate agent7 hi", "not sent to agent7: "},
		{"reported", "/pingpong agent2", "ping-pong with agent2 ended after 16 messages"},
		{"forgotten", "/pingpong agent2", "ping-pong with agent2 ended after 16 messages"},
	} {
		t.Run(test.step+" "+test.text, func(t *testing.T) {
			w := mustWorld(t, "agent1", "agent2")
			two := w.play("agent2")
			id := w.tell("agent1", test.text)
			mustDieByKill(t, w.mustServe(test.step))
			w.mustServe("")
			e := w.next()
			if e.InReplyTo != id || !strings.Contains(e.Text, test.words) {
				t.Fatalf("the owner got %q to %s, want %q to %s", e.Text, e.InReplyTo, test.words, id)
			}
			// What was sent twice would lie before these.
			w.answered(w.tell("agent1", "/delegate agent2 last"), envelope.KindReply, "received: last")
			w.answered(w.tell("agent2", "last"), envelope.KindReply, "received: last")
			if n := strings.Count(two.pane.String(), "\n    hi\n"); n > 1 {
				t.Errorf("agent2 got the brief %d times:\n%s", n, two.pane)
			}
		})
	}
}

// TestWorkKilled kills agent1 between every two steps of an edit and a commit. The line is there once, in one
// commit, and each message is answered once, with what was done.
func TestWorkKilled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ step, at string }{{"noted", "/edit"}, {"edited", "/edit"}, {"noted", "/commit"}, {"committed", "/commit"}, {"forgotten", "/commit"}} {
		t.Run(test.step+" "+test.at, func(t *testing.T) {
			w := mustWorld(t, "agent1")
			own, _ := w.worktree("agent1")
			said := map[string]string{"/edit": "added a line to a.txt", "/commit": "committed "}
			for _, text := range []string{"/edit a.txt two", "/commit"} {
				name, _, _ := strings.Cut(text, " ")
				if name != test.at {
					c := w.mustServe("")
					w.answered(w.tell("agent1", text), envelope.KindReply, said[name])
					testworld.Must(t, c.Process.Kill())
					c.Wait()
					continue
				}
				id := w.tell("agent1", text)
				mustDieByKill(t, w.mustServe(test.step))
				c := w.mustServe("")
				w.answered(id, envelope.KindReply, said[name])
				testworld.Must(t, c.Process.Kill())
				c.Wait()
			}
			w.mustServe("")
			w.answered(w.tell("agent1", "/commit"), envelope.KindReply, "nothing to commit") // and nothing before it
			testworld.Equal(t, own.Read("a.txt"), "one\ntwo\n", "the file")
			testworld.Equal(t, own.Git("log", "--format=%s", "main.."), "Edit a.txt", "the commits")
		})
	}
}
