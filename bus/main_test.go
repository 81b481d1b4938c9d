package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// TestMain lets the test binary stand in for the processes that the tests kill.
func TestMain(m *testing.M) {
	role := os.Getenv("NETSKY_TEST_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	armFault(os.Getenv("NETSKY_TEST_FAULT"))
	home, err := home.At(os.Getenv("NETSKY_HOME"))
	if err == nil {
		run, ok := roles[role]
		if !ok {
			err = errors.New("no such role: " + role)
		} else {
			err = run(context.Background(), home)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// roles are the processes that tests start and kill.
var roles = map[string]func(context.Context, home.Dir) error{
	"sender":    faultSender,
	"receiver":  faultReceiver,
	"batcher":   faultBatcher,
	"router":    faultRouter,
	"retracter": faultRetracter,
	"umask":     umaskRole,
	"full":      fullRole,
	"hold":      holdRole,
	"writer":    soakWriter,
	"taker":     soakTaker,
}

// handle does with a delivery what a runtime does: it answers, under the one ID
// that the answer can have, and then the effect is had, which is the witness's
// line itself; only then the delivery is confirmed.
func handle(ctx context.Context, b *bus.Bus, me agent.ID, d *bus.Delivery) error {
	e := d.Envelope()
	if e.Via == "code" { // the bus's own word to the owner
		return d.Confirm()
	}
	if !intact(e) {
		return fmt.Errorf("%s: not the text that was sent: %q", e.ID, e.Text)
	}
	if e.Kind == envelope.KindMessage {
		answer := envelope.Envelope{
			ID: envelope.AnswerID(me, e.ID, envelope.KindReply), From: me, To: e.From, Kind: envelope.KindReply,
			Text: text("answer to " + e.ID), InReplyTo: e.ID,
		}
		_, err := b.Send(ctx, answer)
		for errors.Is(err, bus.ErrBrake) { // the other side is behind
			<-time.After(5 * time.Millisecond)
			_, err = b.Send(ctx, answer)
		}
		if err != nil {
			return err
		}
	}
	if err := b.Witness(me, e.ID); err != nil {
		return err
	}
	return d.Confirm()
}

// text is a message's text with a proof that it is whole.
func text(what string) string {
	return what + "\n" + strings.Repeat("x", 1000) + "\n" + what
}

func intact(e envelope.Envelope) bool {
	what, _, _ := strings.Cut(e.Text, "\n")
	return e.Text == text(what)
}

// mustEffects reads what an agent's runtime has had, in order.
func mustEffects(tb testing.TB, h home.Dir, id agent.ID) (ids []string) {
	tb.Helper()
	tail := home.Events(h).TailAll(id) // which reads what stands behind half a line of one that was killed
	defer tail.Close()
	testworld.Must(tb, tail.Read(func(e agent.Event) {
		testworld.Equal(tb, e.Event, agent.EventSeen, "%s: an event that is no sighting: %+v", id, e)
		ids = append(ids, e.ID)
	}))
	return ids
}

// mustWhole checks that every envelope that a reader could see is a whole one,
// and returns how many there are.
func mustWhole(tb testing.TB, b *bus.Bus, id agent.ID, places ...bus.Place) (n int) {
	tb.Helper()
	for _, p := range places {
		list := testworld.Got(b.List(id, p, 0))(tb)
		for _, e := range list {
			testworld.Must(tb, e.Err, "%s: %s/%s", id, p, e.Name)
			n++
		}
	}
	return n
}

// mustOnce checks that no string stands twice in the list.
func mustOnce(tb testing.TB, what string, list []string) map[string]bool {
	tb.Helper()
	set := make(map[string]bool, len(list))
	for _, s := range list {
		if set[s] {
			tb.Fatalf("%s: %s twice", what, s)
		}
		set[s] = true
	}
	return set
}
