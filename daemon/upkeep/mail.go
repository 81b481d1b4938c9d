package upkeep

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"path"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

// The bounds of delivered mail, beyond its age: what exceeds them is removed earlier, but
// not within a day.
const (
	MailBytes = 1 << 30
	MailFiles = 400_000
	mailFloor = 24 * time.Hour
)

// told is how many files are removed between two counts in the log.
const told = 200

// mail removes delivered and sent mail that is recorded and old.
func (p *pass) mail(ctx context.Context) error {
	keep, full, err := p.mailKeep(ctx)
	if err != nil {
		return err
	}
	held, err := p.held(ctx)
	if err != nil {
		return err
	}
	b := p.bus(keep)
	why := "older than [bus] keep"
	if full {
		why = fmt.Sprintf("older than %v, as delivered mail exceeded %d MiB or %d files", keep.Round(time.Minute), MailBytes>>20, MailFiles)
	}
	n := 0
	tell := func() error {
		return p.record(ctx, "mail", fmt.Sprintf("removed the files of %s %s, delivered or sent and recorded; the owner's unread mail and unanswered questions are kept", messages(n), why))
	}
	began := time.Now()
	p.removed.Mail, err = b.Prune(ctx, func(id string) bool {
		if held(id) || !bus.IsReportID(id) && !p.db.Recorded(ctx, id) {
			return false
		}
		if n++; n%told == 0 && (tell() != nil || p.rest(ctx, began) != nil) {
			return false
		}
		if n%told == 0 {
			began = time.Now()
		}
		return true
	})
	if n = p.removed.Mail; n > 0 {
		err = errors.Join(err, tell())
	}
	return err
}

func messages(n int) string {
	if n == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", n)
}

// mailKeep returns how long delivered mail is kept: shorter than usual if it is too much.
func (p *pass) mailKeep(ctx context.Context) (keep time.Duration, full bool, err error) {
	type hour struct{ bytes, files int64 }
	ages := make(map[int64]hour) // hours since a file was moved
	var all hour
	err = home.Walk(ctx, p.Home, func(i home.Item) {
		place := bus.Place(path.Base(path.Dir(i.Rel)))
		if !i.Box || !i.Own() || place != bus.Delivered && place != bus.Sent {
			return
		}
		at := int64(p.now.Sub(i.Changed) / time.Hour)
		h := ages[at]
		ages[at] = hour{h.bytes + i.Size, h.files + 1}
		all = hour{all.bytes + i.Size, all.files + 1}
	})
	keep = p.Bounds.Mail
	if err != nil && ctx.Err() != nil {
		return keep, false, err
	}
	if all.bytes <= MailBytes && all.files <= MailFiles { // also if something could not be read
		return keep, false, nil
	}
	const share = 10 // leaves a tenth free, so that not every pass has to
	var sum hour
	for _, at := range slices.Sorted(maps.Keys(ages)) {
		sum = hour{sum.bytes + ages[at].bytes, sum.files + ages[at].files}
		if sum.bytes > MailBytes-MailBytes/share || sum.files > MailFiles-MailFiles/share {
			shorter := max(time.Duration(at)*time.Hour, mailFloor)
			return min(keep, shorter), shorter < keep, nil
		}
	}
	return keep, false, nil
}

// held returns a function that reports whether a message is in an agent's ledger: the
// model gets it again, or it is to be answered. If a ledger can't be read, all that its
// agent received may be.
func (p *pass) held(ctx context.Context) (func(id string) bool, error) {
	boxes, err := p.bus(p.Bounds.Mail).Mailboxes()
	if err != nil {
		return nil, err
	}
	ids, unknown := make(map[string]bool), make(map[agent.ID]bool)
	for _, box := range boxes {
		owed := courier.ReadLedger(p.Home, box)
		if owed.Err != nil {
			unknown[box] = true
			if p.Log != nil {
				p.Log.Warn("upkeep", "agent", box, "kept", "all its mail", "error", owed.Err)
			}
			continue
		}
		for _, m := range owed.Messages {
			ids[m.ID] = true
		}
	}
	return func(id string) bool {
		if ids[id] || len(unknown) == 0 {
			return ids[id]
		}
		l, err := p.db.Deliveries(ctx, store.DeliveryFilter{Message: id})
		return err != nil || slices.ContainsFunc(l.Items, func(d store.Delivery) bool { return unknown[d.Target] })
	}, nil
}

// inMailboxes returns a function that reports whether a message may still have a file: then
// its record stays, since the records follow the mailboxes. It covers what is older than
// the bound for mail.
func (p *pass) inMailboxes(ctx context.Context) (func(id string) bool, error) {
	b := p.bus(p.Bounds.Mail)
	boxes, err := b.All()
	if err != nil {
		return nil, err
	}
	seed, there := maphash.MakeSeed(), make(map[uint64]bool)
	young := p.now.Add(-p.Bounds.Mail).UnixNano()
	for _, box := range boxes {
		for _, at := range bus.Places() {
			names, err := b.Names(box, at)
			if err != nil && !errors.Is(err, bus.ErrNoMailbox) {
				return nil, err
			}
			for _, name := range names {
				if ns, _, ours := envelope.NameParts(name); ours && ns >= young {
					continue
				}
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if e, err := b.Read(box, at, name); err == nil && e.Err == nil {
					there[maphash.String(seed, e.Envelope.ID)] = true
				}
			}
		}
	}
	return func(id string) bool { return there[maphash.String(seed, id)] }, nil
}
