package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

// Route sends what is in the agents' outboxes, in one pass under the lock "router" (the
// error matches home.ErrLocked if a router runs). The sender is set to the mailbox's
// owner; a file that claims another sender, names an unknown recipient or is no envelope
// moves to that agent's poison/. A file that a brake stops stays for a later pass, with
// all that follow it to the same recipient.
//
// A crash between publishing a file and moving it to sent/ publishes it again, under the
// same ID: it has one effect.
func (b *Bus) Route(ctx context.Context) error {
	lock, err := b.home.Lock(home.RouterLock)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	rt := newRouter(b, func(string, error) {})
	_, err = rt.pass(ctx)
	return err
}

// RunRouter routes until ctx ends, whenever an outbox changes. report, if not nil,
// receives what it did besides routing (err is nil then) and what went wrong, at most once
// for each file.
func (b *Bus) RunRouter(ctx context.Context, report func(what string, err error)) error {
	if report == nil {
		report = func(string, error) {}
	}
	lock, err := b.home.WaitLock(ctx, home.RouterLock, func(err error) { report("lock", err) })
	if err != nil {
		return err
	}
	defer lock.Unlock()
	w, err := b.Watch(ctx, Spot{Place: Outbox})
	if err != nil {
		return err
	}
	defer w.Close()
	rt := newRouter(b, report)
	told := ""
	for {
		later, err := rt.pass(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && err.Error() != told {
			told = err.Error()
			report("route", err)
		}
		var again <-chan time.Time
		switch {
		case later || err != nil:
			again = time.After(lookAgain)
		case rt.mending():
			again = time.After(passEvery)
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
	b      *Bus
	report func(what string, err error)
	rest   map[string]rest // files that are not envelopes yet
	mend   map[agent.ID]*mending
}

func newRouter(b *Bus, report func(string, error)) *router {
	return &router{b: b, report: report, rest: make(map[string]rest), mend: make(map[agent.ID]*mending)}
}

// mending reports whether poisoned files of any outbox are watched.
func (rt *router) mending() bool {
	for _, m := range rt.mend {
		if len(m.files) > 0 {
			return true
		}
	}
	return false
}

// A rest says since when an invalid file has been unchanged.
type rest struct {
	mark  mailbox.Mark
	since time.Time
}

// pass handles all outboxes. later reports that some files need another look.
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

// outbox routes the files of one agent. It adds files that cannot be judged yet to bad.
func (rt *router) outbox(ctx context.Context, id agent.ID, bad map[string]rest) (later bool, err error) {
	out, err := rt.b.openPlace(id, Outbox)
	if err != nil {
		return false, err
	}
	defer unix.Close(out)
	rt.takeMended(id, out)
	list, err := candidates(out, 0)
	if err != nil {
		return false, err
	}
	held := make(map[agent.ID]bool) // recipients held back by a brake
	var errs []error
	for _, c := range list {
		if err := ctx.Err(); err != nil {
			return later, err
		}
		e, m, err := rt.b.readEnvelope(out, c.name, form{rt.b.boxes, id, Outbox})
		if err == nil && held[e.To] {
			later = true
			continue
		}
		if err == nil {
			err = rt.send(ctx, out, c.name, e)
		}
		switch {
		case err == nil || mailbox.Gone(err):
		case isPassing(err):
			held[e.To] = true
			later = true
		case errors.Is(err, envelope.ErrInvalid) && e.ID == "" && !rt.atRest(id, out, c.name, m, err, bad):
		case isRefusal(err):
			err = rt.poison(id, out, c.name, m, err)
			if err != nil && !mailbox.Gone(err) {
				errs = append(errs, err)
			}
		case errors.Is(err, mailbox.ErrGrowing):
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

// isPassing reports whether waiting will lift the refusal.
func isPassing(err error) bool {
	return errors.Is(err, ErrBrake) && !errors.Is(err, ErrHops)
}

// isRefusal reports whether every later attempt would fail too.
func isRefusal(err error) bool {
	return errors.Is(err, envelope.ErrInvalid) || errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrNoMailbox) || errors.Is(err, ErrBrake)
}

func (rt *router) atRest(id agent.ID, out int, name string, m mailbox.Mark, err error, bad map[string]rest) bool {
	l := letter{candidate: candidate{name: name}, mark: m, bad: err, since: rt.b.now()}
	key := string(id) + "/" + name
	if r, ok := rt.rest[key]; ok && r.mark == m {
		l.since = r.since
	}
	if l.early(out, rt.b.now()) <= 0 {
		return true
	}
	bad[key] = rest{m, l.since}
	return false
}

// send publishes one outbox file and moves it to sent/.
func (rt *router) send(ctx context.Context, out int, name string, e envelope.Envelope) error {
	if _, err := rt.b.Send(ctx, e); err != nil {
		return err
	}
	sent, err := mailbox.MakeDir(rt.b.home, placePath(e.From, Sent))
	if err != nil {
		return err
	}
	defer unix.Close(sent)
	_, err = move(out, name, sent)
	return err
}

func (rt *router) poison(id agent.ID, out int, name string, m mailbox.Mark, reason error) error {
	to, err := mailbox.MakeDir(rt.b.home, placePath(id, Poison))
	if err != nil {
		return err
	}
	defer unix.Close(to)
	now, err := rt.b.poison(out, name, to, reason, mailbox.Origin{Place: string(Outbox), Mark: m})
	if now != "" {
		rt.mend[id].add(now, m)
	}
	return err
}

// takeMended puts files back into an open outbox that were found there, were poisoned, and
// are valid envelopes now.
func (rt *router) takeMended(id agent.ID, out int) {
	m := rt.mend[id]
	if m == nil {
		m = &mending{bus: rt.b.boxes, box: id, place: Outbox}
		rt.mend[id] = m
	}
	poison, err := rt.b.openPlace(id, Poison)
	if err != nil {
		return
	}
	defer unix.Close(poison)
	m.take(poison, out, rt.report)
}
