package spawn

import (
	"cmp"
	"context"
	"slices"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/tmux"
)

// DownWithin is how long an agent may take to ack or to exit. A receiver acks within 45 s
// of the request, finished or not, so the wait is longer than that; nothing waits longer.
const DownWithin = 60 * time.Second

const (
	downPoll = 100 * time.Millisecond // for programs that exit; acks announce themselves
	mailPoll = time.Second            // for acks that did not
	filing   = 100 * time.Millisecond // after an ack
)

// settle waits for the outcome of each request and ends the agents in order of outcome,
// then of request. It sweeps at least once.
func (d *down) settle(ctx context.Context) {
	deadline := time.Now().Add(cmp.Or(d.o.AckWithin, DownWithin))
	open := d.targets
	var mail <-chan struct{}
	if d.acks != nil {
		w, err := d.l.Bus.Watch(ctx, bus.Spot{Mailbox: agent.Root, Place: bus.Inbox}, bus.Spot{Mailbox: agent.Root, Place: bus.Claimed})
		if err == nil {
			defer w.Close()
			mail = w.C
		}
	}
	poll := time.NewTicker(downPoll)
	defer poll.Stop()
	for looked := time.Now(); ; {
		open = d.sweep(ctx, open, time.Now().After(deadline))
		if len(open) == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-mail:
			looked = time.Now()
			d.acks.Look()
		case <-poll.C:
			if time.Since(looked) > mailPoll {
				looked = time.Now()
				d.acks.Look()
			}
		}
	}
}

// sweep checks each open target once, ends those with an outcome together, and returns the
// others. Once ctx has ended, those are left running.
func (d *down) sweep(ctx context.Context, open []*target, last bool) (rest []*target) {
	var done []*target
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx) // a half-ended agent is worse than none
	over := d.over(ctx, open)
	if (last || interrupted) && d.acks != nil {
		d.acks.Look()
	}
	for _, t := range open {
		switch {
		case t.req == "":
		case d.acked(t):
		case over[t]:
			// It may have acked just before it exited; the ack takes precedence.
			if d.acks.Look(); !d.acked(t) {
				d.say(t, DownClosed, nil)
			}
		case last:
			d.say(t, DownTimeout, nil)
		case interrupted:
			d.say(t, DownLeft, nil)
			d.left = append(d.left, t.id)
			continue
		default:
			rest = append(rest, t)
			continue
		}
		done = append(done, t)
	}
	d.filed(done)
	d.warn("", d.end(ctx, done))
	return rest
}

// acked reports whether the agent has acked, and reports how.
func (d *down) acked(t *target) bool {
	acked, unfinished := d.acks.Of(t.id, t.req)
	switch {
	case unfinished:
		d.say(t, DownUnfinished, nil)
	case acked:
		d.say(t, DownAcked, nil)
	}
	return acked
}

// filed gives those that have acked a moment to file the request, which they do after the
// ack: otherwise it would look unfinished.
func (d *down) filed(done []*target) {
	for end := time.Now().Add(filing); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if !slices.ContainsFunc(done, func(t *target) bool {
			n, err := d.l.Bus.Count(t.id, bus.Claimed)
			return (t.step == DownAcked || t.step == DownUnfinished) && err == nil && n > 0
		}) {
			return
		}
	}
}

// over returns those that were asked and whose program or pane is gone.
func (d *down) over(ctx context.Context, open []*target) map[*target]bool {
	list := make(map[*target]bool)
	for _, t := range open {
		k, err := d.l.Home.LoadKeeper(t.id)
		if t.req != "" && err == nil && k.Start == t.kin.start && (k.EndedMS != 0 || !k.Alive()) {
			list[t] = true
		}
	}
	if d.hidden || !slices.ContainsFunc(open, func(t *target) bool { return t.pane != nil && t.req != "" }) {
		return list
	}
	panes, err := d.l.Tmux.Panes(ctx)
	if err != nil {
		return list // not known to be gone
	}
	for _, t := range open {
		if t.pane != nil && !slices.ContainsFunc(panes, func(p tmux.Pane) bool { return p.ID == t.pane.ID && p.Server == t.pane.Server }) {
			list[t] = true
		}
	}
	return list
}
