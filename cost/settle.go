package cost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/store"
)

// termsKey names the setting that holds the terms that were known last.
const termsKey = "cost.terms"

// renew reads the owner's terms if netsky.toml has changed. It reports whether they have.
func (m *Meter) renew(ctx context.Context, db *store.DB) (changed bool, err error) {
	now := m.o.Home.Mark(home.ConfigFile)
	if m.known && m.config.Same(now) {
		return false, nil
	}
	terms, r := m.o.Terms(), Records{DB: db}
	if terms.Unknown {
		if saved, ok := Saved(ctx, db); ok {
			terms = saved
		} else if m.known {
			terms = m.terms
		}
	} else if saved, ok := Saved(ctx, db); !ok || !reflect.DeepEqual(saved, terms) {
		data, err := json.Marshal(terms)
		if err == nil {
			last, _ := db.Setting(ctx, termsKey) // which stays if its time is later, as after the clock was set back
			err = db.Apply(ctx, store.SetSetting{Key: termsKey, Value: string(data), Who: string(agent.Owner), Updated: max(store.At(time.Now()), last.Updated)})
		}
		if err != nil {
			return false, err
		}
	}
	changed = !m.known || !reflect.DeepEqual(m.terms, terms)
	if changed {
		if err := errors.Join(r.Reprice(ctx, terms.Prices), r.Reach(ctx, terms.Limits, time.Now())); err != nil {
			return false, err
		}
	}
	m.terms, m.known, m.config = terms, true, now
	return changed, nil
}

// Saved returns the terms that were known last; ok is false if none are on record.
func Saved(ctx context.Context, db *store.DB) (t Terms, ok bool) {
	s, err := db.Setting(ctx, termsKey)
	if err != nil || json.Unmarshal([]byte(s.Value), &t) != nil {
		return Terms{}, false
	}
	if t.Prices == nil {
		t.Prices = Prices{}
	}
	return t, true
}

// settle does what the budgets call for: tells the owner, and bars agents or lifts that.
func (m *Meter) settle(ctx context.Context, r Records) error {
	if m.terms.Unknown {
		return nil // nor is anything lifted
	}
	all, err := r.Standings(ctx, m.terms.Limits, time.Now())
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, m.tell(ctx, r, s))
	}
	return errors.Join(append(errs, m.bar(ctx, r, all))...)
}

// tell sends the owner what a budget has reached, once.
func (m *Meter) tell(ctx context.Context, r Records, s Standing) error {
	if key := s.Key(); s.Unsure() && !m.unsure[key] {
		if err := m.send(ctx, s, "unsure", Doubt(s)); err != nil {
			return err
		}
		m.unsure[key] = true
	}
	if s.Reached <= s.Told {
		return nil
	}
	m.o.Step("reached")
	if err := m.send(ctx, s, fmt.Sprintf("%d-%d-%d", s.Reached, s.Limit.Tokens, s.Limit.Nano), reached(s)); err != nil {
		return err
	}
	m.o.Step("told")
	return r.Told(ctx, s.Budget, s.Reached)
}

// send sends the owner mail about a budget, under an id that is the same after a crash.
func (m *Meter) send(ctx context.Context, s Standing, what, text string) error {
	sum := sha256.Sum256([]byte(s.Key() + " " + what))
	id := "budget-" + hex.EncodeToString(sum[:16])
	_, err := m.o.Bus.Send(ctx, envelope.Envelope{
		ID: id, From: speaker(s), To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: text, Time: time.Now(), Extra: envelope.ToPhone(),
	})
	return err
}

// speaker is whose name mail about a budget bears.
func speaker(s Standing) agent.ID {
	if id, err := agent.Parse(s.About); err == nil && id.IsAgent() && s.Scope == ScopeAgent {
		return id
	}
	return agent.Root
}

