package cost

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/store"
)

// By says what turns are summed up by.
type By string

// What turns can be summed up by.
const (
	ByAgent By = "agent"
	ByTask  By = "task"
	ByModel By = "model"
	ByDay   By = "day" // in local time
	ByAll   By = ""    // one sum
)

// Bys are those that a person can ask for.
var Bys = []By{ByAgent, ByTask, ByModel, ByDay}

// A Filter selects turns; empty fields match all.
type Filter struct {
	Agent   agent.ID
	Task    string
	Model   string
	Message string
	Since   time.Time
	Until   time.Time
}

// A Sum is what turns used together.
type Sum struct {
	Name     string     `json:"name"` // of the agent, task, model or day; "" if it is not known
	Requests int64      `json:"requests"`
	Usage    Usage      `json:"tokens"`
	Nano     int64      `json:"nano"`     // what the priced turns cost
	Stated   int64      `json:"stated"`   // what of that the programs have stated
	Unpriced Usage      `json:"unpriced"` // the tokens whose price is not known
	Models   []string   `json:"unpriced_models"`
	Last     store.Time `json:"last"`
}

const (
	maxModels = 20   // that a sum names
	maxSums   = 1000 // that are apart: programs write the names of models, and agents could write any
)

// Sum sums up the turns that the filter selects: the largest first, days in their order. What is beyond a
// thousand sums is one, named "7 others".
func (r Records) Sum(ctx context.Context, by By, f Filter) ([]Sum, error) {
	column, ok := map[By]string{ByAgent: "agent", ByTask: "task", ByModel: "model", ByAll: "''", ByDay: "strftime('%Y-%m-%d', time / 1000, 'unixepoch', 'localtime')"}[by]
	if !ok {
		return nil, fmt.Errorf("cost: can't sum up by %q", by)
	}
	where, args := f.where()
	parts := func(cond string) (list string) {
		for _, field := range []string{"input", "output", "cache_read", "cache_write"} {
			list += sum("iif("+cond+", "+field+", 0)") + ", "
		}
		return list
	}
	all, err := store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (s Sum, err error) {
		u, p := &s.Usage, &s.Unpriced
		err = rows.Scan(&s.Name, &s.Requests, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &s.Nano, &s.Stated,
			&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite, &s.Last)
		s.Models = []string{}
		return s, err
	}, "SELECT "+column+" AS name, sum(key NOT LIKE '"+unlisted+"%'), "+parts("true")+sum("nano")+", "+sum("iif(priced = 'stated', nano, 0)")+", "+
		parts("nano IS NULL")+"max(time) FROM turns"+where+" GROUP BY name", args...)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Sum) int {
		if by == ByDay {
			return strings.Compare(a.Name, b.Name)
		}
		if a.Nano != b.Nano {
			return int(min(max(b.Nano-a.Nano, -1), 1))
		}
		return int(min(max(b.Usage.Total()-a.Usage.Total(), -1), 1))
	})
	at := make(map[string]int, len(all))
	for i, s := range all {
		at[s.Name] = min(i, maxSums)
	}
	if n := len(all) - maxSums; n > 0 {
		others := Sum{Name: fmt.Sprintf("%d others", n), Models: []string{}}
		for _, s := range all[maxSums:] {
			others.add(s)
		}
		all = append(all[:maxSums], others)
	}
	return all, r.unpriced(ctx, column, where, args, all, at)
}

// add adds another sum's figures.
func (s *Sum) add(o Sum) {
	s.Requests += o.Requests
	s.Usage, s.Unpriced = s.Usage.Plus(o.Usage), s.Unpriced.Plus(o.Unpriced)
	s.Nano, s.Stated = capped(s.Nano+o.Nano), capped(s.Stated+o.Stated)
	s.Last = max(s.Last, o.Last)
}

// most is what a sum comes to at most: what a program writes is believed up to what a request can have, so
// the sum of many may be more than a number can hold, and must not fail for that.
const most = 1e18

func capped(n int64) int64 { return min(n, most) }

// sum is the SQL for the sum of an expression, up to most.
func sum(expr string) string { return "cast(min(total(" + expr + "), 1e18) AS INTEGER)" }

// unpriced adds the models whose price is not known; at says which sum each name is part of.
func (r Records) unpriced(ctx context.Context, column, where string, args []any, all []Sum, at map[string]int) error {
	if where == "" {
		where = " WHERE true"
	}
	_, err := store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (none struct{}, err error) {
		var name, model string
		err = rows.Scan(&name, &model)
		i, ok := at[name]
		if ok && len(all[i].Models) < maxModels && !slices.Contains(all[i].Models, model) {
			all[i].Models = append(all[i].Models, model)
		}
		return none, err
	}, "SELECT DISTINCT "+column+" AS name, model FROM turns"+where+" AND nano IS NULL ORDER BY name, model", args...)
	return err
}

func (f Filter) where() (clause string, args []any) {
	var conds []string
	add := func(cond string, v any, ok bool) {
		if ok {
			conds, args = append(conds, cond), append(args, v)
		}
	}
	add("agent = ?", f.Agent, f.Agent != "")
	add("task = ?", f.Task, f.Task != "")
	add("model = ?", f.Model, f.Model != "")
	add("message = ?", f.Message, f.Message != "")
	add("time >= ?", store.At(f.Since), !f.Since.IsZero())
	add("time < ?", store.At(f.Until), !f.Until.IsZero())
	if len(conds) > 0 {
		clause = " WHERE " + strings.Join(conds, " AND ")
	}
	return clause, args
}
