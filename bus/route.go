package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
)

const routerLock = "router"

// Route sends what lies in the agents' outboxes, one pass under the lock
// "router" (the error matches agent.ErrLocked if a router runs). The sender is
// stamped with the mailbox's own name; a file that claims another one, names an
// unknown recipient or is no envelope goes to that agent's poison/. One that a
// brake holds back stays, with all that follows it to the same recipient, for a
// later pass.
//
// A crash between publishing a file and moving it to sent/ publishes it again,
// under the same ID: it has one effect.
func (b *Bus) Route(ctx context.Context) error {
	lock, err := b.home.Lock(routerLock)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	rt := router{b: b, rest: make(map[string]rest)}
	_, err = rt.pass(ctx)
	return err
}

// RunRouter routes until ctx ends, whenever an outbox changes. report is told
// what went wrong, at most once for each file; it may be nil.
func (b *Bus) RunRouter(ctx context.Context, report func(error)) error {
	if report == nil {
		report = func(error) {}
	}
	lock, err := b.home.WaitLock(ctx, routerLock, report)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	w, err := b.Watch(ctx, Spot{Place: Outbox})
	if err != nil {
		return err
	}
	defer w.Close()
	rt := router{b: b, rest: make(map[string]rest)}
	told := ""
	for {
		later, err := rt.pass(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && err.Error() != told {
			told = err.Error()
			report(err)
		}
		var again <-chan time.Time
		if later || err != nil {
			again = time.After(lookAgain)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.C:
		case <-again:
		}
	}
}

// A router makes passes over the outboxes.
type router struct {
	b    *Bus
	rest map[string]rest // files that are no envelopes yet
}

// A rest says since when a bad file has not changed.
type rest struct {
	mark  mark
	since time.Time
}

// pass goes over all outboxes. later says that some files want another look.
func (rt *router) pass(ctx context.Context) (later bool, err error) {
	boxes, err := rt.b.Mailboxes()
	if err != nil {
		return false, err
	}
	bad := make(map[string]rest)
	var errs []error
	for _, id := range boxes {
		if !id.IsAgent() {
			continue // the owner has verbs
		}
		l, err := rt.outbox(ctx, id, bad)
		later = later || l
		if err != nil && !errors.Is(err, ErrNoMailbox) {
			errs = append(errs, fmt.Errorf("outbox of %s: %w", id, err))
		}
	}
	rt.rest = bad
	return later || len(bad) > 0, errors.Join(errs...)
}

// outbox routes the files of one agent. What it cannot judge yet it enters
// in bad.
func (rt *router) outbox(ctx context.Context, id agent.ID, bad map[string]rest) (later bool, err error) {
	out, err := rt.b.openPlace(id, Outbox)
	if err != nil {
		return false, err
	}
	defer unix.Close(out)
	list, err := candidates(out, 0)
	if err != nil {
		return false, err
	}
	held := make(map[agent.ID]bool) // recipients whose brake is on
	var errs []error
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return later, err
		}
		e, m, err := rt.b.readEnvelope(out, c.name, rt.b.parseOutbox(id))
		if err == nil && held[e.To] {
			later = true
			continue
		}
		if err == nil {
			err = rt.send(ctx, out, c.name, e)
		}
		switch {
		case err == nil || gone(err):
		case isPassing(err):
			held[e.To] = true
			later = true
		case errors.Is(err, ErrInvalid) && e.ID == "" && !rt.atRest(id, c.name, m, err, bad):
		case isRefusal(err):
			err = rt.poison(id, out, c.name, err)
			if err != nil && !gone(err) {
				errs = append(errs, err)
			}
		case errors.Is(err, errGrowing):
			later = true
		default:
			if e.To != "" {
				held[e.To] = true // keep the order
			}
			errs = append(errs, err)
		}
	}
	return later, errors.Join(errs...)
}

// isPassing reports whether a brake refused that will let go.
func isPassing(err error) bool {
	var brake brakeError
	return errors.As(err, &brake) && brake.kind != brakeHops
}

// isRefusal reports whether no later attempt can have another end.
func isRefusal(err error) bool {
	return errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrNoMailbox) || errors.Is(err, ErrBrake)
}

func (rt *router) atRest(id agent.ID, name string, m mark, err error, bad map[string]rest) bool {
	l := letter{mark: m, bad: err, since: rt.b.now()}
	key := string(id) + "/" + name
	if r, ok := rt.rest[key]; ok && r.mark == m {
		l.since = r.since
	}
	if l.atRest(rt.b.now()) {
		return true
	}
	bad[key] = rest{m, l.since}
	return false
}

// send publishes one outbox file and moves it to sent/.
func (rt *router) send(ctx context.Context, out int, name string, e Envelope) error {
	if _, err := rt.b.Send(ctx, e); err != nil {
		return err
	}
	sent, err := openDir(rt.b.home, placePath(e.From, Sent), true)
	if err != nil {
		return err
	}
	defer unix.Close(sent)
	_, err = move(out, name, sent)
	return err
}

func (rt *router) poison(id agent.ID, out int, name string, reason error) error {
	to, err := openDir(rt.b.home, placePath(id, Poison), true)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	_, err = rt.b.poison(out, name, to, reason)
	return err
}

// parseOutbox reads what an agent wrote into its outbox. The sender and the
// time may be missing there: the router knows them.
func (b *Bus) parseOutbox(id agent.ID) func([]byte) (Envelope, error) {
	return func(data []byte) (Envelope, error) {
		e, err := decode(data)
		if err != nil {
			return Envelope{}, err
		}
		if e.From != "" && e.From != id {
			return Envelope{}, invalidf("from: %s, but this is the outbox of %s", e.From, id)
		}
		e.From, e.Via = id, ""
		if e.Time.IsZero() {
			e.Time = b.now()
		}
		if e.To == "" {
			return Envelope{}, invalidf("to: missing")
		}
		return e, e.Validate()
	}
}
