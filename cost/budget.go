package cost

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"netsky/agent"
	"netsky/store"
)

// A Limit bounds what is used; 0 is no limit.
type Limit struct {
	Tokens int64 `json:"tokens,omitempty"`
	Nano   int64 `json:"nano,omitempty"`
}

func (l Limit) none() bool { return l.Tokens == 0 && l.Nano == 0 }

// Limits are the owner's budgets: of a day of all agents, of a day of each agent, of each task.
type Limits struct {
	Day   Limit `json:"day"`
	Agent Limit `json:"agent"`
	Task  Limit `json:"task"`
}

// None reports whether nothing is limited.
func (l Limits) None() bool { return l == Limits{} }

// Money reports whether an amount of money is limited.
func (l Limits) Money() bool { return l.Day.Nano != 0 || l.Agent.Nano != 0 || l.Task.Nano != 0 }

// A Scope is what a budget is about.
type Scope string

// The scopes.
const (
	ScopeDay   Scope = "day"
	ScopeAgent Scope = "agent"
	ScopeTask  Scope = "task"
)

func (l Limits) of(s Scope) Limit {
	return map[Scope]Limit{ScopeDay: l.Day, ScopeAgent: l.Agent, ScopeTask: l.Task}[s]
}

// A Budget names one: what it is about, and for which day; a task's is for all time.
type Budget struct {
	Scope  Scope  `json:"scope"`
	About  string `json:"about,omitempty"` // an agent, a task; "" is all agents
	Period string `json:"period,omitempty"`
}

// String describes the budget: "agent1's budget for 2026-11-24".
func (b Budget) String() string {
	switch b.Scope {
	case ScopeDay:
		return "the budget of all agents for " + b.Period
	case ScopeAgent:
		return b.About + "'s budget for " + b.Period
	}
	return "the budget of task " + b.About
}

// Key returns the budget's name in files and ids, which [ParseBudget] reads.
func (b Budget) Key() string { return string(b.Scope) + ":" + b.Period + ":" + b.About }

// ParseBudget is the inverse of Key.
func ParseBudget(key string) (b Budget, ok bool) {
	scope, rest, _ := strings.Cut(key, ":")
	period, about, ok := strings.Cut(rest, ":")
	b = Budget{Scope(scope), about, period}
	return b, ok && (Limits{Limit{1, 0}, Limit{1, 0}, Limit{1, 0}}).of(b.Scope) != Limit{}
}

// Period returns the name of a day, in local time.
func Period(t time.Time) string { return t.Local().Format(time.DateOnly) }

// Midnight returns when the day begins, in local time, that is so many after the one of t. Where clocks are
// put forward at midnight, a day begins later.
func Midnight(t time.Time, days int) time.Time {
	y, m, d := t.Local().Date()
	noon := time.Date(y, m, d+days, 12, 0, 0, 0, time.Local)
	t = time.Date(y, m, d+days, 0, 0, 0, 0, time.Local)
	if t.Day() != noon.Day() { // there is no such time, so it is one of the day before
		_, t = t.ZoneBounds()
	}
	return t
}

// ParseDay returns when the day begins that a period names.
func ParseDay(period string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, period)
	if err != nil {
		return time.Time{}, err
	}
	y, m, d := day.Date()
	return Midnight(time.Date(y, m, d, 12, 0, 0, 0, time.Local), 0), nil
}

// Ends returns when the budget's day is over; zero for a task's.
func (b Budget) Ends() time.Time {
	day, err := ParseDay(b.Period)
	if err != nil {
		return time.Time{}
	}
	return Midnight(day, 1)
}

// The shares of a budget, in percent, of which the owner is told.
const (
	Warned = 80
	Spent  = 100
)

// A Standing is how far a budget is used.
type Standing struct {
	Budget
	Limit    Limit `json:"limit"` // with what the owner allowed on top
	Tokens   int64 `json:"tokens"`
	Nano     int64 `json:"nano"`     // as far as it is known
	Unpriced int64 `json:"unpriced"` // tokens whose price is not known
	Reached  int   `json:"reached"`  // 0, Warned or Spent
	Told     int   `json:"told"`     // what of that the owner was told
	Refused  bool  `json:"refused"`  // the owner said that it stays so
}

