package cost_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/cost"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work/task"
)

func mustOpen(tb testing.TB) cost.Records {
	tb.Helper()
	db := testworld.Got(store.Open(context.Background(), testworld.FastHome(tb)))(tb)
	tb.Cleanup(func() { _ = db.Close() })
	return cost.Records{DB: db}
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)

// turn is a request of claude's: its tokens are n, 2n, 3n and 4n.
func turn(key, model string, n int64) cost.Turn {
	return cost.Turn{Source: "claude", Key: key, Thread: "t", Model: model, Usage: cost.Usage{Input: n, Output: 2 * n, CacheRead: 3 * n, CacheWrite: 4 * n}, Time: noon}
}

func stated(n int64, nano int64) cost.Statement {
	s := turn("", "m", n)
	return cost.Statement{Source: s.Source, Thread: s.Thread, Model: "m[1m]", Usage: s.Usage, Nano: nano, Time: noon}
}

// based is a statement about what is counted elsewhere.
func based(n int64) cost.Statement {
	s := stated(n, 0)
	s.Base = true
	return s
}

type entries []cost.Entry

func (e entries) turn(t ...cost.Turn) entries { return append(e, cost.Entry{Turns: t}) }

func (e entries) stated(s ...cost.Statement) entries { return append(e, cost.Entry{Stated: s}) }

func mustTake(tb testing.TB, r cost.Records, id agent.ID, p cost.Prices, l cost.Limits, e entries) {
	tb.Helper()
	b := cost.Batch{File: cost.File{Device: 1, Inode: 2, Agent: id, Thread: "t", Offset: 10}, Entries: e}
	testworld.Must(tb, r.Take(tb.Context(), b, p, l, noon))
}

// sums are what the turns add up to, a line each.
func sums(tb testing.TB, r cost.Records, by cost.By, f cost.Filter) string {
	tb.Helper()
	list := testworld.Got(r.Sum(tb.Context(), by, f))(tb)
	var lines []string
	for _, s := range list {
		u := s.Usage
		lines = append(lines, fmt.Sprintf("%s: %d requests %d+%d+%d+%d = %d (%d stated), %d unpriced%v", s.Name, s.Requests, u.Input, u.Output, u.CacheRead, u.CacheWrite,
			s.Nano, s.Stated, s.Unpriced.Total(), s.Models))
	}
	return strings.Join(lines, "\n")
}

var price = cost.Prices{"m": {Input: 1e9, Output: 10e9, CacheRead: 1e8, CacheWrite: 2e9}} // a token of each: 13,100

