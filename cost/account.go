package cost

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netsky/bus/envelope"
	"netsky/store"
)

// An Account is what turns used, summed up, and how far the budgets are used.
type Account struct {
	By      By         `json:"by"`
	Sums    []Amounts  `json:"sums"`
	Total   *Amounts   `json:"total"` // nil if nothing was used
	Budgets []Standing `json:"budgets"`
}

// A Amounts is a sum with its amounts as decimal numbers.
type Amounts struct {
	Sum
	Money    float64 `json:"money"`        // what is known
	Stated   float64 `json:"money_stated"` // what of that the programs stated
	Complete bool    `json:"complete"`     // all of it has a price
}

func sumOf(s Sum) Amounts {
	return Amounts{s, float64(s.Nano) / 1e9, float64(s.Stated) / 1e9, s.Unpriced.Total() == 0}
}

// Read sums up the turns that the filter selects, and returns how far the budgets are used that were
// known last.
func Read(ctx context.Context, db *store.DB, by By, f Filter, now time.Time) (a Account, err error) {
	r := Records{DB: db}
	a = Account{By: by, Sums: []Amounts{}, Budgets: []Standing{}}
	list, err := r.Sum(ctx, by, f)
	if err != nil {
		return a, err
	}
	for _, s := range list {
		a.Sums = append(a.Sums, sumOf(s))
	}
	all, err := r.Sum(ctx, ByAll, f)
	if err != nil {
		return a, err
	}
	if len(all) > 0 {
		total := sumOf(all[0])
		a.Total = &total
	}
	if terms, ok := Saved(ctx, db); ok {
		a.Budgets, err = r.Standings(ctx, terms.Limits, now)
	}
	return a, err
}

// Notes say what there is to say about prices and budgets.
func (a Account) Notes() (list []string) {
	if a.Total != nil && !a.Total.Complete {
		list = append(list, Unpriced(a.Total.Sum))
	}
	for _, s := range a.Budgets {
		list = append(list, Stands(s))
	}
	return list
}

// Unpriced says of which models the price is not known.
func Unpriced(s Sum) string {
	models := make([]string, len(s.Models)) // as a program's file has them
	for i, m := range s.Models {
		models[i] = envelope.Line(m, maxName)
	}
	return "not known: no price for " + strings.Join(models, ", ") + " (" + Number(s.Unpriced.Total()) + " tokens); [price] in netsky.toml takes one"
}

// Stands says how far a budget is used.
func Stands(s Standing) string {
	line := fmt.Sprintf("%d %% of %v is used: %s", s.Percent(), s.Budget, Used(s))
	if s.Unsure() {
		line += "; it can't be checked, as " + Number(s.Unpriced) + " tokens have no price"
	}
	return line
}

// Called is what a sum is called: by its name, if it has one.
func Called(by By, s Sum) string {
	if s.Name == "" {
		return map[By]string{ByTask: "(no task)", ByModel: "(unknown)"}[by]
	}
	return envelope.Line(s.Name, maxName)
}

// maxName is how much of a name is shown, in bytes.
const maxName = 100

// Cost is what a sum cost, as far as that is known.
func Cost(s Sum) string {
	switch {
	case s.Unpriced.Total() == 0:
		return Money(s.Nano)
	case s.Nano == 0:
		return "not known"
	}
	return Money(s.Nano) + " + not known"
}

// Since parses how long ago, or on which day, a sum begins; "" is the zero time.
func Since(word string, now time.Time) (t time.Time, err error) {
	if word == "" {
		return t, nil
	}
	if day, err := ParseDay(word); err == nil {
		return day, nil
	}
	if days, ok := strings.CutSuffix(word, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 10_000 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 {
		return t, fmt.Errorf("%q: must be how long ago, such as 12h or 7d, or a day, such as 2026-11-20", envelope.Line(word, 40))
	}
	return now.Add(-d), nil
}
