package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
)

// The processes that the fault tests kill, or fail, at every step.

const faultMessages = 3

func faultID(i int) string { return fmt.Sprintf("msg-%d", i) }

// faultEnvelope is the i-th message, from an agent, so that brakes are passed.
func faultEnvelope(i int) envelope.Envelope {
	e := message(agent.Clone(2), agent.Clone(1), text("message "+faultID(i)))
	e.ID = faultID(i)
	return e
}

// faultSender sends the messages and says of each that it is acknowledged.
func faultSender(ctx context.Context, home home.Dir) error {
	b := bus.New(home, bus.Options{})
	for i := range faultMessages {
		if _, err := b.Send(ctx, faultEnvelope(i)); err != nil {
			return err
		}
		if os.Getenv("NETSKY_TEST_ROLE") != "" {
			fmt.Println("acked", faultID(i))
		}
	}
	return nil
}

// faultReceiver obeys the shutdown that it finds, and then takes what there is,
// as the next start, until the mailbox is empty.
func faultReceiver(ctx context.Context, home home.Dir) error {
	return faultTaker(ctx, home, func(ctx context.Context, r *bus.Receiver) ([]*bus.Delivery, error) {
		d, err := r.Next(ctx)
		return []*bus.Delivery{d}, err
	})
}

// faultBatcher is faultReceiver with two at a time.
func faultBatcher(ctx context.Context, home home.Dir) error {
	return faultTaker(ctx, home, func(ctx context.Context, r *bus.Receiver) ([]*bus.Delivery, error) {
		return r.Batch(ctx, 3, 2500)
	})
}

func faultTaker(ctx context.Context, home home.Dir, take func(context.Context, *bus.Receiver) ([]*bus.Delivery, error)) error {
	b := bus.New(home, bus.Options{})
	r, err := receiveSoon(ctx, b, "start")
	if err != nil {
		return err
	}
	defer func() { r.Close() }()
	for {
		// Idle means nothing left in the mailbox: time enough for the receiver.
		if n, err := emptiness(b); err != nil || n == 0 {
			return err
		}
		r.Prod()
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		list, err := take(ctx, r)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if errors.Is(err, bus.ErrShutdown) {
			r.Close()
			again, err := receiveSoon(context.WithoutCancel(ctx), b, "next")
			if err != nil {
				return err
			}
			r = again
			continue
		}
		if err != nil {
			return err
		}
		for _, d := range list {
			if err := handle(context.Background(), b, agent.Clone(1), d); err != nil {
				return err
			}
		}
	}
}

// receiveSoon is Receive. A process that is just being forked by another test
// holds our locks, too, until it is another program.
func receiveSoon(ctx context.Context, b *bus.Bus, start string) (*bus.Receiver, error) {
	for tries := 0; ; tries++ {
		r, err := b.Receive(ctx, agent.Clone(1), bus.ReceiveOptions{Start: start})
		if !errors.Is(err, home.ErrLocked) || tries > 1000 {
			return r, err
		}
		<-time.After(time.Millisecond)
	}
}

// emptiness counts what still waits for the receiver.
func emptiness(b *bus.Bus) (int, error) {
	in, err := b.Count(agent.Clone(1), bus.Inbox)
	if err != nil {
		return 0, err
	}
	claimed, err := b.Count(agent.Clone(1), bus.Claimed)
	return in + claimed, err
}

// faultRetracter takes back what was sent.
func faultRetracter(ctx context.Context, home home.Dir) error {
	if os.Getenv("NETSKY_TEST_ROLE") != "" {
		fmt.Println("begun")
	}
	_, err := bus.New(home, bus.Options{}).Retract(ctx, agent.Clone(1), func(envelope.Envelope) bool { return true })
	return err
}

func faultRouter(ctx context.Context, home home.Dir) error {
	return bus.New(home, bus.Options{}).Route(ctx)
}

// prepareReceiver fills a mailbox with all that a receiver may meet.
func prepareReceiver(b *bus.Bus, h home.Dir) error {
	ctx := context.Background()
	twice := faultEnvelope(0)
	expired := faultEnvelope(8)
	expired.Expires = time.Now().Add(-time.Minute)
	cancel := faultEnvelope(9)
	cancel.Kind = envelope.KindCancel
	shutdown := faultEnvelope(10)
	shutdown.From, shutdown.Kind, shutdown.Start = agent.Owner, envelope.KindShutdown, "start"
	for _, e := range []envelope.Envelope{faultEnvelope(0), faultEnvelope(1), twice, expired, cancel, faultEnvelope(2), shutdown} {
		if _, err := b.Send(ctx, e); err != nil {
			return err
		}
	}
	// What a dead holder had claimed, and what was never an envelope.
	left := `{"id":"left","from":"agent2","text":` + quoted(text("left")) + `,"ts":"2026-11-20T12:00:00Z"}`
	box := home.Mailbox(agent.Clone(1))
	if err := os.WriteFile(h.Path(box, "claimed", "left.json"), []byte(left), 0o600); err != nil {
		return err
	}
	bad := h.Path(box, "inbox", "bad.json")
	if err := os.WriteFile(bad, []byte("not JSON"), 0o600); err != nil {
		return err
	}
	old := time.Now().Add(-time.Hour)
	return os.Chtimes(bad, old, old)
}

// prepareRouter fills an outbox.
func prepareRouter(h home.Dir) error {
	out := h.Path(home.Mailbox(agent.Clone(1)), "outbox")
	old := time.Now().Add(-time.Hour)
	for i, e := range []string{
		`{"to":"agent0","text":` + quoted(text("routed 0")) + `}`,
		`{"from":"owner","to":"agent0","text":"forged"}`,
		`{"id":"mine","to":"agent0","text":` + quoted(text("routed 2")) + `,"ts":"2026-11-20T12:00:00Z"}`,
		`{"to":"agent77","text":"to nobody"}`,
	} {
		file := fmt.Sprintf("%s/%d.json", out, i)
		if err := os.WriteFile(file, []byte(e), 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(file, old, old.Add(time.Duration(i)*time.Second)); err != nil {
			return err
		}
	}
	return nil
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
