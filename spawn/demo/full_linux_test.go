//go:build live

package demo_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// A demo with mail in hand waits while nothing can be written, and goes on.
func TestWaitsForRoom(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hello", "/delegate agent2 hello"} {
		t.Run(text, func(t *testing.T) {
			w := mustWorld(t, "agent1", "agent2")
			pane := newScreen()
			c := w.mustServeOn("", pane)
			testworld.Wait(w, "the demo is ready", func() bool { r, err := w.home.LoadReport("agent1"); return err == nil && r.State == agent.Idle })
			full := unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}
			testworld.Must(t, unix.Prlimit(c.Process.Pid, unix.RLIMIT_FSIZE, &full, nil))
			id := w.tell("agent1", text)
			p := &player{world: w, id: "agent1", pane: pane}
			p.shows("ledger of owed answers: ")
			full.Cur = unix.RLIM_INFINITY
			testworld.Must(t, unix.Prlimit(c.Process.Pid, unix.RLIMIT_FSIZE, &full, nil))
			p.shows("ledger of owed answers: works again")
			if text == "hello" {
				w.answered(id, envelope.KindReply, "received: hello")
				return
			}
			w.play("agent2")
			w.answered(id, envelope.KindReply, "received: hello")
		})
	}
}

// A demo whose mailbox can't be used waits until it can, and says so.
func TestWaitsForRepair(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	pane := newScreen()
	w.mustServeOn("", pane)
	testworld.Wait(w, "the demo is ready", func() bool { r, err := w.home.LoadReport("agent1"); return err == nil && r.State == agent.Idle })
	delivered := w.home.Path(home.Mailbox("agent1"), "delivered")
	testworld.Must(t, os.Rename(delivered, delivered+".away"))
	testworld.Must(t, os.WriteFile(delivered, nil, 0o600))
	id := w.tell("agent1", "hello")
	p := &player{world: w, id: "agent1", pane: pane}
	p.shows("file delivered mail: ")
	testworld.Must(t, os.Remove(delivered))
	testworld.Must(t, os.Rename(delivered+".away", delivered))
	p.shows("file delivered mail: works again")
	w.answered(id, envelope.KindReply, "received: hello")
}