func reached(s Standing) string {
	text := fmt.Sprintf("%d %% of %v is used: %s.", s.Percent(), s.Budget, Used(s))
	if s.Reached < Spent {
		return text + " At 100 % nothing more is offered until you say so."
	}
	text += " Nothing more is offered, and mail waits"
	if s.Scope != ScopeTask {
		text += " until the day is over"
	}
	return text + "; `netsky needs` has the code with which you allow as much again."
}

// Used says how much of a budget is used: "1,200 of 1,000 tokens".
func Used(s Standing) string {
	var parts []string
	if s.Limit.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s tokens", Number(s.Tokens), Number(s.Limit.Tokens)))
	}
	if s.Limit.Nano > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", Money(s.Nano), Money(s.Limit.Nano)))
	}
	return strings.Join(parts, ", ")
}

// Doubt says that a budget can't be checked.
func Doubt(s Standing) string {
	return fmt.Sprintf("%v is in money, and can't be checked: the price of %s tokens is not known. They count as nothing; "+
		"give their models a price in [price] of netsky.toml, or limit tokens. `netsky cost --by model` names the models.", s.Budget, Number(s.Unpriced))
}

// Number returns a number with its thousands apart.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Money returns an amount with two decimal places, or more if it would be nothing. The currency
// is the owner's.
func Money(nano int64) string {
	places := 2
	if nano > 0 && nano < 1e7 {
		places = 4
	}
	return strconv.FormatFloat(float64(nano)/1e9, 'f', places, 64)
}

// A bar is what keeps agents from being offered anything.
type bar struct {
	Standing
	by agent.ID
}

// bar closes the breakers of the budgets that are used up, and opens those of the others.
func (m *Meter) bar(ctx context.Context, r Records, all []Standing) error {
	want := make(map[string]bar)
	for _, s := range all {
		if !s.Over() {
			continue
		}
		names := map[string]agent.ID{breaker.AllBudget: agent.Root}
		switch s.Scope {
		case ScopeAgent:
			names = map[string]agent.ID{breaker.Budget(agent.ID(s.About)): agent.ID(s.About)}
		case ScopeTask:
			id, err := r.Worker(ctx, s.About)
			if err != nil {
				return err
			}
			names = map[string]agent.ID{breaker.Budget(id): id}
		}
		for name, by := range names {
			if _, taken := want[name]; !taken && by != "" {
				want[name] = bar{s, by}
			}
		}
	}
	states, err := breaker.List(m.o.Home)
	errs := []error{err}
	for _, s := range states {
		if _, wanted := want[s.Account]; s.Fault.Reason != agent.Budget || wanted {
			continue
		}
		lifted, err := breaker.Of(m.o.Home, s.Account).Lift(ctx)
		if errs = append(errs, err); lifted {
			m.event(ctx, r.DB, s.By, "the "+s.Account+" bars nothing more")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		b := want[name]
		m.o.Step("bar")
		changed, err := breaker.Of(m.o.Home, name).Bar(ctx, b.by, budgetText(b.Standing), b.Key(), b.Refused, b.Ends())
		if errs = append(errs, err); changed {
			m.event(ctx, r.DB, b.by, fmt.Sprintf("%v is used up: %s; nothing more is offered", b.Budget, Used(b.Standing)))
		}
	}
	return errors.Join(errs...)
}

// budgetText says what is used up, in words that stay the same as long as it is.
func budgetText(s Standing) string { return fmt.Sprintf("%v, %s", s.Budget, limits(s)) }

// limits says what a budget allows: "1,000 tokens".
func limits(s Standing) string {
	var limits []string
	if s.Limit.Tokens > 0 {
		limits = append(limits, Number(s.Limit.Tokens)+" tokens")
	}
	if s.Limit.Nano > 0 {
		limits = append(limits, Money(s.Limit.Nano)+" in money")
	}
	return strings.Join(limits, " and ")
}

func (m *Meter) event(ctx context.Context, db *store.DB, id agent.ID, text string) {
	m.o.Log.Info("budget", "agent", id, "text", text)
	if err := db.Apply(ctx, store.AddLog{Level: store.LevelWarn, Part: "cost", Actor: id, Text: text}); err != nil {
		m.log("log", err)
	}
}
