package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"netsky/agent"
	"netsky/store"
	"netsky/work"
	"netsky/work/diff"
	"netsky/work/record"
)

// Work reads how the agents' work is, and takes the owner's comments on it. States, Change and Words may
// run git: they answer with what was read some seconds ago if that was asked for then, and as of when
// that was.
type Work interface {
	States(context.Context) ([]work.State, time.Time, error)
	// Change returns what the agent has changed, in one file if it is named. The error matches
	// fs.ErrNotExist if it has no worktree.
	Change(ctx context.Context, id agent.ID, file string) (work.Change, time.Time, error)
	// Words returns what the tasks are called: see task.Judge.
	Words(context.Context, []store.Task) []string
	Landings(context.Context, record.Filter) ([]record.Landing, error)
	Checks(context.Context, record.Filter) ([]record.Check, error)

	// Comments returns those of the owner's comments on the agent's work that have not been sent, and
	// those sent last.
	Comments(context.Context, agent.ID) (pending, sent []record.Comment, err error)
	// Comment keeps a comment under a key; a second one under it has no effect.
	Comment(ctx context.Context, key string, id agent.ID, file string, line int, old bool, text string) error
	Drop(ctx context.Context, id agent.ID, comment string) error
	// Send sends all that have not been sent in one message.
	Send(context.Context, agent.ID) ([]diff.Sent, error)
}

// works are the pages and the API of the agents' work, and what other pages show of it.
type works struct {
	Work // nil: it is not available here
	log  *slog.Logger
}

// workLimit is the time to read a page for which git may run.
const workLimit = 25 * time.Second

// onWork is how many landings and checks the page shows.
const onWork = 12

// A workBody is how the work of all agents is.
type workBody struct {
	Off      bool // it is not available here
	At       store.Time
	Trees    []Tree
	Landings []Landing
	Checks   []Check
}

func (w *works) page(ctx context.Context, sh *shell, q *query) (string, error) {
	sh.Title, sh.Section = "Work", "work"
	b := workBody{Off: w.Work == nil}
	if err := q.done(); err != nil || b.Off {
		sh.Body = b
		return "work", err
	}
	list, at, err := w.States(ctx)
	sh.failed(err)
	b.At = store.At(at)
	for _, st := range list {
		b.Trees = append(b.Trees, TreeOf(st))
	}
	landings, err := w.Landings(ctx, record.Filter{Limit: onWork})
	sh.failed(err)
	for _, l := range landings {
		b.Landings = append(b.Landings, LandingOf(l))
	}
	checks, err := w.Checks(ctx, record.Filter{Limit: onWork})
	sh.failed(err)
	for _, k := range checks {
		b.Checks = append(b.Checks, Check{Check: k, Took: elapsed(k.Started, k.Ended)})
	}
	sh.Body = b
	return "work", nil
}

// errNoWork and errNoCost report what this server was not given.
var (
	errNoWork = errors.New("how the agents' work is, is not available here")
	errNoCost = errors.New("what turns cost is not available here")
)

// api is GET /api/work.
func (w *works) api(ctx context.Context, q *query) (any, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	if w.Work == nil {
		return nil, errNoWork
	}
	ctx, cancel := context.WithTimeout(ctx, workLimit)
	defer cancel()
	list, at, err := w.States(ctx)
	if err != nil && len(list) == 0 {
		return nil, err
	}
	v := struct {
		At       store.Time       `json:"at"`
		Work     []work.State     `json:"work"`
		Landings []record.Landing `json:"landings"`
		Checks   []record.Check   `json:"checks"`
		Errors   []string         `json:"errors"`
	}{At: store.At(at), Work: list, Errors: []string{}}
	failed := func(err error) {
		if err != nil {
			v.Errors = append(v.Errors, err.Error())
		}
	}
	failed(err)
	v.Landings, err = w.Landings(ctx, record.Filter{})
	failed(err)
	v.Checks, err = w.Checks(ctx, record.Filter{})
	failed(err)
	return v, nil
}

// soon returns how the agents' work is, as far as git tells it in time.
func (w *works) soon(ctx context.Context) (list []work.State) {
	if w.Work != nil {
		ctx, cancel := context.WithTimeout(ctx, wordLimit)
		defer cancel()
		list, _, _ = w.States(ctx)
	}
	return list
}

// steps adds to conflicts between two agents what can be done about them now. How else the agents' work is,
// the page of work says.
func (w *works) steps(ctx context.Context, waits []need) {
	if slices.ContainsFunc(waits, func(n need) bool { return n.Stepwise() }) {
		list := w.soon(ctx)
		for i := range waits {
			waits[i].AddStep(list)
		}
	}
}