func TestTake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		prices cost.Prices
		takes  []entries
		want   string
	}{
		{"twice", nil, []entries{entries{}.turn(turn("a", "m", 1)), entries{}.turn(turn("a", "m", 1))}, ": 1 requests 1+2+3+4 = 0 (0 stated), 10 unpriced[m]"},
		{"the last of several lines", nil, []entries{entries{}.turn(turn("a", "m", 1)).turn(turn("a", "m", 3))}, ": 1 requests 3+6+9+12 = 0 (0 stated), 30 unpriced[m]"},
		{"a price", price, []entries{entries{}.turn(turn("a", "m", 100))}, ": 1 requests 100+200+300+400 = 2930000 (0 stated), 0 unpriced[]"},
		{"a release", price, []entries{entries{}.turn(turn("a", "m-20261120", 100))}, ": 1 requests 100+200+300+400 = 2930000 (0 stated), 0 unpriced[]"},
		{"another model", price, []entries{entries{}.turn(turn("a", "m-2", 1), turn("b", "m", 1))}, ": 2 requests 2+4+6+8 = 29300 (0 stated), 10 unpriced[m-2]"},
		{"stated", price, []entries{entries{}.turn(turn("a", "m", 1)).turn(turn("b", "m", 2)).stated(stated(3, 999))}, ": 2 requests 3+6+9+12 = 999 (999 stated), 0 unpriced[]"},
		{"stated, read twice", nil, []entries{entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999)), entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999))},
			": 1 requests 1+2+3+4 = 999 (999 stated), 0 unpriced[]"},
		{"stated again", nil, []entries{entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999)).turn(turn("b", "m", 2)).stated(stated(3, 1500))},
			": 2 requests 3+6+9+12 = 1500 (1500 stated), 0 unpriced[]"},
		{"two statements, read twice", nil, []entries{
			entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999)).turn(turn("b", "m", 2)).stated(stated(3, 1500)),
			entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999)).turn(turn("b", "m", 2)).stated(stated(3, 1500)),
		}, ": 2 requests 3+6+9+12 = 1500 (1500 stated), 0 unpriced[]"},
		{"requests that are not listed", nil, []entries{entries{}.turn(turn("a", "m", 1)).stated(stated(5, 999))}, ": 1 requests 5+10+15+20 = 999 (999 stated), 0 unpriced[]"},
		{"after a kill", price, []entries{entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999)).turn(turn("killed", "m", 7)).turn(turn("c", "m", 2)).stated(stated(3, 1500))},
			": 3 requests 10+20+30+40 = 206600 (1500 stated), 0 unpriced[]"},
		{"a copy of another conversation", nil, []entries{entries{}.stated(based(100)).turn(turn("a", "m", 1)).stated(stated(101, 5100))}, ": 1 requests 1+2+3+4 = 5100 (5100 stated), 0 unpriced[]"},
		{"other names", nil, []entries{entries{}.turn(turn("a", "alias", 1)).stated(stated(1, 999))}, ": 1 requests 1+2+3+4 = 0 (0 stated), 10 unpriced[alias]"},
		{"after the statement", nil, []entries{entries{}.turn(turn("a", "m", 1)).stated(stated(1, 999)).turn(turn("b", "m", 1))},
			": 2 requests 2+4+6+8 = 999 (999 stated), 10 unpriced[m]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustOpen(t)
			for _, e := range tt.takes {
				mustTake(t, r, "agent1", tt.prices, cost.Limits{}, e)
			}
			testworld.Equal(t, sums(t, r, cost.ByAll, cost.Filter{}), tt.want)
		})
	}
}

// An unsure statement gives tokens, and no price.
func TestUnsure(t *testing.T) {
	t.Parallel()
	r, s := mustOpen(t), stated(5, 999)
	s.Unsure = true
	mustTake(t, r, "agent1", nil, cost.Limits{}, entries{}.turn(turn("a", "m", 1)).stated(s))
	if got, want := sums(t, r, cost.ByAll, cost.Filter{}), ": 1 requests 5+10+15+20 = 0 (0 stated), 50 unpriced[m m[1m]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	testworld.Must(t, r.Reprice(t.Context(), price))
	if got, want := sums(t, r, cost.ByAll, cost.Filter{}), ": 1 requests 5+10+15+20 = 146500 (0 stated), 0 unpriced[]"; got != want {
		t.Errorf("repriced: %s, want %s", got, want)
	}
}

