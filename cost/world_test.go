package cost_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/claude"
	"netsky/codex"
	"netsky/cost"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

type claudeFiles struct{}

func (claudeFiles) Files(env []string, thread string) []string {
	return claude.UsageFiles(env, thread)
}
func (claudeFiles) Open(thread, state string) cost.Reader {
	return claude.OpenUsage(thread, state)
}

type codexFiles struct{ codex.UsageFinder }

func (f *codexFiles) Files(env []string, thread string) []string {
	return f.UsageFinder.Files(env, thread, time.Now())
}
func (f *codexFiles) Open(thread, state string) cost.Reader {
	return codex.OpenUsage(thread, state)
}

func sources() map[string]cost.Source {
	return map[string]cost.Source{"claude": claudeFiles{}, "codex": &codexFiles{}}
}

// A world is a home with records, and agent1, whose conversation is in files of Claude Code's.
type world struct {
	testing.TB
	home  home.Dir
	bus   *bus.Bus
	db    *store.DB
	dir   string // of the conversations
	mu    sync.Mutex
	terms cost.Terms
	step  func(what string)
}

const thread = "11111111-1111-4111-8111-111111111111"

func mustWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{TB: tb, home: testworld.FastHome(tb), terms: cost.Terms{Prices: cost.Prices{}}}
	w.bus = testworld.Bus(tb, w.home, agent.Owner, agent.Root, "agent1", "agent2")
	config := filepath.Join(w.home.Root(), "claude")
	w.dir = filepath.Join(config, "projects", "-w")
	testworld.Must(tb, os.MkdirAll(w.dir, 0o700))
	w.db = testworld.Got(store.Open(context.Background(), w.home))(tb)
	tb.Cleanup(func() { _ = w.db.Close() })
	w.mustStart("agent1", "claude", thread, "CLAUDE_CONFIG_DIR="+config)
	return w
}

// mustStart puts a start of an agent on record, with its conversation.
func (w *world) mustStart(id agent.ID, runtime, conversation string, env ...string) {
	w.Helper()
	start := agent.NewStart()
	testworld.Must(w, w.home.SaveLaunch(agent.Launch{Agent: id, Start: start, Runtime: runtime, Dir: "/", Env: env}))
	testworld.Must(w, w.db.Apply(context.Background(), store.StartSession{Start: start, Actor: id, Runtime: runtime, Thread: conversation, Started: store.At(time.Now().Add(-time.Minute))}))
}

func (w *world) meter() *cost.Meter {
	return cost.NewMeter(cost.MeterOptions{
		Home: w.home, Bus: w.bus, Records: func() *store.DB { return w.db }, Sources: sources(), Log: slog.New(slog.DiscardHandler), Step: w.step,
		Environ: []string{"CODEX_HOME=" + w.file("codex")},
		Terms:   func() cost.Terms { w.mu.Lock(); defer w.mu.Unlock(); return w.terms },
	})
}

// mustRead reads all that there is.
func (w *world) mustRead() {
	w.Helper()
	testworld.Must(w, w.meter().Read(context.Background()))
}

// answer is a line of a conversation: a request that used n tokens of input and 2n of output.
func answer(id string, n int) string {
	return fmt.Sprintf(`{"type":"assistant","requestId":"r","timestamp":%q,"message":{"id":%q,"model":"m","usage":{"input_tokens":%d,"output_tokens":%d}}}`+"\n",
		time.Now().UTC().Format(time.RFC3339Nano), id, n, 2*n)
}

func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

func (w *world) mustWrite(name, text string) {
	w.Helper()
	file := w.file(name)
	testworld.Must(w, os.MkdirAll(filepath.Dir(file), 0o700))
	testworld.Must(w, os.WriteFile(file, []byte(text), 0o600))
}

func (w *world) mustAppend(name, text string) {
	w.Helper()
	f, err := os.OpenFile(w.file(name), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	testworld.Must(w, err)
}

// used are the requests and tokens on record.
func (w *world) used() string {
	w.Helper()
	list := testworld.Got(cost.Records{DB: w.db}.Sum(context.Background(), cost.ByAgent, cost.Filter{}))(w)
	var words []string
	for _, s := range list {
		words = append(words, fmt.Sprintf("%s %d: %d+%d", s.Name, s.Requests, s.Usage.Input, s.Usage.Output))
	}
	return strings.Join(words, ", ")
}

// mail are the texts that wait for the owner. What is sent again under its id has no effect.
func (w *world) mail() (texts []string) {
	w.Helper()
	files := testworld.Got(os.ReadDir(w.home.Path(home.Mailbox(agent.Owner), "inbox")))(w)
	seen := make(map[string]bool)
	for _, f := range files {
		data, err := os.ReadFile(w.home.Path(home.Mailbox(agent.Owner), "inbox", f.Name()))
		var e struct{ ID, Text string }
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		testworld.Must(w, err)
		if !seen[e.ID] {
			texts = append(texts, e.Text)
		}
		seen[e.ID] = true
	}
	return texts
}
