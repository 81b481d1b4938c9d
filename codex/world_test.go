package codex_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/home"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
	"netsky/store"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv("FAKE_CODEX") != "":
		os.Exit(fakeCodex(os.Getenv("FAKE_CODEX")))
	case os.Getenv("SERVE_ROLE") != "":
		os.Exit(serveProcess(os.Getenv("SERVE_ROLE")))
	case os.Getenv("ONCE_HOME") != "":
		os.Exit(onceProcess())
	}
	os.Exit(m.Run())
}

// A world is a home with mailboxes, a model, and a Codex that knows no other.
type world struct {
	testing.TB
	ctx     context.Context
	home    home.Dir
	bus     *bus.Bus
	model   *openai.Server
	program string
	env     []string
	dir     string // where agents work
	journal *store.Journal
	out     bytes.Buffer // of the last once
	err     bytes.Buffer // likewise
	pane    screen       // of a sidecar
	left    string       // what still runs, while it is waited for
}

// mustHome is a world without a Codex.
func mustHome(tb testing.TB) *world {
	tb.Helper()
	h := testworld.Home(tb)
	dir := h.Root()
	ctx, cancel := context.WithTimeout(context.Background(), 2*testworld.Patience)
	tb.Cleanup(cancel)
	work := filepath.Join(dir, "workspaces", "w")
	testworld.Must(tb, os.MkdirAll(work, 0o700))
	b := testworld.Bus(tb, h, agent.Owner, agent.Root, "agent1", "agent2")
	w := &world{TB: tb, ctx: ctx, home: h, bus: b, dir: work, journal: store.NewJournal(h)}
	tb.Cleanup(func() { w.journal.Close() })
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color"}
	return w
}

// options are those of a drain by agent1.
func (w *world) options() codex.OnceOptions {
	return codex.OnceOptions{
		Agent: "agent1", Drain: true, Sandbox: "danger-full-access", Approval: "never",
		Dir: w.dir, Limit: time.Minute, Home: w.home, Bus: w.bus, Records: w.journal,
		Program: w.program, Env: w.env, Out: &w.out, Err: &w.err,
	}
}

// once runs Once with what edit makes of the options.
func (w *world) once(edit func(*codex.OnceOptions)) error {
	w.out.Reset()
	w.err.Reset()
	o := w.options()
	if edit != nil {
		edit(&o)
	}
	return codex.Once(w.ctx, o)
}

func (w *world) mustOnce(edit func(*codex.OnceOptions)) {
	w.Helper()
	if err := w.once(edit); err != nil {
		w.Fatalf("Once = %v\nstderr: %s", err, &w.err)
	}
}

// prompting makes the options those of a prompt.
func prompting(text string) func(*codex.OnceOptions) {
	return func(o *codex.OnceOptions) { o.Drain, o.Prompt = false, &text }
}

// mustSend leaves a message in an inbox.
func (w *world) mustSend(e envelope.Envelope) string {
	w.Helper()
	if e.From == "" {
		e.From = agent.Root
	}
	if e.To == "" {
		e.To = "agent1"
	}
	return testworld.Got(w.bus.Send(w.ctx, e))(w).ID
}

// inbox is what waits at an address.
func (w *world) inbox(id agent.ID) []envelope.Envelope {
	w.Helper()
	return w.envelopes(id, bus.Inbox)
}

func (w *world) envelopes(id agent.ID, p bus.Place) (list []envelope.Envelope) {
	w.Helper()
	entries := testworld.Got(w.bus.List(id, p, 0))(w)
	for _, e := range entries {
		list = append(list, e.Envelope)
	}
	return list
}

// A screen collects what is written to it from any goroutine.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