// What is older than the agent's first start is not the agent's.
func TestBefore(t *testing.T) {
	t.Parallel()
	r := mustOpen(t)
	old, s := turn("old", "m", 100), stated(100, 5000)
	old.Time, s.Time = noon.Add(-time.Hour), noon.Add(-time.Hour)
	b := cost.Batch{File: cost.File{Agent: "agent1", Thread: "t"}, First: store.At(noon), Entries: entries{}.turn(old).stated(s).turn(turn("new", "m", 1)).stated(stated(101, 5100))}
	testworld.Must(t, r.Take(t.Context(), b, nil, cost.Limits{}, noon))
	if got, want := sums(t, r, cost.ByAll, cost.Filter{}), ": 1 requests 1+2+3+4 = 100 (100 stated), 0 unpriced[]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Turns are attributed to the task whose brief they were about, also if that is recorded later,
// and those of a subagent to what its prompt was.
func TestTask(t *testing.T) {
	t.Parallel()
	r := mustOpen(t)
	sub, own := turn("sub", "m", 1), turn("own", "m", 1)
	sub.Prompt, own.Prompt, own.Message = "p", "p", task.BriefID("task-1", 2)
	mustTake(t, r, "agent1", nil, cost.Limits{}, entries{}.turn(sub))
	mustTake(t, r, "agent1", nil, cost.Limits{}, entries{}.turn(own))
	testworld.Must(t, r.DB.Apply(t.Context(), store.UpsertTask{ID: "task-1", Title: "x", AskedBy: agent.Owner, State: store.TaskInProgress, Assignee: "agent1"}))
	mustTake(t, r, "agent1", nil, cost.Limits{}, nil)
	if got, want := sums(t, r, cost.ByTask, cost.Filter{}), "task-1: 2 requests 2+4+6+8 = 0 (0 stated), 20 unpriced[m]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// An agent can give a message such an id as well. That costs nobody's task anything.
	forged := turn("forged", "m", 1)
	forged.Prompt, forged.Message = "q", task.BriefID("task-1", 3)
	testworld.Must(t, r.DB.Apply(t.Context(), store.UpsertMessage{ID: forged.Message, From: "agent2", To: "agent3", Kind: "brief", Text: "x", Time: store.At(noon)}))
	mustTake(t, r, "agent3", nil, cost.Limits{}, entries{}.turn(forged))
	if got, want := sums(t, r, cost.ByTask, cost.Filter{Task: "task-1"}), "task-1: 2 requests 2+4+6+8 = 0 (0 stated), 20 unpriced[m]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	testworld.Equal(t, testworld.Got(r.Worker(t.Context(), "task-1"))(t), "agent1", "Worker")
}

func TestSum(t *testing.T) {
	t.Parallel()
	r := mustOpen(t)
	later := turn("c", "n", 1)
	later.Time = noon.AddDate(0, 0, 1)
	mustTake(t, r, "agent1", price, cost.Limits{}, entries{}.turn(turn("a", "m", 1)))
	mustTake(t, r, "agent2", price, cost.Limits{}, entries{}.turn(turn("b", "m", 2)).turn(later))
	for _, tt := range []struct {
		by   cost.By
		f    cost.Filter
		want string
	}{
		{cost.ByAgent, cost.Filter{}, "agent2: 2 requests 3+6+9+12 = 58600 (0 stated), 10 unpriced[n]\nagent1: 1 requests 1+2+3+4 = 29300 (0 stated), 0 unpriced[]"},
		{cost.ByModel, cost.Filter{Agent: "agent2"}, "m: 1 requests 2+4+6+8 = 58600 (0 stated), 0 unpriced[]\nn: 1 requests 1+2+3+4 = 0 (0 stated), 10 unpriced[n]"},
		{cost.ByDay, cost.Filter{}, "2026-11-20: 2 requests 3+6+9+12 = 87900 (0 stated), 0 unpriced[]\n2026-11-21: 1 requests 1+2+3+4 = 0 (0 stated), 10 unpriced[n]"},
		{cost.ByAll, cost.Filter{Since: noon.Add(time.Hour)}, ": 1 requests 1+2+3+4 = 0 (0 stated), 10 unpriced[n]"},
		{cost.ByAll, cost.Filter{Until: noon}, ""},
	} {
		testworld.Equal(t, sums(t, r, tt.by, tt.f), tt.want, "by %q, %+v", tt.by, tt.f)
	}
	testworld.Fails(t, testworld.Err(r.Sum(t.Context(), "agent; --", cost.Filter{})), "", "summed up by what is no column")
}

func standings(tb testing.TB, r cost.Records, l cost.Limits, at time.Time) string {
	tb.Helper()
	all := testworld.Got(r.Standings(tb.Context(), l, at))(tb)
	var lines []string
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%v: %d %%, reached %d, told %d, over %v, unsure %v, refused %v", s.Budget, s.Percent(), s.Reached, s.Told, s.Over(), s.Unsure(), s.Refused))
	}
	return strings.Join(lines, "\n")
}

