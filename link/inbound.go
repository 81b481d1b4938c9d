package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/link/team"
	"netsky/link/wire"
)

// againHeader is on what its sender has sent before.
const againHeader = "Netsky-Again"

// maxHeld is how many bytes of one host's mail brakes keep back in memory; all that it sends beyond that waits
// at the server. As many are on their way at once.
const maxHeld = 8 << 20

// An inbound puts the mail of one other host into the mailboxes here, in order.
type inbound struct {
	*session
	from  team.Host
	held  map[agent.ID][]jetstream.Msg // by recipient, behind one that a brake keeps back
	bytes int                          // of held
	told  map[string]bool              // refusals that were logged
	next  uint64                       // the number of the next delivery, if none is lost on its way
	about string
	ahead time.Duration // how far the server's clock is ahead of this host's
}

func newInbound(s *session, from team.Host) *inbound {
	return &inbound{session: s, from: from, held: make(map[agent.ID][]jetstream.Msg), told: make(map[string]bool), about: "mail from " + from.Name}
}

func (b *inbound) run(ctx context.Context) error { return b.repeat(ctx, b.about, b.consume) }

// pullTime is for how long the server gives mail to whoever has asked for it, perhaps in vain.
const pullTime = 20 * time.Second

// consume takes mail until something fails, or mail was lost on its way here: without an error
// then, as the server gives it again, behind what is newer.
func (b *inbound) consume(ctx context.Context) error {
	clear(b.held) // the server gives what is not acknowledged again
	b.bytes = 0
	c, err := b.js.Consumer(ctx, wire.MailStream(b.from.Name), b.self.Name)
	if err != nil {
		return err
	}
	it, err := c.Messages(jetstream.PullMaxMessagesWithBytesLimit(window, maxHeld), jetstream.PullExpiry(pullTime), jetstream.PullHeartbeat(pullTime/2))
	if err != nil {
		return err
	}
	defer it.Stop()
	msgs, failed := make(chan jetstream.Msg), make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for {
			m, err := it.Next(jetstream.NextContext(ctx))
			if err != nil {
				failed <- err
				return
			}
			select {
			case msgs <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	b.trouble(b.about, nil)
	if err := b.begin(ctx, c, msgs, failed); err != nil {
		return err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		again, next := tick.C, msgs
		if len(b.held) == 0 {
			again = nil // else the ticker would wake the process for nothing
		}
		if b.bytes > maxHeld {
			next = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case m := <-next:
			if meta, err := m.Metadata(); err == nil {
				if meta.Sequence.Consumer != b.next {
					return nil
				}
				b.next++
			}
			if err := b.take(ctx, m); err != nil {
				return err
			}
		case <-again:
			if err := b.again(ctx); err != nil {
				return err
			}
		}
	}
}

// begin takes first what the server had given to an earlier session that did not acknowledge
// it: it gives that again after a time only, and new mail before.
func (b *inbound) begin(ctx context.Context, c jetstream.Consumer, msgs <-chan jetstream.Msg, failed <-chan error) error {
	got := make(map[uint64]jetstream.Msg) // by sequence
	tick := time.NewTicker(lookEvery / 4)
	defer tick.Stop()
	for {
		info, err := c.Info(ctx)
		if err != nil {
			return err
		}
		b.ahead = info.TimeStamp.Sub(b.Bus.Now())
		if info.NumAckPending <= len(got) {
			b.next = info.Delivered.Consumer + 1
			break
		}
		for due := false; !due && len(got) < info.NumAckPending; { // a question for each would take long over a slow network
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-failed:
				return err
			case m := <-msgs:
				if meta, err := m.Metadata(); err == nil {
					got[meta.Sequence.Stream] = m
				}
			case <-tick.C:
				due = true
				for _, m := range got {
					_ = m.InProgress()
				}
			}
		}
	}
	list := make([]uint64, 0, len(got))
	for seq := range got {
		list = append(list, seq)
	}
	slices.Sort(list)
	for _, seq := range list {
		if err := b.take(ctx, got[seq]); err != nil {
			return err
		}
	}
	return nil
}

// take puts one message into its mailbox and acknowledges it. An error ends the session with
// the server: what was not acknowledged comes again, in order.
func (b *inbound) take(ctx context.Context, m jetstream.Msg) error {
	e, why := b.read(m)
	if errors.Is(why, wire.ErrForged) || why != nil && answered(why) {
		if err := b.current(ctx); err != nil {
			return err
		}
	}
	if !answered(why) {
		return b.refuse(m, why)
	}
	to := e.To.Local()
	if len(b.held[to]) == 0 {
		if err := b.arrive(ctx, m, e, why); !errors.Is(err, bus.ErrBrake) {
			return err
		}
	}
	b.held[to] = append(b.held[to], m)
	b.bytes += rawOf(m).Size()
	return nil
}

// current returns an error if the team is another by now. A host that was away hears that later than the mail
// of a host that has joined again meanwhile, with another key, or has another role; what it refused would be lost.
func (b *inbound) current(ctx context.Context) error {
	kv, err := b.js.KeyValue(ctx, wire.Team)
	if err != nil {
		return err
	}
	v, err := kv.Get(ctx, wire.TeamKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if t, _, err := team.Accept(b.Home, v.Value()); err == nil && t.Serial != b.team.Serial {
		return errChanged
	}
	return nil // what is no document of the team's says nothing
}

// again tries what a brake has kept back, and keeps the server from giving it again.
func (b *inbound) again(ctx context.Context) error {
	for to, list := range b.held {
		for len(list) > 0 {
			e, err := b.read(list[0])
			if answered(err) {
				err = b.arrive(ctx, list[0], e, err)
			}
			if errors.Is(err, bus.ErrBrake) {
				break
			}
			if err != nil {
				return err
			}
			b.bytes -= rawOf(list[0]).Size()
			list = list[1:]
		}
		b.held[to] = list
		if len(list) == 0 {
			delete(b.held, to)
		}
		for _, m := range list {
			_ = m.InProgress()
		}
	}
	return nil
}

// arrive puts a message into its mailbox, or tells its sender why not. The error is a brake's, or
// the system's.
func (b *inbound) arrive(ctx context.Context, m jetstream.Msg, e envelope.Envelope, why error) (err error) {
	if why != nil {
		err = b.Bus.Refuse(ctx, b.from.Name, e, why)
	} else {
		err = b.accept(ctx, m, e)
	}
	if refused, ok := errors.AsType[bus.RefusedError](err); ok {
		return b.refuse(m, refused)
	}
	if err != nil {
		return err
	}
	if !bus.IsReport(e) {
		b.host(b.from.Name, func(h *HostReport) { h.Received, h.LastIn = h.Received+1, now() })
	}
	return m.Ack()
}

// accept puts a message and its files into its mailbox. Of one that is refused no file is kept.
func (b *inbound) accept(ctx context.Context, m jetstream.Msg, e envelope.Envelope) (err error) {
	var made []string
	if b.Bus.Exists(e.To.Local()) {
		if e, made, err = b.get(ctx, e); err != nil {
			return err
		}
	}
	meta, merr := m.Metadata()
	if merr == nil {
		e = undated(e, b.Bus.Now(), meta.Timestamp.Add(-b.ahead))
	}
	again := merr != nil || meta.NumDelivered > 1 || m.Headers().Get(againHeader) != ""
	err = b.Bus.Arrive(ctx, b.from.Name, e, again)
	if _, refused := errors.AsType[bus.RefusedError](err); refused {
		for _, rel := range made {
			err = errors.Join(err, b.Home.Remove(rel))
		}
	}
	return err
}

// refuse drops a message that can't be accepted, and says so in the log.
func (b *inbound) refuse(m jetstream.Msg, why error) error {
	if newer, ok := errors.AsType[wire.NewerError](why); ok {
		return newer // it stays at the server until this host has been updated
	}
	if text := why.Error(); !b.told[text] && len(b.told) < 100 {
		b.told[text] = true
		b.Log.Warn("link", "refused mail from", b.from.Name, "why", text)
	}
	return m.Term()
}

// An unwelcome message is one that its sender may not send, which is told.
type unwelcome struct{ error }

// answered reports whether a message is for a mailbox here, or its sender is told why not.
func answered(err error) bool {
	_, is := errors.AsType[unwelcome](err)
	return is || err == nil
}

// rawOf returns what the server has of a message.
func rawOf(m jetstream.Msg) *nats.Msg {
	return &nats.Msg{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()}
}

// read returns the envelope that a message holds, with its recipient's address there.
func (b *inbound) read(m jetstream.Msg) (e envelope.Envelope, err error) {
	raw := rawOf(m)
	if err := wire.Verify(b.from.Key, raw); err != nil {
		return e, err
	}
	if want := wire.MailSubject(b.from.Name, b.self.Name); raw.Subject != want {
		return e, fmt.Errorf("its subject is %.100q", raw.Subject)
	}
	if e, err = envelope.Parse(raw.Data); err == nil {
		err = e.Validate()
	}
	switch {
	case err != nil:
		return e, err
	case e.From.Host() != "":
		return e, fmt.Errorf("it is from %s", e.From)
	case e.To.Host() != b.self.Name:
		return e, fmt.Errorf("it is to %s", cmp.Or(string(e.To), "nobody"))
	case e.From == agent.Owner && b.from.Role != team.Owner:
		return e, unwelcome{fmt.Errorf("%s is a worker, so nobody there speaks for the owner; its agents can be asked to write", b.from.Name)}
	case e.ID == "":
		return e, errors.New("it has no id")
	}
	return e, nil
}
