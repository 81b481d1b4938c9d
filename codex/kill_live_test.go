//go:build live

package codex_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
	"netsky/internal/execx"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// holding makes the model wait with its answer to a text until the test is over.
// asked returns when it has been asked.
func (w *world) holding(text string) (asked func()) {
	hold := make(chan struct{})
	w.Cleanup(func() { close(hold) })
	match := func(q openai.Request) bool { return strings.Contains(q.Last(), text) }
	w.model.Handle(func(q openai.Request) *openai.Reply {
		if !match(q) {
			return nil
		}
		return &openai.Reply{Hold: hold}
	})
	return func() {
		w.Helper()
		if _, ok := w.model.Wait(w.ctx.Done(), match); !ok {
			w.Fatal("the model was not asked")
		}
	}
}

// killServers kills the Codex processes of this world.
func (w *world) killServers() {
	w.Helper()
	list, err := proc.Descendants(0, "NETSKY_HOME="+w.home.Root())
	if err != nil || len(list) == 0 {
		w.Fatalf("servers: %v, %v", list, err)
	}
	for _, p := range list {
		syscall.Kill(p.PID, syscall.SIGKILL)
	}
}

// netsky is killed in the middle of a turn: the next process goes on with it,
// and the message has been submitted once.
func TestKillOnce(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	asked := w.holding("the very task")
	id := w.mustSend(envelope.Envelope{Text: "the very task"})
	self := testworld.Got(os.Executable())(t)
	cmd := exec.Command(self)
	cmd.Env = append(w.env, "ONCE_HOME="+w.home.Root(), "ONCE_DIR="+w.dir, "NETSKY_TEST_CODEX="+w.program)
	testworld.Must(t, cmd.Start())
	asked()
	thread := w.state().Thread
	testworld.Must(t, cmd.Process.Kill())
	cmd.Wait()
	w.mustOnce(nil)
	reply := w.mustReply(agent.Root)
	if reply.InReplyTo != id || !strings.Contains(reply.Text, "was interrupted") {
		t.Errorf("reply = %+v", reply)
	}
	testworld.Equal(t, w.state().Thread, thread, "thread")
	testworld.Equal(t, w.said("the very task"), 1, "the model was told the task")
	testworld.Equal(t, w.inputs(id), "consumed", "inputs")
}

// The app-server is killed in the middle of a turn: it is started again and the
// message gone on with, in the same call.
func TestKillServer(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	asked := w.holding("the very task")
	id := w.mustSend(envelope.Envelope{Text: "the very task"})
	done := make(chan error, 1)
	go func() { done <- w.once(nil) }()
	asked()
	w.killServers()
	if err := <-done; err != nil {
		t.Fatalf("Once = %v\nstderr: %s", err, &w.err)
	}
	if reply := w.mustReply(agent.Root); reply.InReplyTo != id {
		t.Errorf("reply = %+v", reply)
	}
	testworld.Equal(t, w.said("the very task"), 1, "the model was told the task")
	testworld.Contains(t, w.err.String(), "signal: killed", "stderr")
}

// An input that was shown as accepted is in the thread after any death.
func TestKillAfterAcceptance(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.holding("remember this")
	s := w.mustServer()
	thread := w.mustThread(s, nil)
	testworld.Got(thread.Submit(w.ctx, "i1", "remember this"))(t)
	servers, err := proc.Descendants(0, "HOME="+execx.Value(w.env, "HOME"))
	if err != nil || len(servers) == 0 {
		t.Fatal(servers, err)
	}
	testworld.Must(t, servers[0].Signal(syscall.SIGKILL))
	select {
	case <-s.Done():
	case <-time.After(testworld.Patience):
		t.Fatal("the end of the server was not noticed")
	}
	again := w.mustThread(w.mustServer(), func(o *appserver.ThreadOptions) { o.ID = thread.ID() })
	w.mustAsk(again, "i2", "and?")
	testworld.Equal(t, w.said("remember this"), 1, "the model was told")
}