// What a turn reaches of a budget is on record with it; the owner's answer allows as much again;
// a new day begins anew.
func TestBudget(t *testing.T) {
	t.Parallel()
	r, ctx := mustOpen(t), t.Context()
	l := cost.Limits{Agent: cost.Limit{Tokens: 100}}
	check := func(what, want string, l cost.Limits, at time.Time) {
		t.Helper()
		testworld.Equal(t, standings(t, r, l, at), want, "%s", what)
	}
	const of = "agent1's budget for 2026-11-20: "
	mustTake(t, r, "agent1", nil, l, entries{}.turn(turn("a", "m", 7)))
	check("70", of+"70 %, reached 0, told 0, over false, unsure false, refused false", l, noon)
	mustTake(t, r, "agent1", nil, l, entries{}.turn(turn("b", "m", 1)))
	check("80", of+"80 %, reached 80, told 0, over false, unsure false, refused false", l, noon)
	b := cost.Budget{Scope: cost.ScopeAgent, About: "agent1", Period: "2026-11-20"}
	if got, ok := cost.ParseBudget(b.Key()); got != b || !ok {
		t.Errorf("ParseBudget(%q) = %v, %v", b.Key(), got, ok)
	}
	testworld.Must(t, r.Told(ctx, b, cost.Warned))
	testworld.ErrorIs(t, testworld.Err(r.Answer(ctx, b, true, l, noon)), cost.ErrOpen, "Answer at 80 %%")
	mustTake(t, r, "agent1", nil, l, entries{}.turn(turn("c", "m", 30)))
	check("380", of+"380 %, reached 100, told 80, over true, unsure false, refused false", l, noon)
	testworld.Got(r.Answer(ctx, b, false, l, noon))(t)
	check("refused", of+"380 %, reached 100, told 80, over true, unsure false, refused true", l, noon)
	if s, err := r.Answer(ctx, b, true, l, noon); err != nil || s.Limit.Tokens != 400 {
		t.Errorf("Answer = %+v, %v, want a limit of 400", s, err)
	}
	check("allowed", of+"95 %, reached 0, told 0, over false, unsure false, refused false", l, noon)
	testworld.Must(t, r.Reach(ctx, l, noon))
	check("looked at", of+"95 %, reached 80, told 0, over false, unsure false, refused false", l, noon)
	testworld.Must(t, errors.Join(r.Told(ctx, b, cost.Warned), r.Reach(ctx, cost.Limits{Agent: cost.Limit{Tokens: 1000}}, noon), r.Reach(ctx, l, noon)))
	check("raised, and back", of+"95 %, reached 80, told 0, over false, unsure false, refused false", l, noon)
	check("tomorrow", "", l, noon.AddDate(0, 0, 1))
	mustTake(t, r, "agent1", price, l, entries{}.turn(turn("d", "m", 1)))
	check("money", "the budget of all agents for 2026-11-20: 2 %, reached 0, told 0, over false, unsure true, refused false", cost.Limits{Day: cost.Limit{Nano: 1e6}}, noon)
	// However small the limit is, it is allowed often enough at once.
	tiny := cost.Limits{Agent: cost.Limit{Tokens: 1}}
	mustTake(t, r, "agent2", nil, tiny, entries{}.turn(turn("e", "m", 1<<37)))
	b.About = "agent2"
	if s, err := r.Answer(ctx, b, true, tiny, noon); err != nil || s.Limit.Tokens != 10<<37+1 {
		t.Errorf("Answer = %+v, %v", s, err)
	}
	if end := b.Ends(); !end.Equal(time.Date(2026, 11, 21, 0, 0, 0, 0, time.Local)) {
		t.Errorf("Ends = %v", end)
	}
}

