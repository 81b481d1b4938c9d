//go:build live

package bus_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

// mustRole runs a role in a process of its own and returns what it said.
func mustRole(tb testing.TB, home home.Dir, role string) string {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NETSKY_TEST_ROLE="+role, "NETSKY_HOME="+home.Root())
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s: %v: %s", role, err, out)
	}
	return string(out)
}

func TestRowsOfTheWorld(t *testing.T) {
	t.Parallel()
	t.Run("row 17 umask", row17Umask)
	// Row 18, kill -9 at each step, is TestFaultKillsEveryStep in the build with the
	// tag faults, and TestSoak in every build. Row 20, fsync, and the other half
	// of row 19 are TestFaultInFsync and TestFaultFailsEveryStep there.
	t.Run("row 19 no room", row19NoRoom)
	t.Run("row 21 deleted while running", row21DeletedWhileRunning)
	t.Run("row 22 no inotify", row22NoInotify)
	t.Run("row 22 events lost", row22EventsLost)
	t.Run("row 23 clock", row23Clock)
	t.Run("row 24 two holders", row24TwoHolders)
}

func row17Umask(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	mustRole(t, home, "umask")
	err := filepath.WalkDir(home.Path("channels"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return err
	})
	testworld.Must(t, err)
}

func row19NoRoom(t *testing.T) {
	t.Parallel()
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	mustRole(t, home, "full")
	testworld.Equal(t, mustWhole(t, b, a1, bus.Inbox), 1, "messages")
}

func row21DeletedWhileRunning(t *testing.T) {
	t.Parallel()
	for _, rel := range []string{"channels/agent/agent1/inbox", "channels/agent/agent1", "channels"} {
		t.Run(rel, func(t *testing.T) {
			t.Parallel()
			b, home := mustBus(t, bus.Options{}, agent.Root, a1)
			var said atomic.Int32
			r := mustReceive(t, b, a1, bus.ReceiveOptions{Report: func(string, error) { said.Add(1) }})
			mustSend(t, b, message(agent.Owner, a1, "before"))
			mustConfirm(t, mustNext(t, r))
			testworld.Must(t, os.RemoveAll(home.Path(rel)))
			testworld.Wait(t, "inbox made anew", func() bool { return b.Exists(a1) })
			mustSend(t, b, message(agent.Owner, a1, "after"))
			d := mustNext(t, r)
			if d.Envelope().Text != "after" {
				t.Errorf("%s: got %+v", rel, d.Envelope())
			}
			mustConfirm(t, d)
			if n := said.Load(); n == 0 || n > 20 {
				t.Errorf("%s: %d reports", rel, n)
			}
		})
	}
}

func row22NoInotify(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	b.NoInotify()
	var polling atomic.Bool
	r := mustReceive(t, b, a1, bus.ReceiveOptions{Report: func(what string, _ error) {
		polling.Store(strings.Contains(what, "polling"))
	}})
	testworld.Wait(t, "it says that it polls", polling.Load)
	for i := range 3 {
		mustSend(t, b, message(agent.Owner, a1, fmt.Sprint(i)))
		mustConfirm(t, mustNext(t, r))
	}
}

func row22EventsLost(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, a1)
	stop := b.StealEvents()
	defer stop()
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	for i := range 3 {
		mustSend(t, b, message(agent.Owner, a1, fmt.Sprint(i)))
		mustConfirm(t, mustNext(t, r))
	}
}

func row23Clock(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[time.Time]
	set := func(at time.Time) { now.Store(&at) }
	begin := time.Now()
	set(begin)
	b, _ := mustBus(t, bus.Options{Now: func() time.Time { return *now.Load() }}, agent.Root, a1)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	var want []string
	for i, at := range []time.Time{begin, begin.Add(-24 * time.Hour), begin.AddDate(10, 0, 0), begin.Add(-time.Hour), begin} {
		set(at)
		e := message(agent.Owner, a1, fmt.Sprint(i))
		if i == 1 {
			e.Expires = begin.AddDate(11, 0, 0) // past by none of the clocks: what expires is filed also while nobody asks
		}
		want = append(want, mustSend(t, b, e).ID)
	}
	for i, id := range want {
		d := mustNext(t, r)
		if d.Envelope().ID != id {
			t.Errorf("message %d is %q", i, d.Envelope().Text)
		}
		mustConfirm(t, d)
	}
	mustCount(t, b, a1, bus.Delivered, len(want))
}

func row24TwoHolders(t *testing.T) {
	t.Parallel()
	b, h := mustBus(t, bus.Options{}, agent.Root, a1)
	sent := mustSend(t, b, message(agent.Owner, a1, "hi"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NETSKY_TEST_ROLE=hold", "NETSKY_HOME="+h.Root())
	testworld.Must(t, cmd.Start())
	testworld.Wait(t, "claimed", func() bool { n, _ := b.Count(a1, bus.Claimed); return n == 1 })
	_, err := b.Receive(t.Context(), a1, bus.ReceiveOptions{})
	if !errors.Is(err, home.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("a second Receive = %v, want ErrLocked with the holder's pid", err)
	}
	testworld.ErrorIs(t, testworld.Err(b.Drain(t.Context(), a1, 0, nil)), home.ErrLocked, "Drain")
	testworld.Must(t, cmd.Process.Kill())
	cmd.Wait()
	d := mustNext(t, mustReceive(t, b, a1, bus.ReceiveOptions{}))
	if d.Envelope().ID != sent.ID {
		t.Errorf("got %+v, want what the dead holder had claimed", d.Envelope())
	}
	mustConfirm(t, d)
}
