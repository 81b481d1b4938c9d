//go:build live

package codex_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/codex/appserver"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
	"netsky/store"
)

// mustCodex is the real Codex that the tests use.
func mustCodex(tb testing.TB, variable string) string {
	tb.Helper()
	program := os.Getenv(variable)
	if program == "" {
		tb.Fatalf("%s is not set: run scripts/test, which installs the Codex that these tests use and says where it is", variable)
	}
	return program
}

func mustWorld(tb testing.TB) *world { tb.Helper(); return mustWorldOf(tb, "NETSKY_TEST_CODEX") }

func mustWorldOf(tb testing.TB, variable string) *world {
	tb.Helper()
	program := mustCodex(tb, variable)
	model := testworld.Got(openai.Start())(tb)
	tb.Cleanup(func() { model.Close() })
	w := mustHome(tb)
	w.program, w.model = program, model
	codexHome := w.home.Root() + ".codex"
	testworld.Must(tb, model.WriteHome(codexHome))
	w.env = append(w.env, openai.Env(codexHome)...)
	return w
}

// mustReply is the only message that waits at an address, taken away.
func (w *world) mustReply(id agent.ID) (e envelope.Envelope) {
	w.Helper()
	n, err := w.bus.Drain(w.ctx, id, 0, func(got envelope.Envelope) error { e = got; return nil })
	if err != nil || n != 1 {
		w.Fatalf("%s has %d messages (%v), want 1\nstderr: %s", id, n, err, &w.err)
	}
	return e
}

func (w *world) state() (s codex.State) {
	w.Helper()
	data := testworld.Got(w.home.ReadFile(codex.StateFile("agent1"), 1<<20))(w)
	testworld.Must(w, json.Unmarshal(data, &s))
	return s
}

// inputs are the states of a message on record.
func (w *world) inputs(message string) string {
	w.Helper()
	db, err := store.OpenRead(w.ctx, w.home)
	if errors.Is(err, fs.ErrNotExist) { // nothing is on record yet
		return ""
	}
	testworld.Must(w, err)
	defer db.Close()
	list := testworld.Got(db.Inputs(w.ctx, message))(w)
	var words []string
	for _, i := range list {
		words = append(words, i.State)
	}
	return strings.Join(words, " ")
}

// said counts how often the model has been told something in its last request.
func (w *world) said(text string) (n int) {
	w.Helper()
	list := w.model.Requests()
	if len(list) == 0 {
		w.Fatal("the model was asked nothing")
	}
	for _, s := range list[len(list)-1].Said {
		n += strings.Count(s, text)
	}
	return n
}

// mustServer is an app-server of the world's.
func (w *world) mustServer() *appserver.Server {
	w.Helper()
	s := testworld.Got(w.connect(w.ctx))(w)
	w.Cleanup(func() { s.Close() })
	return s
}

func (w *world) connect(ctx context.Context) (*appserver.Server, error) {
	return appserver.StartServer(ctx, appserver.ServerOptions{
		Program: w.program, Env: w.env, Dir: w.dir, Config: appserver.Trust(w.dir, "danger-full-access"),
	})
}

// mustThread is a new thread with all rights, or with what edit leaves of them.
func (w *world) mustThread(s *appserver.Server, edit func(*appserver.ThreadOptions)) *appserver.Thread {
	w.Helper()
	o := appserver.ThreadOptions{Dir: w.dir, Sandbox: "danger-full-access", Approval: "never"}
	if edit != nil {
		edit(&o)
	}
	return testworld.Got(s.Open(w.ctx, o))(w)
}

// mustAsk brings a text through a turn.
func (w *world) mustAsk(t *appserver.Thread, id, text string) string {
	w.Helper()
	turn := testworld.Got(t.Submit(w.ctx, id, text))(w)
	return testworld.Got(turn.Wait(w.ctx, testworld.Patience))(w).Text
}

// mustEvent waits for an event of a kind and returns all before it, too.
func (w *world) mustEvent(events <-chan appserver.Event, kind appserver.EventKind) (list []appserver.Event) {
	w.Helper()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				w.Fatalf("no event %s; there were %v", kind, list)
			}
			list = append(list, e)
			if e.Kind == kind {
				return list
			}
		case <-w.ctx.Done():
			w.Fatalf("no event %s in time; there were %v", kind, list)
		}
	}
}
