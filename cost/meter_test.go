package cost_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cost"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/task"
)

const main = thread + ".jsonl"

// However a file comes and goes, each request counts once.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(w *world)
		want string
	}{
		{"none", func(w *world) {}, ""},
		{"one", func(w *world) { w.mustWrite(main, answer("a", 1)+answer("b", 2)) }, "agent1 2: 3+6"},
		{"it grows", func(w *world) { w.mustWrite(main, answer("a", 1)); w.mustRead(); w.mustAppend(main, answer("b", 2)) }, "agent1 2: 3+6"},
		{"half a line", func(w *world) {
			line := answer("b", 2)
			w.mustWrite(main, answer("a", 1)+line[:20])
			w.mustRead()
			w.mustRead()
			w.mustAppend(main, line[20:])
		}, "agent1 2: 3+6"},
		{"replaced", func(w *world) {
			w.mustWrite(main, answer("a", 1)+answer("b", 2))
			w.mustRead()
			w.mustWrite("new", answer("a", 1)+answer("b", 2)+answer("c", 3))
			testworld.Must(w, os.Rename(w.file("new"), w.file(main)))
		}, "agent1 3: 6+12"},
		{"other words under the same number", func(w *world) {
			w.mustWrite(main, answer("a", 1)+answer("b", 2))
			w.mustRead()
			w.mustWrite(main, answer("d", 4)+answer("e", 5)+answer("f", 6))
		}, "agent1 5: 18+36"},
		{"cut short", func(w *world) {
			w.mustWrite(main, answer("a", 1)+answer("b", 2))
			w.mustRead()
			w.mustWrite(main, answer("a", 1))
			w.mustRead()
			w.mustAppend(main, answer("c", 3))
		}, "agent1 3: 6+12"},
		{"cut short behind its beginning", func(w *world) {
			text := ""
			for i := range 60 {
				text += answer(fmt.Sprint(i), 1)
			}
			w.mustWrite(main, text)
			w.mustRead()
			w.mustWrite(main, text[:len(text)*9/10]+"\n"+answer("new", 1))
			w.mustRead()
		}, "agent1 61: 61+122"},
		{"the rest of a line that is too long", func(w *world) {
			w.mustWrite(main, answer("a", 1)+strings.Repeat("x", 6<<20))
			w.mustRead()
			w.mustAppend(main, answer("no line of its own", 5)+answer("b", 2))
		}, "agent1 2: 3+6"},
		{"moved away", func(w *world) {
			w.mustWrite(main, answer("a", 1))
			w.mustRead()
			testworld.Must(w, os.Rename(w.file(main), w.file("old.jsonl")))
			w.mustRead()
			w.mustWrite(main, answer("b", 2))
		}, "agent1 2: 3+6"},
		{"a resumed conversation repeats lines", func(w *world) {
			w.mustWrite(main, answer("a", 1)+answer("b", 2))
			w.mustRead()
			const other = "22222222-2222-4222-8222-222222222222"
			w.mustWrite(other+".jsonl", answer("a", 1)+answer("b", 2)+answer("c", 3))
			la := testworld.Got(w.home.LoadLaunch("agent1"))(w)
			testworld.Must(w, w.db.Apply(context.Background(), store.SessionState{Start: la.Start, Thread: other}))
		}, "agent1 3: 6+12"},
		{"subagents", func(w *world) {
			w.mustWrite(main, answer("a", 1))
			w.mustWrite(thread+"/subagents/agent-x.jsonl", answer("b", 2))
		}, "agent1 2: 3+6"},
		{"somebody else's conversation", func(w *world) { w.mustWrite("33333333-3333-4333-8333-333333333333.jsonl", answer("a", 1)) }, ""},
		{"a line that is too long", func(w *world) {
			w.mustWrite(main, answer("a", 1)+strings.Repeat("x", 20<<20))
			w.mustRead()
			w.mustAppend(main, strings.Repeat("y", 20<<20))
			w.mustRead()
			w.mustAppend(main, "\n"+answer("b", 2))
		}, "agent1 2: 3+6"},
		{"many", func(w *world) {
			for i := range 1000 {
				w.mustAppend(main, answer(fmt.Sprint(i), 1))
			}
		}, "agent1 1000: 1000+2000"},
		{"no file", func(w *world) { testworld.Must(w, os.Mkdir(w.file(main), 0o700)) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t)
			tt.do(w)
			w.mustRead()
			testworld.Equal(t, w.used(), tt.want)
		})
	}
}

