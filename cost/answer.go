package cost

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"netsky/bus"
	"netsky/internal/advice"
	"netsky/store"
)

// Answer carries out what the owner says to a budget that is used up, by its key: as much again,
// or that it stays so. It returns what it has done, in words.
func Answer(ctx context.Context, b *bus.Bus, db *store.DB, key string, allow bool) (text string, err error) {
	budget, ok := ParseBudget(key)
	if !ok {
		return "", fmt.Errorf("%q is no budget", key)
	}
	terms, ok := Saved(ctx, db)
	if !ok {
		return "", advice.With(fmt.Errorf("%v: its limit is not on record", budget), "`netsky up` starts the daemon, which keeps account of budgets")
	}
	s, err := Records{DB: db}.Answer(ctx, budget, allow, terms.Limits, time.Now())
	if err != nil {
		return "", err
	}
	err = hold(ctx, b, db, terms)
	if text = fmt.Sprintf("allowed: %v is now %s", budget, limits(s)); !allow {
		text = fmt.Sprintf("left as it is: %v is used up", budget)
	}
	return text, err
}

// Hold bars those who are at the end of a budget as of now, and nobody else. It is for the moment in which
// a task gets another worker: what the task may use is the same.
func Hold(ctx context.Context, b *bus.Bus, db *store.DB) error {
	terms, ok := Saved(ctx, db)
	if !ok || terms.Limits.None() {
		return nil
	}
	return hold(ctx, b, db, terms)
}

func hold(ctx context.Context, b *bus.Bus, db *store.DB, terms Terms) error {
	m := NewMeter(MeterOptions{Home: db.Home(), Bus: b, Log: slog.New(slog.DiscardHandler)})
	m.terms, m.known = terms, true
	r := Records{DB: db}
	all, err := r.Standings(ctx, terms.Limits, time.Now())
	if err != nil {
		return err
	}
	return m.bar(ctx, r, all)
}

// Doubts returns what about budgets can't be checked, one sentence each.
func Doubts(ctx context.Context, db *store.DB) (list []string, err error) {
	terms, ok := Saved(ctx, db)
	if !ok {
		return nil, nil
	}
	all, err := Records{DB: db}.Standings(ctx, terms.Limits, time.Now())
	for _, s := range all {
		if s.Unsure() {
			list = append(list, Doubt(s))
		}
	}
	return list, err
}
