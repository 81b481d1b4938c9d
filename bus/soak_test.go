package bus_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
)

var soakTakers = []agent.ID{agent.Clone(1), agent.Clone(2), agent.Clone(3), agent.Owner}

// soakBus has a clock that runs 2000 times as fast, so that the agents' answers
// don't meet the brake of 60 a minute.
func soakBus(home home.Dir, base int64) *bus.Bus {
	began := time.Unix(0, base)
	return bus.New(home, bus.Options{
		Keep: 365 * 24 * time.Hour,
		Now:  func() time.Time { return began.Add(2000 * time.Since(began)) },
	})
}

// soakBase is when the soak began, in one of its processes.
func soakBase() int64 {
	base, _ := strconv.ParseInt(os.Getenv("NETSKY_TEST_BASE"), 10, 64)
	return base
}

// soakWriter sends numbered messages for as long as it lives and writes down
// those that were acknowledged.
func soakWriter(ctx context.Context, home home.Dir) error {
	b := soakBus(home, soakBase())
	name := os.Getenv("NETSKY_TEST_NAME")
	acks, err := home.OpenAppend("state/acks-" + name)
	if err != nil {
		return err
	}
	seq, err := strconv.Atoi(os.Getenv("NETSKY_TEST_FROM"))
	if err != nil {
		return err
	}
	for ; ; seq++ {
		for { // not so far ahead that the end takes for ever
			if n, err := b.Count(soakTakers[seq%3], bus.Inbox); err != nil || n < 100 {
				break
			}
			<-time.After(5 * time.Millisecond)
		}
		e := message(agent.Owner, soakTakers[seq%3], "")
		e.ID = fmt.Sprintf("%s:%08d", name, seq)
		e.Text = text("message " + e.ID)
		if seq%5 == 0 { // and sometimes twice, as one does when in doubt
			if _, err := b.Send(ctx, e); err != nil {
				return err
			}
		}
		if _, err := b.Send(ctx, e); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(acks, e.ID); err != nil {
			return err
		}
	}
}

func soakTaker(ctx context.Context, home home.Dir) error {
	b := soakBus(home, soakBase())
	me, err := agent.Parse(os.Getenv("NETSKY_TEST_NAME"))
	if err != nil {
		return err
	}
	r, err := b.Receive(ctx, me, bus.ReceiveOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		d, err := r.Next(ctx)
		if err != nil {
			return err
		}
		if err := handle(ctx, b, me, d); err != nil {
			return err
		}
	}
}
