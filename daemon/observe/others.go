package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/store"
)

// tellEvery is the least time between two reports to one host: what happens in it is told together.
const tellEvery = time.Second

// others is what the observer remembers of the other hosts.
type others struct {
	began   time.Time                // the pass
	all     bool                     // the pass reads all, whoever was told something a moment ago
	due     map[string]time.Time     // when a host is told what there is
	upTo    map[string]bus.ReportsAt // what a host has reported is recorded
	changed map[string]home.Mark     // the files of their reports, when they were read
}

// A told is what a host is told of one message from there.
type told struct {
	host string
	bus.DeliveryReport
}

// tellsOf returns what the host of a message's sender is told of its delivery here.
func tellsOf(d store.UpsertDelivery) []told {
	host := d.From.Host()
	if host == "" || d.Target.Host() != "" {
		return nil
	}
	return []told{{host, bus.DeliveryReport{
		ID: d.Message, From: d.From.Local(), To: d.Target, State: string(d.State), Attempts: d.Attempts, Reason: envelope.Line(d.Reason, 300), MS: int64(d.Time),
	}}}
}

// record tells the hosts, then records.
func (o *Observer) record(ctx context.Context, ops []store.Op, tells []told) error {
	of := make(map[string][]bus.DeliveryReport)
	for _, t := range tells {
		of[t.host] = append(of[t.host], t.DeliveryReport)
	}
	for _, host := range slices.Sorted(maps.Keys(of)) {
		if err := o.Bus.Report(ctx, host, of[host]...); err != nil {
			return err
		}
	}
	return o.DB.Apply(ctx, ops...)
}

// holds reports whether a file is to be read later, as its sender's host is told what there is
// only once in a while.
func (o *Observer) holds(box agent.ID, name string) bool {
	_, from, _ := envelope.NameParts(name)
	host := agent.ID(from).Host()
	if host == "" || box.Host() != "" || o.all {
		return false
	}
	due, ok := o.due[host]
	if !ok {
		due = o.began.Add(tellEvery)
		o.due[host] = due
	}
	return o.began.Before(due)
}

// A heardReport is one of a host's.
type heardReport struct {
	host string
	bus.DeliveryReport
}

// A hearing is what was read of the hosts' reports, and how far.
type hearing struct {
	list []heardReport
	read map[string]bus.ReportsAt
}

// hear begins a pass with what the hosts have reported since the last one.
func (o *Observer) hear(all bool) (h hearing, err error) {
	now := time.Now()
	if o.due == nil {
		o.due, o.changed, o.upTo = make(map[string]time.Time), make(map[string]home.Mark), make(map[string]bus.ReportsAt)
	}
	maps.DeleteFunc(o.due, func(_ string, due time.Time) bool { return !o.began.Before(due) }) // they were told
	o.began, o.all, h.read = now, all, make(map[string]bus.ReportsAt)
	hosts, err := o.Bus.Linked()
	for _, host := range hosts {
		var rerr error
		o.changed[host] = o.DB.Home().Mark(bus.ReportsFile(host))
		h.read[host], rerr = o.Bus.Reports(host, o.upTo[host], func(r bus.DeliveryReport) { h.list = append(h.list, heardReport{host, r}) })
		err = errors.Join(err, rerr)
	}
	return h, err
}

// heard reports whether a host has reported something since the last pass.
func (o *Observer) heard() bool {
	hosts, err := o.Bus.Linked()
	if err != nil {
		return false // the next pass says so
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(hosts, func(host string) bool {
		now := o.DB.Home().Mark(bus.ReportsFile(host))
		return now.Exists() && !o.changed[host].Same(now)
	})
}

// states are those that a host reports, by its own word. What is in an inbox there has arrived.
var states = map[string]store.DeliveryState{
	string(store.Queued): store.Arrived, string(store.Claimed): store.Claimed, string(store.Delivered): store.Delivered, string(store.Expired): store.Expired,
	string(store.Cancelled): store.Cancelled, string(store.Poisoned): store.Poisoned, string(store.Failed): store.Failed,
}

// believe records what the hosts have reported of messages that are on record.
func (o *Observer) believe(ctx context.Context, h hearing) error {
	var ops []store.Op
	apply := func() error {
		err := o.DB.Apply(ctx, ops...)
		ops = ops[:0]
		return err
	}
	for _, r := range h.list {
		to := r.To.At(r.host)
		state, known := states[r.State] // else a later netsky's: an update reads it again
		d, err := o.DB.Delivery(ctx, r.ID, r.From, to)
		switch {
		case errors.Is(err, store.ErrNotFound):
			if b := o.boxes[to]; b != nil && b.unread() {
				o.later = true // it may be about that
				return apply()
			}
			continue
		case err != nil:
			return err
		case !known:
			continue
		}
		u := store.UpsertDelivery{
			Message: r.ID, From: r.From, Target: to, State: state, Attempts: max(r.Attempts, d.Attempts), Reason: r.Reason, Time: max(store.Time(r.MS), d.Queued),
		}
		if d.Filed == store.Failed && (state == store.Arrived || state == store.Claimed) {
			u.Attempts++ // it was thought to be lost
		}
		if d.Filed == u.State && d.Attempts == u.Attempts && d.Reason == u.Reason {
			continue
		}
		if ops = append(ops, u); len(ops) < maxOps {
			continue
		}
		if err := apply(); err != nil {
			return err
		}
	}
	if err := apply(); err != nil {
		return err
	}
	o.upTo = h.read
	return nil
}

// slack is what a host may take to say that it has what the server kept for it.
const slack = 24 * time.Hour

// lost returns what is recorded of messages for another host that the server keeps no longer, and of which that
// host has said nothing. What it says later still counts.
func (o *Observer) lost(ctx context.Context, box agent.ID) (ops []store.Op, err error) {
	if box.Host() == "" {
		return nil, nil
	}
	list, err := o.DB.Unheard(ctx, box, store.At(time.Now().Add(-bus.ServerKeeps-slack)))
	for _, d := range list {
		ops = append(ops, store.UpsertDelivery{
			Message: d.Message, From: d.From, Target: box, State: store.Failed, Attempts: d.Attempts,
			Reason: fmt.Sprintf("the team's server keeps mail for %d days, and %s has not said that it has this", bus.ServerKeeps/(24*time.Hour), box.Host()),
		})
	}
	return ops, err
}

// unread reports whether files of the mailbox are not recorded yet.
func (b *box) unread() bool {
	for _, p := range b.places {
		if len(p.waiting) > 0 {
			return true
		}
	}
	return false
}
