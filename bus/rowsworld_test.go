package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
)

// umaskRole works under two umasks, one that takes nothing and one that takes all.
func umaskRole(ctx context.Context, home home.Dir) error {
	for i, mask := range []int{0, 0o777} {
		unix.Umask(mask)
		b := bus.New(home, bus.Options{})
		id := agent.Clone(i + 1)
		if err := b.Make(id); err != nil {
			return err
		}
		if _, err := b.Send(ctx, message(agent.Root, id, "hi")); err != nil {
			return err
		}
		if _, err := b.Drain(ctx, id, 0, func(envelope.Envelope) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// fullRole sends where no file may grow beyond some bytes, and then without
// that limit.
func fullRole(ctx context.Context, home home.Dir) error {
	signal.Ignore(syscall.SIGXFSZ)
	b := bus.New(home, bus.Options{})
	limit := unix.Rlimit{Cur: 100, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if _, err := b.Send(ctx, message(agent.Owner, a1, text("too much"))); !errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("Send = %v, want EFBIG", err)
	}
	list, err := os.ReadDir(box(home, bus.Inbox, ""))
	if err != nil || len(list) != 0 {
		return fmt.Errorf("left in the inbox: %v, %v", list, err)
	}
	limit.Cur = unix.RLIM_INFINITY
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	_, err = b.Send(ctx, message(agent.Owner, a1, text("enough")))
	return err
}

// holdRole takes a mailbox and claims what there is, for ever.
func holdRole(ctx context.Context, home home.Dir) error {
	r, err := bus.New(home, bus.Options{}).Receive(ctx, a1, bus.ReceiveOptions{})
	if err != nil {
		return err
	}
	for {
		if _, err := r.Next(ctx); err != nil {
			return err
		}
		fmt.Println("claimed")
	}
}