// Percent returns how much of the limit is used, by what is known.
func (s Standing) Percent() int {
	share := func(used, limit int64) int {
		if limit <= 0 {
			return 0
		}
		return int(min(float64(used)/float64(limit)*100, 1e6))
	}
	return max(share(s.Tokens, s.Limit.Tokens), share(s.Nano, s.Limit.Nano))
}

// Over reports whether the budget is used up.
func (s Standing) Over() bool { return !s.Limit.none() && s.Percent() >= Spent }

// Unsure reports whether it can't be checked, as money is limited and some is not known.
func (s Standing) Unsure() bool { return s.Limit.Nano > 0 && s.Unpriced > 0 }

// reach records which budgets have been reached by what an agent used.
func reach(c *sql.Conn, id agent.ID, l Limits, now time.Time) error {
	if l.None() {
		return nil
	}
	all, err := standings(context.Background(), c, l, now, id)
	if err != nil {
		return err
	}
	for _, s := range all {
		reached := 0
		switch p := s.Percent(); {
		case p >= Spent:
			reached = Spent
		case p >= Warned:
			reached = Warned
		}
		if reached == s.Reached {
			continue
		}
		// It is less than before if the owner has raised the limit: what is reached of that is new.
		if err := exec(c, `INSERT INTO budgets (scope, about, period, reached, changed) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (scope, about, period) DO UPDATE SET reached = excluded.reached, told = min(told, excluded.reached),
				refused = iif(excluded.reached < 100, 0, refused), changed = excluded.changed`,
			s.Scope, s.About, s.Period, reached, store.At(now)); err != nil {
			return err
		}
	}
	return nil
}

// Reach records which budgets are reached by what is on record: the limits may have changed.
func (r Records) Reach(ctx context.Context, l Limits, now time.Time) error {
	return r.DB.Do(ctx, "budgets", func(c *sql.Conn) error { return reach(c, "", l, now) })
}

// Standings returns how far the budgets of today and of unfinished tasks are used, of what has
// used any.
func (r Records) Standings(ctx context.Context, l Limits, now time.Time) ([]Standing, error) {
	return standings(ctx, r.DB.Pool(), l, now, "")
}

// today is the condition for turns of the present day: 2 parameters.
const today = "time >= ? AND time < ?"

// standings returns how far the budgets are used that concern an agent, of all agents for "".
func standings(ctx context.Context, q querier, l Limits, now time.Time, id agent.ID) (all []Standing, err error) {
	period := Period(now)
	from, to := store.At(Midnight(now, 0)), store.At(Midnight(now, 1))
	const tokens = "input + output + cache_read + cache_write"
	sums := sum(tokens) + ", " + sum("nano") + ", " + sum("iif(nano IS NULL, "+tokens+", 0)")
	add := func(scope Scope, period, query string, args ...any) {
		if err != nil || l.of(scope).none() {
			return
		}
		var list []Standing
		list, err = store.Collect(ctx, q, func(r *sql.Rows) (s Standing, err error) {
			s.Budget, s.Limit = Budget{Scope: scope, Period: period}, l.of(scope)
			err = r.Scan(&s.About, &s.Tokens, &s.Nano, &s.Unpriced)
			return s, err
		}, query, args...)
		all = append(all, list...)
	}
	add(ScopeDay, period, "SELECT '', "+sums+" FROM turns WHERE "+today+" HAVING count(*) > 0", from, to)
	add(ScopeAgent, period, "SELECT agent, "+sums+" FROM turns WHERE "+today+" AND (?3 = '' OR agent = ?3) GROUP BY agent", from, to, id)
	add(ScopeTask, "", "SELECT task, "+sums+` FROM turns WHERE task <> '' AND task IN (SELECT id FROM tasks WHERE state <> 'cancelled' AND NOT (state = 'done' AND closed_by IN ('owner', 'agent0')))
		AND task NOT IN (SELECT task FROM landings WHERE state = 'landed')
		AND (?1 = '' OR task IN (SELECT task FROM turns WHERE agent = ?1 AND time >= ?2)) GROUP BY task`, id, store.At(now.Add(-lateTasks)))
	for i := range all {
		if err == nil {
			err = said(ctx, q, &all[i])
		}
	}
	return all, err
}