// However much a program says that it has used, sums and budgets go on, and an answer allows more.
func TestHuge(t *testing.T) {
	t.Parallel()
	r, ctx := mustOpen(t), t.Context()
	var all []cost.Statement
	for i := range 12 {
		s := stated(1, 999_999_999e9)
		s.Model = fmt.Sprint("m", i)
		all = append(all, s)
	}
	l := cost.Limits{Agent: cost.Limit{Tokens: 1, Nano: 1e9}}
	mustTake(t, r, "agent1", nil, l, entries{}.stated(all...))
	if got, want := sums(t, r, cost.ByAll, cost.Filter{}), ": 0 requests 12+24+36+48 = 1000000000000000000 (1000000000000000000 stated), 0 unpriced[]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b := cost.Budget{Scope: cost.ScopeAgent, About: "agent1", Period: "2026-11-20"}
	testworld.Contains(t, standings(t, r, l, noon), "reached 100, told 0, over true")
	l.Agent.Nano = math.MaxInt64 / 2
	if s, err := r.Answer(ctx, b, true, l, noon); err != nil || s.Limit.Nano != math.MaxInt64 || s.Over() {
		t.Errorf("Answer = %+v, %v", s, err)
	}
	if list, err := r.Standings(ctx, l, noon); err != nil || len(list) != 1 || list[0].Limit.Nano != math.MaxInt64 {
		t.Errorf("%+v, %v", list, err)
	}
}

// The records know every conversation that a session ever had.
func TestThreads(t *testing.T) {
	t.Parallel()
	r, ctx := mustOpen(t), t.Context()
	at := func(h int) store.Time { return store.At(noon.Add(time.Duration(h) * time.Hour)) }
	err := r.DB.Apply(ctx,
		store.StartSession{Start: "s1", Actor: "agent1", Runtime: "claude", Started: at(0)},
		store.SessionState{Start: "s1", Thread: "one", Time: at(1)}, store.SessionState{Start: "s1", Thread: "two", Time: at(2)},
		store.EndSession{Start: "s1", Time: at(3)},
		store.StartSession{Start: "s2", Actor: "agent2", Runtime: "codex", Thread: "three", Started: at(4)})
	testworld.Must(t, err)
	list := testworld.Got(r.Threads(ctx, noon))(t)
	got := map[string]string{}
	for _, th := range list {
		got[th.ID] = string(th.Agent) + " " + th.Runtime
	}
	if want := "map[one:agent1 claude three:agent2 codex two:agent1 claude]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if list, err = r.Threads(ctx, noon.Add(100*time.Hour)); err != nil || len(list) != 1 || list[0].ID != "three" || list[0].First != at(4) {
		t.Errorf("later: %+v, %v, want the one of the session that has not ended", list, err)
	}
}

// Old records go, but not those of an unfinished task.
func TestPruned(t *testing.T) {
	t.Parallel()
	r := mustOpen(t)
	mustTake(t, r, "agent1", nil, cost.Limits{Agent: cost.Limit{Tokens: 1}}, entries{}.turn(turn("a", "m", 1)).stated(stated(1, 5)))
	for p := (&store.Pass{Before: time.Now().AddDate(1, 0, 0), Key: "k"}); !p.Done(); {
		testworld.Must(t, r.DB.Prune(t.Context(), p))
	}
	testworld.Equal(t, sums(t, r, cost.ByAll, cost.Filter{}), "", "left")
	if f, err := r.File(t.Context(), 1, 2); err != nil || f.Offset != 0 {
		t.Errorf("left: %+v, %v", f, err)
	}
}

// However many names of models an agent writes, there is a bounded number of sums, and nothing is left out.
func TestSumBounded(t *testing.T) {
	t.Parallel()
	r := mustOpen(t)
	var e entries
	for n := range 1010 {
		e = e.turn(turn(fmt.Sprint(n), fmt.Sprintf("m%04d", n), 1))
	}
	e = e.turn(turn("large", "large", 100))
	mustTake(t, r, "agent1", price, cost.Limits{}, e)
	list, err := r.Sum(t.Context(), cost.ByModel, cost.Filter{})
	if err != nil || len(list) != 1001 || list[0].Name != "large" {
		t.Fatalf("%d, %v", len(list), err)
	}
	last := list[1000]
	if last.Name != "11 others" || last.Requests != 11 || last.Usage.Total() != 110 || last.Unpriced.Total() != 110 || len(last.Models) != 11 {
		t.Errorf("%+v", last)
	}
}
