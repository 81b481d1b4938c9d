package link

import (
	"context"
	"errors"
	"fmt"

	"netsky/agent"
	"netsky/bus"
	"netsky/link/team"
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
