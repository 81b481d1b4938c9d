package doctor

import (
	"context"
	"errors"
	"io/fs"

	"netsky/agent"
	"netsky/cost"
	"netsky/cost/breaker"
	"netsky/store"
)

// checkBudgets reports budgets that are used up, or that can't be checked.
func checkBudgets(ctx context.Context, e *exam) []Finding {
	prices, limits, unknown := e.Config.Terms()
	var list []Finding
	if unknown {
		list = append(list, Finding{Level: Warn, Text: "[price] and [budget] of netsky.toml can't be relied on; those known last hold", Do: "correct netsky.toml"})
	}
	states, err := breaker.List(e.Home)
	if err != nil {
		list = append(list, failed(Warn, "", err, ""))
	}
	for _, s := range states {
		if s.Fault.Reason == agent.Budget {
			list = append(list, Finding{Level: Warn, Text: s.Fault.String() + "; nothing more is offered, and mail waits", Do: "`netsky needs` has the code that allows as much again"})
		}
	}
	if limits.Money() && len(prices) == 0 {
		list = append(list, Finding{
			Level: Warn, Text: "a budget is in money, and no model has a price in netsky.toml: it counts only what programs state when they end",
			Do: "add [price.\"MODEL\"] to netsky.toml, or limit tokens",
		})
	}
	db, err := store.OpenRead(ctx, e.Home)
	if err == nil {
		defer db.Close()
		var doubts []string
		doubts, err = cost.Doubts(ctx, db)
		for _, text := range doubts {
			list = append(list, Finding{Level: Warn, Text: text})
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrOlder) {
		list = append(list, failed(Warn, "", err, ""))
	}
	switch {
	case len(list) > 0:
	case limits.None():
		list = append(list, ok("no budget is set"))
	default:
		list = append(list, ok("no budget is used up"))
	}
	return list
}
