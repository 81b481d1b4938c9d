package link

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/link/team"
	"netsky/link/wire"
)

// turnBack refuses mail for hosts that are in the team no more, and tells who has sent what
// waits for them.
func turnBack(ctx context.Context, b *bus.Bus, t team.Team) error {
	hosts, err := b.Linked()
	for _, host := range hosts {
		if _, is := t.Host(host); !is {
			err = errors.Join(err, b.Unlink(host))
		}
	}
	ids, ierr := b.All()
	err = errors.Join(err, ierr)
	for _, id := range ids {
		if _, is := t.Host(id.Host()); !is && id.Host() != "" {
			err = errors.Join(err, empty(ctx, b, id))
		}
	}
	return err
}

// untaken tells the owner what hosts that are in the team no more had sent here and this host has not
// taken: it counts no more than their keys do.
func (s *session) untaken(ctx context.Context) error {
	hosts, err := s.Bus.Linked()
	for _, host := range hosts {
		if _, is := s.team.Host(host); is || ctx.Err() != nil {
			continue
		}
		c, cerr := s.js.Consumer(ctx, wire.MailStream(host), s.self.Name)
		if errors.Is(cerr, jetstream.ErrConsumerNotFound) || errors.Is(cerr, jetstream.ErrStreamNotFound) {
			continue
		}
		if cerr != nil {
			err = errors.Join(err, cerr)
			continue
		}
		info := c.CachedInfo()
		n := info.NumPending + uint64(info.NumAckPending)
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%s was removed from the team before this host had taken all of its mail: %d that it had sent here, reports among them, count no more.", host, n)
		_, _, serr := s.Bus.SendOnce(ctx, envelope.Envelope{
			ID: fmt.Sprintf("link-untaken-%s-%d-%d", host, info.Created.Unix(), info.AckFloor.Stream), From: agent.Infinity, To: agent.Owner,
			Kind: envelope.KindNotice, Via: "code", Text: text,
		})
		if !errors.Is(serr, bus.ErrUsed) {
			err = errors.Join(err, serr)
		}
	}
	return err
}

// empty tells who has sent what waits in a mailbox that it is not delivered.
func empty(ctx context.Context, b *bus.Bus, id agent.ID) error {
	waits := func() (n int, err error) {
		for _, p := range bus.Pending() {
			m, cerr := b.Count(id, p)
			n, err = n+m, errors.Join(err, cerr)
		}
		return n, err
	}
	if n, err := waits(); n == 0 || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	r, err := b.Receive(ctx, id, bus.ReceiveOptions{Carry: true})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		if n, err := waits(); n == 0 || err != nil {
			return err
		}
		d, err := r.Next(ctx)
		if err == nil {
			err = d.Poison(fmt.Sprintf("%s is in the team no more", id.Host()))
		}
		if err != nil {
			return err
		}
	}
}
