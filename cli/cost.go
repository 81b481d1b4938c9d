package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/claude"
	"netsky/cli/view"
	"netsky/codex"
	"netsky/config"
	"netsky/cost"
	"netsky/home"
	"netsky/spawn"
	"netsky/store"
)

// costVerbs shows what tokens cost and what budgets allow.
type costVerbs struct{ *app }

func (a costVerbs) costCommand() *cli.Command {
	return &cli.Command{
		Name: "cost", Usage: "print what agents used: tokens, and money where a price is known",
		Description: "Counts the tokens of each request, from the files in which Claude Code and Codex write their conversations. No token is in\n" +
			"two columns: input is what neither came from the cache nor went into it. Money is what the program states itself, or what\n" +
			"[price] in netsky.toml makes of the tokens; what has no price is listed as not known, and is in no sum.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "by", Value: string(cost.ByAgent), DefaultText: string(cost.ByAgent), Usage: "sum up by `WHAT`: agent, task, model or day"},
			&cli.StringFlag{Name: "since", Usage: "count only what was used since then: a `TIME` ago, such as 12h or 7d, or a day, such as 2026-11-20"},
			&cli.StringFlag{Name: "agent", Usage: "count only what `AGENT` used"},
			&cli.StringFlag{Name: "task", Usage: "count only what the task with that `ID` used"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object"},
		},
		Action: a.cost,
	}
}

func (a costVerbs) cost(c *cli.Context) error {
	by := cost.By(c.String("by"))
	if !slices.Contains(cost.Bys, by) {
		return usagef("cost: --by %q: must be agent, task, model or day", by)
	}
	var f cost.Filter
	var err error
	if f.Since, err = cost.Since(c.String("since"), time.Now()); err != nil {
		return usagef("cost: --since %v", err)
	}
	if who := c.String("agent"); who != "" {
		if f.Agent, err = agent.ParseAgent(who); err != nil {
			return usagef("cost: --agent: %w", err)
		}
	}
	l, err := a.launcher()
	if err != nil {
		return err
	}
	if id := c.String("task"); id != "" {
		t, err := taskVerbs(a).tasks()
		if err != nil {
			return err
		}
		k, err := t.Book().Find(c.Context, id)
		if err != nil {
			return taskVerbs(a).taskErr("cost: --task", err)
		}
		f.Task = k.ID
	}
	db, err := a.records(c.Context, l.Home)
	if errors.Is(err, fs.ErrNotExist) {
		a.warn("no records yet: no agent was ever started here")
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	sums, err := cost.Read(c.Context, db, by, f, time.Now())
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(sums)
	}
	for _, line := range costLines(sums) {
		a.print("%s", line)
	}
	return nil
}

// costLines are a table: a line for each sum, and what there is to say about prices and budgets.
func costLines(a cost.Account) []string {
	if len(a.Sums) == 0 {
		return []string{view.NoUsage}
	}
	rows := [][]string{{strings.ToUpper(string(a.By)), "REQUESTS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST"}}
	row := func(name string, s cost.Amounts) {
		u := s.Usage
		rows = append(rows, []string{
			name, cost.Number(s.Requests), cost.Number(u.Input), cost.Number(u.Output), cost.Number(u.CacheRead), cost.Number(u.CacheWrite), cost.Cost(s.Sum),
		})
	}
	for _, s := range a.Sums {
		row(cost.Called(a.By, s.Sum), s)
	}
	if len(a.Sums) > 1 && a.Total != nil {
		row("total", *a.Total)
	}
	return append(table(rows), a.Notes()...)
}

// table lines up columns: the first to the left, the others to the right.
func table(rows [][]string) (lines []string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// budgetNotes say what about budgets can't be checked.
func (a costVerbs) budgetNotes(h home.Dir) (notes []string) {
	prices, limits, unknown := a.config.Terms()
	if unknown {
		notes = append(notes, "[price] and [budget] of netsky.toml can't be relied on; those known last hold")
	}
	if limits.Money() && len(prices) == 0 {
		notes = append(notes, "a budget is in money, but no model has a price in netsky.toml: until programs state what they cost, it can't be checked")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	db, err := store.OpenRead(ctx, h)
	if err != nil {
		return notes // which is noted by others
	}
	defer db.Close()
	doubts, _ := cost.Doubts(ctx, db)
	return append(notes, doubts...)
}

// costService returns what counts the cost of turns in the daemon.
func (a costVerbs) costService(l *spawn.Launcher, log *slog.Logger) func(context.Context, func() *store.DB) error {
	return func(ctx context.Context, records func() *store.DB) error {
		return cost.NewMeter(cost.MeterOptions{
			Home: l.Home, Bus: l.Bus, Records: records, Log: log.With("part", "cost"), Environ: a.environ,
			Sources: map[string]cost.Source{claude.UsageSource: claudeFiles{}, codex.UsageSource: &codexFiles{}},
			Terms: func() (t cost.Terms) {
				c, _, _ := config.Load(l.Home) // a mistake is shown by others
				t.Prices, t.Limits, t.Unknown = c.Terms()
				return t
			},
		}).Run(ctx)
	}
}

// claudeFiles are the conversations of Claude Code.
type claudeFiles struct{}

func (claudeFiles) Files(env []string, thread string) []string {
	return claude.UsageFiles(env, thread)
}
func (claudeFiles) Open(thread, state string) cost.Reader {
	return claude.OpenUsage(thread, state)
}

// codexFiles are the threads of Codex.
type codexFiles struct{ codex.UsageFinder }

func (f *codexFiles) Files(env []string, thread string) []string {
	return f.UsageFinder.Files(env, thread, time.Now())
}
func (f *codexFiles) Open(thread, state string) cost.Reader {
	return codex.OpenUsage(thread, state)
}
