package dashboard

import (
	"context"
	"net/url"
	"slices"
	"time"

	"netsky/agent"
	"netsky/cost"
)

// Costs sums up what the agents' turns used.
type Costs interface {
	Account(context.Context, cost.By, cost.Filter) (cost.Account, error)
}

// costs are the page and the API of what turns used.
type costs struct {
	Costs // nil: it is not known
	now   func() time.Time
}

// A costBody is what turns used, as the page shows it.
type costBody struct {
	Off     bool
	Today   cost.Account
	Week    cost.Account
	Account cost.Account
	Budgets []cost.Standing // the most used first
	Others  []cost.Standing
	Tabs    []tab
	Since   []tab
	Only    []chip
}

// A tab is one choice of several.
type tab struct {
	Name, Link string
	Here       bool
}

// onCost is how many budgets the page shows at once.
const onCost = 6

// week is how many days the second total covers, today with them.
const week = 7

// sinces are the times to choose from.
var sinces = []struct{ word, name string }{{"", "all time"}, {"today", "today"}, {"7d", "7 days"}, {"30d", "30 days"}}

func (q *query) costs(now time.Time) (by cost.By, f cost.Filter) {
	by = cost.By(q.word("by", string(cost.ByAgent), string(cost.ByTask), string(cost.ByModel), string(cost.ByDay)))
	if by == "" {
		by = cost.ByAgent
	}
	f = cost.Filter{Agent: q.agent("agent"), Task: q.text("task"), Model: q.text("model")}
	since := q.text("since")
	if since == "today" {
		f.Since = cost.Midnight(now, 0)
		return by, f
	}
	var err error
	if f.Since, err = cost.Since(since, now); err != nil {
		q.wrong("since", "not how long ago, such as 12h or 7d, nor a day, such as 2026-11-20")
	}
	return by, f
}

func (c *costs) page(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Cost", "cost"
	now := c.now()
	by, f := q.costs(now)
	b := costBody{Off: c.Costs == nil}
	if err := q.done(); err != nil || b.Off {
		sh.Body = b
		return "cost", err
	}
	var err error
	if b.Today, err = c.Account(ctx, cost.ByAll, cost.Filter{Since: cost.Midnight(now, 0)}); err != nil {
		return "", err
	}
	if b.Week, err = c.Account(ctx, cost.ByAll, cost.Filter{Since: cost.Midnight(now, 1-week)}); err != nil {
		return "", err
	}
	if b.Account, err = c.Account(ctx, by, f); err != nil {
		return "", err
	}
	if by == cost.ByDay { // what is new comes first on a page
		slices.Reverse(b.Account.Sums)
	}
	b.Budgets = b.Account.Budgets
	slices.SortStableFunc(b.Budgets, func(x, y cost.Standing) int { return y.Percent() - x.Percent() })
	if len(b.Budgets) > onCost {
		b.Budgets, b.Others = b.Budgets[:onCost], b.Budgets[onCost:]
	}
	for _, w := range cost.Bys {
		b.Tabs = append(b.Tabs, tab{string(w), q.with("/cost", "by", string(w)), w == by})
	}
	known := false
	for _, s := range sinces {
		here := q.values.Get("since") == s.word
		known = known || here
		b.Since = append(b.Since, tab{s.name, q.with("/cost", "since", s.word), here})
	}
	if since := q.values.Get("since"); !known {
		b.Since = append(b.Since, tab{since, q.with("/cost", "since", since), true})
	}
	for _, name := range []string{"agent", "task", "model"} {
		if v := q.values.Get(name); v != "" {
			b.Only = append(b.Only, chip{name, v, q.with("/cost", name, "")})
		}
	}
	sh.Body = b
	return "cost", nil
}

// used returns what turns used that the filter selects; nil if that is nothing, or not known.
func (c *costs) used(ctx context.Context, sh *shell, f cost.Filter) *cost.Amounts {
	if c.Costs == nil {
		return nil
	}
	a, err := c.Account(ctx, cost.ByAll, f)
	sh.failed(err)
	return a.Total
}

// usedToday is used for an agent, since midnight.
func (c *costs) usedToday(ctx context.Context, sh *shell, id agent.ID) *cost.Amounts {
	return c.used(ctx, sh, cost.Filter{Agent: id, Since: cost.Midnight(c.now(), 0)})
}

// costOf is the page about a sum of a table.
func costOf(by cost.By, name string) string {
	switch {
	case name == "":
		return ""
	case by == cost.ByAgent:
		return href("agents", name)
	case by == cost.ByTask:
		return href("tasks", name)
	case by == cost.ByModel:
		return "/cost?" + url.Values{"by": {string(cost.ByAgent)}, "model": {name}}.Encode()
	}
	return ""
}

// api is GET /api/cost.
func (c *costs) api(ctx context.Context, q *query) (any, error) {
	by, f := q.costs(c.now())
	if err := q.done(); err != nil {
		return nil, err
	}
	if c.Costs == nil {
		return nil, errNoCost
	}
	return c.Account(ctx, by, f)
}
