//go:build live

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/store"
)

// The process that observes is killed at random moments while mail flows. In
// the end the records say what the directories say.
func TestKilled(t *testing.T) {
	t.Parallel()
	boxes := []agent.ID{"agent0", "agent1", "agent2", "owner"}
	r := newRig(t, boxes...)
	self := testworld.Got(os.Executable())(r)
	ctx, stop := context.WithCancel(t.Context())
	traffic := r.traffic(ctx, boxes)
	for range 12 {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "OBSERVE_TEST_HOME="+r.home.Root())
		cmd.Stderr = os.Stderr
		testworld.Must(r, cmd.Start())
		<-time.After(time.Duration(20+rand.IntN(130)) * time.Millisecond)
		testworld.Must(r, cmd.Process.Kill())
		cmd.Wait()
	}
	stop()
	for range boxes {
		testworld.Must(r, <-traffic)
	}
	testworld.Must(r, r.db.Check(t.Context()))
	r.run()
	testworld.Wait(r, "the records equal the directories", func() bool { return r.differ(boxes) == "" })
}

// traffic drops mail into each mailbox and takes it as models would: most is
// confirmed, some poisoned, some answered, and what is in hand at the end stays.
func (r *rig) traffic(ctx context.Context, boxes []agent.ID) <-chan error {
	done := make(chan error, len(boxes))
	for _, id := range boxes {
		go func() {
			rec, err := r.bus.Receive(ctx, id, bus.ReceiveOptions{})
			if err != nil {
				done <- err
				return
			}
			defer rec.Close()
			for i := 0; ; i++ {
				name := fmt.Sprintf("%s-%04d", id, i)
				r.drop(id, bus.Inbox, name+".json", newEnvelope(name, "owner", ""))
				if i%3 == 0 {
					continue
				}
				d, err := rec.Next(ctx)
				switch {
				case errors.Is(err, context.Canceled), errors.Is(err, bus.ErrClosed):
					done <- nil
					return
				case err == nil && i%10 == 1:
					err = d.Poison("a test")
				case err == nil && i%10 == 2:
					_, err = r.bus.Send(ctx, envelope.Envelope{From: "agent0", To: boxes[i%len(boxes)], Kind: envelope.KindReply, InReplyTo: name, Text: "x"})
					if errors.Is(err, context.Canceled) || errors.Is(err, bus.ErrBrake) {
						err = nil
					}
					if err == nil {
						err = d.Confirm()
					}
				case err == nil:
					err = d.Confirm()
				}
				if err != nil && !errors.Is(err, bus.ErrClosed) {
					done <- err
					return
				}
			}
		}()
	}
	return done
}

// differ says where records and directories disagree.
func (r *rig) differ(boxes []agent.ID) string {
	r.Helper()
	want := map[string]store.DeliveryState{}
	for _, id := range boxes {
		for p, state := range map[bus.Place]store.DeliveryState{bus.Inbox: store.Queued, bus.Claimed: store.Claimed,
			bus.Delivered: store.Delivered, bus.Poison: store.Poisoned} {
			entries := testworld.Got(r.bus.List(id, p, 0))(r)
			for _, e := range entries {
				want[e.Envelope.ID+" "+string(id)] = state
			}
		}
	}
	got := map[string]store.DeliveryState{}
	f := store.DeliveryFilter{Page: store.Page{Limit: 1000}}
	for {
		l := testworld.Got(r.db.Deliveries(r.Context(), f))(r)
		for _, d := range l.Items {
			got[d.Message+" "+string(d.Target)] = d.Filed
		}
		if f.Cursor = l.Cursor; f.Cursor == "" {
			break
		}
	}
	var out strings.Builder
	for k, v := range want {
		if got[k] != v {
			fmt.Fprintf(&out, "%s: on record %q, lies in %s\n", k, got[k], v)
		}
	}
	for k, v := range got {
		if want[k] == "" {
			fmt.Fprintf(&out, "%s: on record %s, lies nowhere\n", k, v)
		}
	}
	return out.String()
}