// said completes a standing with what was said about it.
func said(ctx context.Context, q querier, s *Standing) error {
	var tokens, nano int64
	err := q.QueryRowContext(ctx, "SELECT reached, told, refused, extra_tokens, extra_nano FROM budgets WHERE scope = ? AND about = ? AND period = ?", s.Scope, s.About, s.Period).
		Scan(&s.Reached, &s.Told, &s.Refused, &tokens, &nano)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if s.Limit.Tokens > 0 {
		s.Limit.Tokens += tokens
	}
	if s.Limit.Nano > 0 {
		s.Limit.Nano += nano
	}
	return err
}

// Told records that the owner was told of what a budget had reached.
func (r Records) Told(ctx context.Context, b Budget, percent int) error {
	return r.DB.Do(ctx, "budget told", func(c *sql.Conn) error {
		return exec(c, "UPDATE budgets SET told = max(told, ?) WHERE scope = ? AND about = ? AND period = ?", percent, b.Scope, b.About, b.Period)
	})
}

// ErrOpen is returned by Answer for a budget that is not used up: it may have been answered.
var ErrOpen = errors.New("is not used up")

// Answer records what the owner says to a budget that is used up: as much again, until more is
// left than was used, or that it stays so. It returns how it stands then.
func (r Records) Answer(ctx context.Context, b Budget, allow bool, l Limits, now time.Time) (s Standing, err error) {
	err = r.DB.Do(ctx, "budget answered", func(c *sql.Conn) error {
		all, err := standings(context.Background(), c, l, now, "")
		if err != nil {
			return err
		}
		for _, s = range all {
			if s.Budget == b {
				break
			}
		}
		if s.Budget != b || !s.Over() {
			return fmt.Errorf("%v %w", b, ErrOpen)
		}
		if !allow {
			s.Refused = true
			return exec(c, `INSERT INTO budgets (scope, about, period, reached, refused, changed) VALUES (?, ?, ?, 100, 1, ?)
				ON CONFLICT (scope, about, period) DO UPDATE SET refused = 1, changed = excluded.changed`, b.Scope, b.About, b.Period, store.At(now))
		}
		base, had := l.of(b.Scope), s.Limit
		times := max(lacks(s.Tokens, had.Tokens, base.Tokens), lacks(s.Nano, had.Nano, base.Nano))
		s.Limit = Limit{raised(had.Tokens, times, base.Tokens), raised(had.Nano, times, base.Nano)}
		s.Reached, s.Told, s.Refused = 0, 0, false
		return exec(c, `INSERT INTO budgets (scope, about, period, extra_tokens, extra_nano, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT (scope, about, period) DO UPDATE SET reached = 0, told = 0, refused = 0,
				extra_tokens = extra_tokens + excluded.extra_tokens, extra_nano = extra_nano + excluded.extra_nano, changed = excluded.changed`,
			b.Scope, b.About, b.Period, s.Limit.Tokens-had.Tokens, s.Limit.Nano-had.Nano, store.At(now))
	})
	return s, err
}

// lacks returns how often an amount has to be added to a limit until less than that is used.
func lacks(used, limit, amount int64) int64 {
	if amount <= 0 || used < limit {
		return 0
	}
	return (used-limit)/amount + 1
}

// raised returns a limit with an amount added so many times, or as much as a number can hold.
func raised(limit, times, amount int64) int64 {
	if amount > 0 && times > (math.MaxInt64-limit)/amount {
		return math.MaxInt64
	}
	return limit + times*amount
}

// Worker returns the agent that works on a task: its assignee, else the one whose turn was about
// it last; "" if there is none.
func (r Records) Worker(ctx context.Context, task string) (id agent.ID, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, `SELECT coalesce(nullif(assignee, ''), (SELECT agent FROM turns WHERE task = tasks.id ORDER BY time DESC LIMIT 1), '')
		FROM tasks WHERE id = ?`, task).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) || !id.IsAgent() {
		return "", ignore(err, sql.ErrNoRows)
	}
	return id, err
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
