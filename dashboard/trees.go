// This file gives the dashboard the agents' work: what git says by package work, what the records
// say by work/record, and the owner's comments by work/diff.
//
// It decides nothing and keeps nothing but what package work keeps, so a crash leaves nothing more.

package dashboard

import (
	"context"
	"errors"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/store"
	"netsky/work"
	"netsky/work/check"
	"netsky/work/diff"
	"netsky/work/record"
	"netsky/work/task"
)

// TreesOptions configure Trees.
type TreesOptions struct {
	Home    home.Dir
	Bus     *bus.Bus
	Records func() *store.DB // the open database; nil while there is none
	Record  func(context.Context, ...store.Op) error
	Check   func() string                        // the command that proves work, as of now; nil: none does
	Up      func(context.Context, agent.ID) bool // reports whether the agent runs; nil: none does
}

// Trees are the agents' work. It implements dashboard.Work.
type Trees struct {
	*work.Looker
	o      TreesOptions
	review diff.Review
}

var errTreesNoRecords = errors.New("the records can't be read at the moment")

// NewTrees returns the agents' work. The caller must Close it.
func NewTrees(o TreesOptions) *Trees {
	t := &Trees{o: o}
	t.Looker = work.NewLooker(work.LookerOptions{Home: o.Home, Records: o.Records, Check: t.check, Up: o.Up})
	t.review = diff.Review{
		Author: agent.Owner, Via: "web", Bus: o.Bus, Record: o.Record,
		Read: func(_ context.Context, do func(record.Records) error) error { return t.records(do) },
	}
	return t
}

func (t *Trees) check() check.Command {
	c := check.Command{What: "check"}
	if t.o.Check != nil {
		c.Text = t.o.Check()
	}
	return c
}

// records calls do with the records of work.
func (t *Trees) records(do func(record.Records) error) error {
	db := t.o.Records()
	if db == nil {
		return errTreesNoRecords
	}
	return do(record.Records{DB: db})
}

// Landings returns landings, the newest first.
func (t *Trees) Landings(ctx context.Context, f record.Filter) (list []record.Landing, err error) {
	list = []record.Landing{}
	err = t.records(func(r record.Records) (err error) { list, err = r.Landings(ctx, f); return err })
	return list, err
}

// Checks returns checks, the newest first.
func (t *Trees) Checks(ctx context.Context, f record.Filter) (list []record.Check, err error) {
	list = []record.Check{}
	err = t.records(func(r record.Records) (err error) { list, err = r.Checks(ctx, f); return err })
	return list, err
}

// Words returns what the tasks are called.
func (t *Trees) Words(ctx context.Context, list []store.Task) []string {
	j := &task.Judge{Work: record.Records{DB: t.o.Records()}, Current: t.Tree, Holds: t.Holder(), Owns: t.Owns}
	if c := t.check(); c.Text != "" {
		j.Check = c.Digest()
	}
	words := make([]string, len(list))
	for i, k := range list {
		words[i] = j.Word(ctx, k)
	}
	return words
}

// Comments returns those of the owner's comments that have not been sent, and those sent last.
func (t *Trees) Comments(ctx context.Context, id agent.ID) (pending, sent []record.Comment, err error) {
	pending, err = t.review.Pending(ctx, id)
	if err == nil {
		sent, err = t.review.Sent(ctx, id)
	}
	return pending, sent, err
}

// Comment keeps a comment under a key; a second one under it has no effect.
func (t *Trees) Comment(ctx context.Context, key string, id agent.ID, file string, line int, old bool, text string) error {
	return t.Open(ctx, id, func(c *diff.Change) error {
		_, err := t.review.AddOnce(ctx, key, c, id, file, line, old, text)
		return err
	})
}

// Drop removes a comment that has not been sent.
func (t *Trees) Drop(ctx context.Context, id agent.ID, comment string) error {
	return t.review.DropOnce(ctx, id, comment)
}

// Send sends all comments that have not been sent.
func (t *Trees) Send(ctx context.Context, id agent.ID) ([]diff.Sent, error) {
	return t.review.Send(ctx, id)
}
