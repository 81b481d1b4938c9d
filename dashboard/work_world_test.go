package dashboard_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work"
	"netsky/work/diff"
	"netsky/work/merge"
	"netsky/work/record"
)

// fakeWork is the agents' work as a test says it is.
type fakeWork struct {
	mu       sync.Mutex
	err      error
	states   []work.State
	changes  map[agent.ID]work.Change
	landings []record.Landing
	checks   []record.Check
	pending  []record.Comment
	sent     []record.Comment
	words    map[string]string // by the task's id
	reads    int
}

func (f *fakeWork) States(context.Context) ([]work.State, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states, time.Now(), f.err
}

func (f *fakeWork) Change(_ context.Context, id agent.ID, file string) (work.Change, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	c, ok := f.changes[id]
	if !ok {
		return c, time.Time{}, fs.ErrNotExist
	}
	if file != "" {
		var only []diff.File
		for _, d := range c.Files {
			if d.Path == file {
				only = append(only, d)
			}
		}
		c.Files = only
	}
	return c, time.Now(), nil
}

func (f *fakeWork) Words(_ context.Context, list []store.Task) (words []string) {
	for _, k := range list {
		word := k.Word()
		if w, ok := f.words[k.ID]; ok {
			word = w
		}
		words = append(words, word)
	}
	return words
}

func (f *fakeWork) Landings(context.Context, record.Filter) ([]record.Landing, error) {
	return f.landings, nil
}
func (f *fakeWork) Checks(context.Context, record.Filter) ([]record.Check, error) {
	return f.checks, nil
}

func (f *fakeWork) Comments(_ context.Context, id agent.ID) (pending, sent []record.Comment, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := func(list []record.Comment) (mine []record.Comment) {
		for _, k := range list {
			if k.Agent == id {
				mine = append(mine, k)
			}
		}
		return mine
	}
	return of(f.pending), of(f.sent), nil
}

func (f *fakeWork) Comment(_ context.Context, key string, id agent.ID, file string, line int, old bool, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, record.Comment{ID: diff.Keyed(key), Agent: id, File: file, Line: line, Old: old, Text: text, State: record.Pending, Created: store.At(time.Now())})
	return nil
}

func (f *fakeWork) Drop(context.Context, agent.ID, string) error { return nil }

func (f *fakeWork) Send(_ context.Context, id agent.ID) ([]diff.Sent, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.pending {
		k.State, k.Message, k.Ended = record.Sent, "review-1", store.At(time.Now())
		f.sent = append(f.sent, k)
	}
	f.pending = nil
	return nil, nil
}

// costs are what the records of a world say.
type costs struct{ db *store.DB }

func (c costs) Account(ctx context.Context, by cost.By, f cost.Filter) (cost.Account, error) {
	return cost.Read(ctx, c.db, by, f, time.Now())
}

// fileOf is a changed file with one hunk: each line begins with its kind.
func fileOf(path, status, text string) diff.File {
	f := diff.File{Path: path, Status: status, OldMode: "100644", NewMode: "100644"}
	h := diff.Hunk{Old: 36, New: 36, Section: "func (c Constituent) Height(t time.Time) float64 {"}
	o, n := h.Old, h.New
	if status == "added" {
		f.OldMode, o, n, h.Old, h.New, h.Section = "000000", 0, 1, 0, 1, ""
	}
	for line := range strings.Lines(text) {
		l := diff.Line{Kind: line[:1], Text: strings.TrimSuffix(line[1:], "\n")}
		switch l.Kind {
		case "+":
			l.New = n
			n, f.Added = n+1, f.Added+1
		case "-":
			l.Old = o
			o, f.Removed = o+1, f.Removed+1
		default:
			l.Old, l.New = o, n
			o, n = o+1, n+1
		}
		h.Lines = append(h.Lines, l)
	}
	f.Hunks = []diff.Hunk{h}
	return f
}