// The thread of `netsky codex N` counts, though that agent was never started; a thread of nobody's does not.
func TestCodexOnce(t *testing.T) {
	t.Parallel()
	w, now := mustWorld(t), time.Now()
	id := func(last string) string {
		ms := fmt.Sprintf("%012x", now.UnixMilli())
		return ms[:8] + "-" + ms[8:] + "-7bd3-abe1-e404fa7b2e" + last
	}
	dir := "codex/sessions/" + now.UTC().Format("2006/01/02")
	for n, last := range []string{"01", "02"} {
		record := fmt.Sprintf(`{"timestamp":%q,"type":"token_usage_record","payload":{"turn_id":"T%d","response_id":"r","usage":{"input_tokens":100,"output_tokens":7,"total_tokens":107}}}`+"\n",
			now.Add(time.Second).UTC().Format(time.RFC3339Nano), n)
		w.mustWrite(dir+"/rollout-x-"+id(last)+".jsonl", record)
	}
	testworld.Must(w, w.db.Apply(t.Context(), store.UpsertInput{Actor: "agent2", Thread: id("01"), Message: "m-1", State: store.InputPending, Time: store.At(now)}))
	w.mustRead()
	w.mustRead()
	if got, want := w.used(), "agent2 1: 100+7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a conversation still wrote before it ended is counted by the next daemon, however long none ran and
// though no agent has that conversation any more.
func TestNoDaemonForDays(t *testing.T) {
	t.Parallel()
	w, ctx := mustWorld(t), context.Background()
	w.mustWrite(main, answer("a", 1))
	w.mustRead()
	la := testworld.Got(w.home.LoadLaunch("agent1"))(w)
	testworld.Must(w, w.db.Apply(ctx, store.EndSession{Start: la.Start, Time: store.At(time.Now())}))
	w.mustAppend(main, answer("b", 2))
	testworld.Must(w, w.db.Do(ctx, "days go by", func(c *sql.Conn) error {
		for _, q := range []string{
			"UPDATE turn_files SET changed = changed - ?", "UPDATE threads SET last = last - ?", "UPDATE sessions SET ended = ended - ?",
		} {
			if _, err := c.ExecContext(ctx, q, (5 * 24 * time.Hour).Milliseconds()); err != nil {
				return err
			}
		}
		return nil
	}))
	w.mustRead()
	if got, want := w.used(), "agent1 2: 3+6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Run reads soon after an agent has reported, and not before.
func TestRun(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.mustRead()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.meter().Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	w.mustWrite(main, answer("a", 1))
	testworld.Must(w, w.home.SaveReport("agent1", agent.Report{Start: "s", State: agent.Idle}))
	testworld.Wait(t, "the turn on record", func() bool { return w.used() == "agent1 1: 1+2" })
}

// A budget that is used up bars its agent until the owner allows more, or the limit is raised, and
// a mistake in netsky.toml lifts nothing.
func TestMeterBudget(t *testing.T) {
	t.Parallel()
	w, ctx := mustWorld(t), context.Background()
	bar := func() breaker.State {
		s := testworld.Got(breaker.Of(w.home, breaker.Budget("agent1")).Load())(w)
		return s
	}
	w.terms.Limits.Agent.Tokens = 30
	w.mustWrite(main, answer("a", 8))
	w.mustRead()
	if mail := w.mail(); len(mail) != 1 || !strings.HasPrefix(mail[0], "80 % of agent1's budget for ") || bar().Tripped() {
		t.Fatalf("at 80 %%: told %q, barred %v", mail, bar().Tripped())
	}
	w.mustRead()
	if files, err := os.ReadDir(w.home.Path(home.Mailbox(agent.Owner), "inbox")); err != nil || len(files) != 1 {
		t.Errorf("told again: %d files, %v", len(files), err)
	}
	w.mustAppend(main, answer("b", 8))
	w.mustRead()
	if mail := w.mail(); len(mail) != 2 || !strings.Contains(mail[1]+mail[0], "160 % of agent1's budget for ") || !bar().Tripped() {
		t.Fatalf("at 160 %%: told %q, barred %v", mail, bar().Tripped())
	}
	if p, err := breaker.Of(w.home, breaker.Budget("agent1")).Allow(ctx, "agent1"); err != nil || p.OK {
		t.Errorf("Allow = %+v, %v", p, err)
	}
	w.terms = cost.Terms{Prices: cost.Prices{}, Unknown: true}
	w.mustRead()
	if !bar().Tripped() {
		t.Error("a mistake in netsky.toml has lifted it")
	}
	key := bar().About
	if text, err := cost.Answer(ctx, w.bus, w.db, key, false); err != nil || !strings.HasPrefix(text, "left as it is") || !bar().Refused {
		t.Errorf("denied: %q, %v, %+v", text, err, bar())
	}
	if text, err := cost.Answer(ctx, w.bus, w.db, key, true); err != nil || !strings.HasSuffix(text, "is now 60 tokens") || bar().Tripped() {
		t.Errorf("allowed: %q, %v, %+v", text, err, bar())
	}
	testworld.Fails(t, testworld.Err(cost.Answer(ctx, w.bus, w.db, key, true)), "", "allowed twice")
	w.mustAppend(main, answer("c", 10)) // 78 of 60
	w.mustRead()
	if !bar().Tripped() {
		t.Error("not barred again")
	}
	w.terms = cost.Terms{Prices: cost.Prices{}, Limits: cost.Limits{Agent: cost.Limit{Tokens: 1000}}}
	w.mustRead()
	if bar().Tripped() {
		t.Error("barred after the limit was raised")
	}
}

// All agents share a day's budget, and the worker of a task is barred by the task's.
func TestScopes(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.terms.Limits = cost.Limits{Day: cost.Limit{Tokens: 10}}
	w.mustWrite(main, answer("a", 8))
	w.mustRead()
	if s, err := breaker.Of(w.home, breaker.AllBudget).Load(); err != nil || !s.Tripped() || s.RetryMS == 0 {
		t.Errorf("all: %+v, %v", s, err)
	}
	w.terms.Limits = cost.Limits{Task: cost.Limit{Tokens: 10}}
	w.mustRead()
	if s, err := breaker.Of(w.home, breaker.AllBudget).Load(); err != nil || s.Tripped() {
		t.Errorf("without a limit: %+v, %v", s, err)
	}
	testworld.Must(w, w.db.Apply(t.Context(), store.UpsertTask{ID: "task-1", Title: "x", AskedBy: agent.Owner, State: store.TaskInProgress, Assignee: "agent1"}))
	brief := envelope.Render(envelope.Envelope{ID: task.BriefID("task-1", 1), From: agent.Root, To: "agent1", Text: "do it", Time: time.Now()}, time.Now())
	w.mustAppend(main, fmt.Sprintf(`{"type":"user","promptId":"p","timestamp":%q,"message":{"role":"user","content":%q}}`+"\n", time.Now().Format(time.RFC3339), brief)+answer("b", 8))
	w.mustRead()
	s, err := breaker.Of(w.home, breaker.Budget("agent1")).Load()
	if err != nil || !s.Tripped() || s.RetryMS != 0 || s.About != "task::task-1" {
		t.Errorf("the task's: %+v, %v", s, err)
	}
	// Another worker is held before it gets the task, not once it has begun.
	for _, id := range []agent.ID{"agent2", "agent1"} {
		testworld.Must(w, w.db.Apply(t.Context(), store.UpsertTask{ID: "task-1", Title: "x", AskedBy: agent.Owner, State: store.TaskInProgress, Assignee: id}))
		testworld.Must(w, cost.Hold(t.Context(), w.bus, w.db))
		for _, other := range []agent.ID{"agent1", "agent2"} {
			if s, err := breaker.Of(w.home, breaker.Budget(other)).Load(); err != nil || s.Tripped() != (other == id) {
				t.Errorf("%s has it, %s: %+v, %v", id, other, s, err)
			}
		}
	}
	testworld.Must(w, w.db.Apply(t.Context(), store.UpsertTask{ID: "task-1", Title: "x", AskedBy: agent.Owner, State: store.TaskDone, Assignee: "agent1", ClosedBy: "agent1"}))
	w.mustRead()
	if s, err := breaker.Of(w.home, breaker.Budget("agent1")).Load(); err != nil || !s.Tripped() {
		t.Errorf("after the worker has called it done: %+v, %v", s, err)
	}
	testworld.Must(w, w.db.Apply(t.Context(), store.UpsertTask{ID: "task-1", Title: "x", AskedBy: agent.Owner, State: store.TaskDone, Assignee: "agent1", ClosedBy: agent.Owner}))
	w.mustRead()
	if s, err := breaker.Of(w.home, breaker.Budget("agent1")).Load(); err != nil || s.Tripped() {
		t.Errorf("after the task: %+v, %v", s, err)
	}
}

// New limits are on record though the clock was set back.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.terms.Limits.Agent.Tokens = 30
	w.mustRead()
	testworld.Must(w, w.db.Do(t.Context(), "the clock", func(c *sql.Conn) error {
		_, err := c.ExecContext(t.Context(), "UPDATE settings SET updated = updated + 3600000")
		return err
	}))
	w.terms.Limits.Agent.Tokens = 40
	w.mustRead()
	if got, ok := cost.Saved(t.Context(), w.db); !ok || got.Limits.Agent.Tokens != 40 {
		t.Errorf("saved: %+v, %v", got, ok)
	}
}

// A budget in money that can't be checked is said to be so, once.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.terms.Limits = cost.Limits{Day: cost.Limit{Nano: 1e6}}
	w.mustWrite(main, answer("a", 8))
	m := w.meter()
	for range 2 {
		testworld.Must(w, m.Read(context.Background()))
	}
	if mail := w.mail(); len(mail) != 1 || !strings.Contains(mail[0], "can't be checked: the price of 24 tokens is not known") {
		t.Errorf("told %q", mail)
	}
	list, err := cost.Doubts(context.Background(), w.db)
	if err != nil || len(list) != 1 {
		t.Errorf("Doubts = %q, %v", list, err)
	}
	w.terms.Prices = cost.Prices{"m": {Input: 1e12, Output: 1e12}}
	w.mustRead() // what is on record gets the price
	if s, err := breaker.Of(w.home, breaker.AllBudget).Load(); err != nil || !s.Tripped() {
		t.Errorf("priced: %+v, %v, want a bar", s, err)
	}
}

// A model's name is what a file says; it makes no line of its own.
func TestNamesInOneLine(t *testing.T) {
	t.Parallel()
	s := cost.Sum{Name: "m\ntotal  1  0", Models: []string{"m\nn", strings.Repeat("x", 200)}, Unpriced: cost.Usage{Input: 1}}
	for _, text := range []string{cost.Called(cost.ByModel, s), cost.Unpriced(s)} {
		if strings.Contains(text, "\n") || strings.Contains(text, strings.Repeat("x", 150)) {
			t.Errorf("%q", text)
		}
	}
}
