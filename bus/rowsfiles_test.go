package bus_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

func box(h home.Dir, p bus.Place, name string) string {
	return h.Path(home.Mailbox(a1), string(p), name)
}

func TestRowsOfDirectories(t *testing.T) {
	t.Parallel()
	t.Run("row 11 links on the way", row11LinksOnTheWay)
	t.Run("row 11 swapped in a loop", row11SwappedInALoop)
}

func row11LinksOnTheWay(t *testing.T) {
	for _, rel := range []string{"channels", "channels/agent", "channels/agent/agent1", "channels/agent/agent1/inbox"} {
		b, h := mustBus(t, bus.Options{}, agent.Root, a1)
		outside := testworld.FastHome(t).Root()
		mustSend(t, b, message(agent.Owner, a1, "while all is well")) // what is kept open is no way out either
		testworld.Must(t, os.Rename(h.Path(rel), filepath.Join(outside, "moved")))
		testworld.Must(t, os.Symlink(filepath.Join(outside, "moved"), h.Path(rel)))
		before := mustTree(t, outside)
		testworld.ErrorIs(t, testworld.Err(b.Send(t.Context(), message(agent.Owner, a1, "hi"))), home.ErrLink, "%s: Send", rel)
		testworld.ErrorIs(t, testworld.Err(b.Receive(t.Context(), a1, bus.ReceiveOptions{})), home.ErrLink, "%s: Receive", rel)
		testworld.ErrorIs(t, b.Make(a1), home.ErrLink, "%s: Make", rel)
		b.Route(t.Context())
		testworld.Equal(t, mustTree(t, outside), before, "%s: written outside", rel)
	}
}

func row11SwappedInALoop(t *testing.T) {
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	outside := testworld.FastHome(t).Root()
	testworld.Must(t, os.Mkdir(filepath.Join(outside, "inbox"), 0o700))
	bait := filepath.Join(outside, "inbox", "bait.json")
	testworld.Must(t, os.WriteFile(bait, []byte(handmade), 0o600))
	before := mustTree(t, outside)
	inbox, aside := box(home, bus.Inbox, ""), home.Path("aside")
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	wg.Go(func() { // the directory, a link out of the home, the directory, …
		for ctx.Err() == nil {
			os.Rename(inbox, aside)
			os.Symlink(filepath.Join(outside, "inbox"), inbox)
			os.Remove(inbox)
			os.Rename(aside, inbox)
		}
	})
	acked := 0
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := b.Send(ctx, message(agent.Owner, a1, "hi")); err == nil {
				acked++
			}
		}
	})
	got := 0
	for {
		d, err := r.Next(ctx)
		if err != nil {
			break
		}
		if d.Envelope().From != agent.Owner {
			t.Fatalf("read from outside: %+v", d.Envelope())
		}
		mustConfirm(t, d)
		got++
	}
	wg.Wait()
	testworld.Equal(t, mustTree(t, outside), before, "written outside")
	if acked == 0 {
		t.Error("not one send got through")
	}
}