// showWork fills a world with the work of the showcase's agents.
func (w *world) showWork(tb testing.TB, now time.Time) {
	tb.Helper()
	ago := func(d time.Duration) store.Time { return store.At(now.Add(-d)) }
	const min = time.Minute
	dir := "/home/ada/.netsky/workspaces/"
	w.work.states = []work.State{
		{Agent: "agent1", State: "ahead", Branch: "netsky/agent1", Base: "main", Dir: dir + "agent1", Ahead: 2, Tree: "7ea1", Proof: work.Checked, Next: "netsky land agent1"},
		{Agent: "agent2", State: "conflict", Branch: "netsky/agent2", Base: "main", Dir: dir + "agent2", Ahead: 1, Dirty: 3, Behind: 1, Next: "netsky diff agent2",
			Conflicts: []work.Conflict{{With: "agent1", Files: []string{"tides/south.go", "tides/ports.go"}}}},
		{Agent: "agent3", State: "landed", Branch: "netsky/agent3", Base: "main", Dir: dir + "agent3", Landed: true, Behind: 2},
		{Agent: "agent4", State: "ahead", Branch: "netsky/agent4", Base: "main", Dir: dir + "agent4", Ahead: 1, Proof: work.Failed, Next: "netsky diff agent4"},
		{Agent: "agent5", State: "dirty", Branch: "netsky/agent5", Base: "main", Dir: dir + "agent5", Dirty: 2, Next: "netsky diff agent5"},
		{Agent: "agent6", State: "clean", Branch: "netsky/agent6", Base: "main", Dir: dir + "agent6"},
		{Agent: "agent7", State: "unknown", Branch: "netsky/agent7", Base: "main", Dir: dir + "agent7", Error: "git status: not a git repository"},
	}
	south := fileOf("tides/south.go", "modified", southPatch)
	w.work.changes = map[agent.ID]work.Change{"agent1": {Base: "b", Head: "h", Tree: "t", Left: []string{"assets/recording.mov"}, Files: []diff.File{
		south, fileOf("tides/south_test.go", "added", southTest),
		{Path: "assets/harmonics.bin", Status: "added", OldMode: "000000", NewMode: "100644", Binary: true},
		{Path: "scripts/fetch.sh", Old: "scripts/get.sh", Status: "renamed", OldMode: "100644", NewMode: "100755"},
	}}}
	w.work.landings = []record.Landing{
		{ID: "3kx7q", Agent: "agent3", Target: "refs/heads/main", How: "merge", Before: "8c1f2ab77", After: "1d94e0c21", Evidence: "k1", State: record.Landed, Started: ago(12 * min)},
		{ID: "9mmc2", Agent: "agent1", Target: "refs/heads/main", How: "squash", Before: "03fe771aa", After: "8c1f2ab77", State: record.Undone, Undo: "03fe771aa", Started: ago(50 * min), Undone: ago(44 * min)},
		{ID: "t0a1b", Agent: "agent2", Target: "refs/heads/main", How: "push", Head: "77aa0101c", Evidence: "k2", State: record.Pushed, URL: "https://example.org/pull/7", Started: ago(90 * min)},
	}
	w.work.checks = []record.Check{
		{ID: "c3", Agent: "agent2", Target: "refs/heads/main", Head: "4be01d9aa", Command: "make test", State: record.Running, Started: ago(40 * time.Second)},
		{ID: "c2", Agent: "agent1", Target: "refs/heads/main", Head: "8c1f2ab77", Command: "make test", State: record.Passed, Started: ago(5 * min), Ended: ago(3 * min)},
		{ID: "c1", Agent: "agent4", Target: "refs/heads/main", Head: "5f5f5f5f5", Command: "make test", State: record.Failed, Status: 2, Log: "logs/check-c1.log", Started: ago(20 * min), Ended: ago(18 * min)},
	}
	w.work.pending = []record.Comment{
		{ID: "aa01", Agent: "agent1", File: "tides/south.go", Line: 39, Text: "Does the sign also turn for ports on the equator itself?", State: record.Pending, Created: ago(4 * min)},
		{ID: "aa02", Agent: "agent1", File: "tides/ports.go", Line: 12, Excerpt: "12: var ports = load()", Text: "not in this change", State: record.Pending, Created: ago(3 * min)},
	}
	w.work.sent = []record.Comment{{ID: "aa00", Agent: "agent1", File: "tides/south.go", Line: 38, Old: true, Text: "Why was this returned at all?", State: record.Sent, Message: "web-5d1f0c77a2b94e6180c3d2aa", Created: ago(30 * min), Ended: ago(29 * min)}}
	for _, id := range []agent.ID{"agent4", "agent5", "agent6", "agent7"} {
		w.apply(tb, store.UpsertActor{ID: id, Runtime: "claude", Desired: store.DesiredDown, Updated: ago(time.Hour)})
	}
	w.work.words = map[string]string{"task-offline": "proved"}
	w.showCosts(tb, now)
}

