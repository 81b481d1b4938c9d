package mcp_test

import (
	"context"
	"errors"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/bus/mcp"
	"netsky/store"
	"netsky/work/task"
)

var errBroken = errors.New("broken")

// records is a database as the server wants it.
type records struct{ *store.DB }

func (r records) Record(ctx context.Context, ops ...store.Op) error { return r.Apply(ctx, ops...) }

// book is the tasks on record, which a test may have taken back from somebody.
type book struct {
	o        *mcp.Options
	takeBack func(before, now store.Task) string
}

func (b *book) Book() task.Book {
	return task.Book{
		Home: b.o.Home, Records: b.o.Records.(task.Records), By: b.o.Agent, Own: b.o.Agent.IsClone(),
		Mail: func(ctx context.Context, id string) bool {
			list, err := b.o.Bus.Received(ctx, b.o.Agent, id)
			return err == nil && len(list) > 0 && list[0].Envelope.ID == id
		},
	}
}

func (b *book) Add(ctx context.Context, w task.Wish) (store.Task, error) { return b.Book().Add(ctx, w) }

func (b *book) Note(ctx context.Context, n task.Note) (string, error) { return b.Book().Note(ctx, n) }

func (b *book) Word(_ context.Context, k store.Task) string { return k.Word() }

func (b *book) Edit(ctx context.Context, r task.Edit) (e task.Edited, err error) {
	e.Before, e.Task, e.Changed, err = b.Book().Update(ctx, r.Task, r.Change)
	if b.takeBack != nil && r.State != "" {
		e.Note = b.takeBack(e.Before, e.Task)
	}
	return e, err
}

// team is a team by list.
type team struct {
	mu      sync.Mutex
	list    []mcp.Member
	screen  string
	started []string
	err     error
	hold    chan struct{} // not nil: Peek waits for it or for ctx
	held    chan struct{} // closed when Peek waits
	stuck   bool          // and not for ctx
}

func (t *team) List(context.Context) ([]mcp.Member, error) { return t.list, t.err }

func (t *team) Peek(ctx context.Context, id agent.ID, lines int) (string, error) {
	if t.hold != nil {
		close(t.held)
		done := ctx.Done()
		if t.stuck {
			done = nil
		}
		select {
		case <-t.hold:
		case <-done:
			return "", ctx.Err()
		}
	}
	return t.screen, t.err
}

func (t *team) Start(_ context.Context, id agent.ID, objective string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started = append(t.started, string(id)+" "+objective)
	return string(id) + " ready", t.err
}

func (t *team) Stop(_ context.Context, id agent.ID) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started = append(t.started, "-"+string(id))
	return string(id) + " down", t.err
}

func (t *team) StartTask(_ context.Context, task string, id agent.ID) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started = append(t.started, task+" to "+string(id))
	return task + " started", t.err
}

// postbox is a mailbox in hand.
type postbox struct {
	mu       sync.Mutex
	texts    string
	left     int
	err      error
	owed     []string
	answered []string
}

func (p *postbox) Waiting(context.Context) (string, int, error) { return p.texts, p.left, p.err }
func (p *postbox) Owed() []string                               { return p.owed }

func (p *postbox) Answered(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = append(p.answered, id)
}

// A journal is what the server logged.
type journal struct {
	mu   sync.Mutex
	said []string
}

func (j *journal) note(what string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.said = append(j.said, what+": "+err.Error())
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.said, "\n")
}