// showCosts records what the showcase's agents used, and their budgets.
func (w *world) showCosts(tb testing.TB, now time.Time) {
	tb.Helper()
	r := cost.Records{DB: w.db}
	prices := cost.Prices{"claude-opus-4-6": {Input: 5e9, Output: 25e9, CacheRead: 5e8, CacheWrite: 625e7}}
	for i, u := range []struct {
		agent agent.ID
		model string
		n     int64
		when  time.Time
	}{
		{"agent0", "claude-opus-4-6", 20, now}, {"agent1", "claude-opus-4-6", 300, now}, {"agent2", "gpt-5.5", 120, now},
		{"agent1", "claude-opus-4-6", 500, now.AddDate(0, 0, -1)}, {"agent3", "claude-opus-4-6", 80, now.AddDate(0, 0, -2)},
	} {
		e := cost.Entry{Turns: []cost.Turn{{Source: "claude", Key: agent.NewStart(), Thread: "t", Model: u.model, Message: "msg-plan-01", Time: u.when,
			Usage: cost.Usage{Input: 31 * u.n, Output: 420 * u.n, CacheRead: 51_000 * u.n, CacheWrite: 1_900 * u.n}}}}
		testworld.Must(tb, r.Take(tb.Context(), cost.Batch{File: cost.File{Device: 1, Inode: int64(i), Agent: u.agent, Thread: "t", Offset: 1}, Entries: []cost.Entry{e}}, prices, cost.Limits{}, now))
	}
	w.apply(tb, store.SetSetting{Key: "cost.terms", Who: "owner", Value: `{"Limits":{"day":{"tokens":40000000},"agent":{"tokens":18000000,"nano":9000000000}}}`})
}

const southPatch = ` 	sum := 0.0
-	if lat < 0 {
-		return nil // not measured yet
-	}
+	// South of the equator the phase runs the other way round.
+	phase := c.Phase(lat)
+	if lat < 0 {
+		phase = 360 - phase
+	}
 	for _, h := range c.Harmonics {
-		sum += h.Amplitude * math.Cos(h.Speed*t.Hours() + 12.5)
+		sum += h.Amplitude * math.Cos(h.Speed*t.Hours() + phase)
 	}
 	return c.At(t, "` + "\u202eevil\x1b[31m" + `", sum)
`

const southTest = `+package tides_test
+
+import "testing"
+
+// Brisbane is measured every hour.
+func TestSouth(t *testing.T) {
+	for _, tt := range []struct{ port string; want float64 }{{"Brisbane", 1.25}, {"Valparaíso", 0.88}} {
+		if got := tides.At(tt.port); got != tt.want {
+			t.Errorf("At(%q) = %v, want %v", tt.port, got, tt.want)
+		}
+	}
+}
`

// conflicts has the daemon's last look at the worktrees have found these.
func (w *world) conflicts(tb testing.TB, list ...merge.Conflict) {
	tb.Helper()
	known := []merge.Known{}
	for _, k := range list {
		known = append(known, merge.Known{Conflict: k, Since: store.At(time.Now().Add(-time.Minute))})
	}
	testworld.Must(tb, w.home.Save(merge.File, map[string]any{"conflicts": known}, false))
}
