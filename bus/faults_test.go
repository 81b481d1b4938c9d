//go:build faults

package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
	"netsky/internal/testworld"
)

// armFault makes this process kill itself at its k-th step.
func armFault(k string) {
	n, err := strconv.ParseInt(k, 10, 64)
	if err != nil {
		return
	}
	var at atomic.Int64
	mailbox.SetFault(func(string) error {
		if at.Add(1) == n {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // not one call more
		}
		return nil
	})
}

// A trial is one of the processes that the bus consists of.
type trial struct {
	role    string
	prepare func(tb testing.TB, b *bus.Bus, home home.Dir)
	run     func(context.Context, home.Dir) error
	// check lets the world settle and looks at it. out is what the process said.
	check func(tb testing.TB, b *bus.Bus, home home.Dir, out string) (checks int)
}

var trials = []trial{
	{"sender", func(testing.TB, *bus.Bus, home.Dir) {}, faultSender, checkSender},
	{"receiver", func(tb testing.TB, b *bus.Bus, home home.Dir) {
		testworld.Must(tb, prepareReceiver(b, home))
	}, faultReceiver, checkReceiver},
	{"batcher", func(tb testing.TB, b *bus.Bus, home home.Dir) {
		testworld.Must(tb, prepareReceiver(b, home))
	}, faultBatcher, checkReceiver},
	{"router", func(tb testing.TB, _ *bus.Bus, home home.Dir) {
		testworld.Must(tb, prepareRouter(home))
	}, faultRouter, checkRouter},
	{"retracter", func(tb testing.TB, b *bus.Bus, _ home.Dir) {
		for i := range faultMessages {
			testworld.Got(b.Send(tb.Context(), faultEnvelope(i)))(tb)
		}
	}, faultRetracter, checkRetracter},
}

func mustTrial(tb testing.TB, tr trial) (*bus.Bus, home.Dir) {
	b, home := mustBus(tb, bus.Options{}, agent.Root, agent.Clone(1), agent.Clone(2), agent.Owner)
	tr.prepare(tb, b, home)
	return b, home
}

// TestFaultKillsEveryStep, row 18: each process is killed before its k-th system
// call, for every k until one lives to its end.
func TestFaultKillsEveryStep(t *testing.T) {
	t.Parallel()
	for _, tr := range trials {
		t.Run("row 18 "+tr.role, func(t *testing.T) {
			t.Parallel()
			const together = 4 // processes at a time
			steps, checks := 0, 0
			for k := 1; steps == 0; k += together {
				var wg sync.WaitGroup
				var lived [together]bool
				var held [together]int
				for i := range together {
					wg.Go(func() { lived[i], held[i] = killAt(t, tr, k+i) })
				}
				wg.Wait()
				for i := range together {
					checks += held[i]
					if lived[i] && steps == 0 {
						steps = k + i - 1
					}
				}
				if t.Failed() {
					return
				}
			}
			if steps < 10 {
				t.Errorf("only %d steps: the seam is not where it should be", steps)
			}
			fmt.Printf("faults: %s killed at each of %d steps, %d checks held\n", tr.role, steps, checks)
		})
	}
}

// killAt runs one process that dies at its k-th step, if it takes as many, and
// checks what it leaves.
func killAt(t *testing.T, tr trial, k int) (lived bool, checks int) {
	b, home := mustTrial(t, tr)
	defer os.RemoveAll(filepath.Dir(home.Root()))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NETSKY_TEST_ROLE="+tr.role, "NETSKY_TEST_FAULT="+strconv.Itoa(k), "NETSKY_HOME="+home.Root())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errs.Len() > 0 {
		t.Errorf("killed at step %d: %s", k, errs.String())
		return false, 0
	}
	checks = tr.check(t, b, home, out.String())
	if t.Failed() {
		t.Errorf("killed at step %d", k)
	}
	return err == nil, checks
}

// TestFaultFailsEveryStep, rows 19 and 20: the k-th system call fails, for every k,
// once or (a disk that is full and then is not) with all writing after it.
func TestFaultFailsEveryStep(t *testing.T) {
	t.Parallel()
	for _, mode := range []failure{{"ENOSPC", unix.ENOSPC, false}, {"EIO", unix.EIO, false}, {"a full disk", unix.ENOSPC, true}} {
		for _, tr := range trials {
			t.Run(tr.role+" with "+mode.name, func(t *testing.T) {
				t.Parallel()
				apart(t, func() { failEveryStep(t, tr, mode) })
			})
		}
	}
}

// A failure is how a system call fails.
type failure struct {
	name    string
	err     error
	lasting bool
}

// apart runs a test in a process of its own: a fault is its whole process's.
func apart(t *testing.T, test func()) {
	const here = "NETSKY_TEST_APART"
	if os.Getenv(here) == t.Name() {
		test()
		return
	}
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", pattern)
	cmd.Env = append(os.Environ(), here+"="+t.Name())
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "faults: ") {
			fmt.Print(line)
		}
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" (") {
		t.Errorf("%v\n%s", err, out)
	}
}

func failEveryStep(t *testing.T, tr trial, mode failure) {
	steps, checks := 0, 0
	for k := int64(1); ; k++ {
		b, home := mustTrial(t, tr)
		var at atomic.Int64
		mailbox.SetFault(func(op string) error {
			n := at.Add(1)
			if n == k || mode.lasting && n > k && n < k+40 && writes(op) {
				return mode.err
			}
			return nil
		})
		err := untilDone(t, tr, home)
		mailbox.SetFault(nil)
		testworld.Must(t, err, "%s, %s at step %d", tr.role, mode.name, k)
		checks += tr.check(t, b, home, "")
		if t.Failed() {
			t.Fatalf("%s, %s at step %d", tr.role, mode.name, k)
		}
		os.RemoveAll(filepath.Dir(home.Root()))
		if at.Load() < k {
			steps = int(k - 1)
			break
		}
	}
	fmt.Printf("faults: %s with %s at each of %d steps, %d checks held\n", tr.role, mode.name, steps, checks)
}

// writes reports whether a step needs room on the disk.
func writes(op string) bool {
	switch op {
	case "write", "pwrite", "fsync", "link", "mkdir":
		return true
	}
	return false
}

// untilDone runs the process again for as long as an error ends it, as whoever
// started it would.
func untilDone(t *testing.T, tr trial, home home.Dir) (err error) {
	for range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err = tr.run(ctx, home)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

func checkSender(tb testing.TB, b *bus.Bus, home home.Dir, out string) (checks int) {
	checks += mustWhole(tb, b, agent.Clone(1), bus.Inbox)
	acked := strings.Count(out, "acked ")
	// In doubt, everything is sent again under the same IDs.
	testworld.Must(tb, faultSender(tb.Context(), home))
	got := mustTakeAll(tb, b, agent.Clone(1))
	mustOnce(tb, "delivered", got)
	if len(got) != faultMessages {
		tb.Errorf("%d of %d messages delivered, %d had been acknowledged: %v", len(got), faultMessages, acked, got)
	}
	for i, id := range got {
		testworld.Equal(tb, id, faultID(i), "message %d", i)
	}
	return checks + len(got)
}

// mustTakeAll receives whatever there is.
func mustTakeAll(tb testing.TB, b *bus.Bus, id agent.ID) (ids []string) {
	tb.Helper()
	testworld.Wait(tb, "the lock", func() bool { // see receiveSoon
		_, err := b.Drain(tb.Context(), id, 0, func(e envelope.Envelope) error {
			if e.Via != "code" && !intact(e) {
				tb.Errorf("%s: not the text that was sent: %q", e.ID, e.Text)
			}
			ids = append(ids, e.ID)
			return nil
		})
		if err != nil && !errors.Is(err, home.ErrLocked) {
			tb.Fatal(err)
		}
		return err == nil
	})
	return ids
}

func checkReceiver(tb testing.TB, b *bus.Bus, home home.Dir, _ string) (checks int) {
	me := agent.Clone(1)
	testworld.Must(tb, faultReceiver(tb.Context(), home))
	effects := mustOnce(tb, "effects", mustEffects(tb, home, me))
	for _, id := range []string{"left", faultID(0), faultID(1), faultID(2)} {
		if !effects[id] {
			tb.Errorf("%s had no effect", id)
		}
	}
	testworld.Equal(tb, len(effects), 4, "effects: %v", effects)
	mustCount(tb, b, me, bus.Claimed, 0)
	mustCount(tb, b, me, bus.Delivered, 8) // with the one sent twice, the expired, the control mail
	mustCount(tb, b, me, bus.Poison, 1)
	checks += mustWhole(tb, b, me, bus.Delivered)
	// Four answers and the error about the expired one, each once.
	answers := mustOnce(tb, "answers", mustTakeAll(tb, b, agent.Clone(2)))
	testworld.Equal(tb, len(answers), 5, "answers: %v", answers)
	// The shutdown was acked, at most once to those who look at IDs. Another
	// process had another start, so none is fine too.
	acks := mustWhole(tb, b, agent.Root, bus.Inbox)
	mustTakeAll(tb, b, agent.Root)
	testworld.Equal(tb, testworld.Got(b.Count(agent.Root, bus.Delivered))(tb), acks, "acks delivered of")
	return checks + len(effects) + len(answers) + acks
}

func checkRouter(tb testing.TB, b *bus.Bus, h home.Dir, _ string) (checks int) {
	checks += mustWhole(tb, b, agent.Root, bus.Inbox)
	testworld.Wait(tb, "the lock", func() bool {
		err := faultRouter(tb.Context(), h)
		if err != nil && !errors.Is(err, home.ErrLocked) {
			tb.Fatal(err)
		}
		return err == nil
	})
	mustCount(tb, b, agent.Clone(1), bus.Outbox, 0)
	mustCount(tb, b, agent.Clone(1), bus.Sent, 2)
	mustCount(tb, b, agent.Clone(1), bus.Poison, 2)
	got := mustTakeAll(tb, b, agent.Root)
	testworld.Equal(tb, len(mustOnce(tb, "routed", got)), 2, "routed: %v", got)
	return checks + len(got)
}

// checkRetracter looks for mail that was taken back and does not say so: it would count as
// delivered. A process that was not killed has reported that it could not say so.
func checkRetracter(tb testing.TB, b *bus.Bus, h home.Dir, out string) (checks int) {
	delivered := testworld.Got(b.List(agent.Clone(1), bus.Delivered, 0))(tb)
	for _, e := range delivered {
		if out != "" && e.Reason != mailbox.Retracted {
			tb.Errorf("%s is in delivered/ without its reason: %+v", e.Name, e)
		}
	}
	testworld.Must(tb, faultRetracter(tb.Context(), h))
	mustCount(tb, b, agent.Clone(1), bus.Inbox, 0)
	mustCount(tb, b, agent.Clone(1), bus.Delivered, faultMessages)
	return len(delivered)
}

// TestFaultInFsync, row 20: what could not be fsynced is not acknowledged and never
// fsynced a second time; a fresh file is.
func TestFaultInFsync(t *testing.T) {
	t.Parallel()
	apart(t, func() { faultInFsync(t) })
}

func faultInFsync(t *testing.T) {
	b, h := mustBus(t, bus.Options{}, agent.Root, agent.Clone(1))
	var mu sync.Mutex
	var ops []string
	fail := 1
	mailbox.SetFault(func(op string) error {
		mu.Lock()
		defer mu.Unlock()
		ops = append(ops, op)
		if op == "fsync" && fail > 0 {
			fail--
			return unix.EIO
		}
		return nil
	})
	defer mailbox.SetFault(nil)
	testworld.Must(t, testworld.Err(b.Send(t.Context(), message(agent.Owner, agent.Clone(1), "hi"))), "Send with one bad fsync")
	got := strings.Join(ops, " ")
	if want := "write fsync unlink open fstat write fsync link unlink fsync"; !strings.Contains(got, want) &&
		!strings.Contains(got, strings.Replace(want, "fstat ", "", 1)) {
		t.Errorf("steps: %s, want %s", got, want)
	}
	fail = 2
	if _, err := b.Send(t.Context(), message(agent.Owner, agent.Clone(1), "hi")); !errors.Is(err, unix.EIO) {
		t.Fatalf("Send with two bad fsyncs = %v, want EIO", err)
	}
	mustCount(t, b, agent.Clone(1), bus.Inbox, 1)
	// Where the name cannot be made to last, the message is taken back.
	n := 0
	mailbox.SetFault(func(op string) error {
		if op == "fsync" {
			if n++; n == 2 {
				return unix.EIO
			}
		}
		return nil
	})
	if _, err := b.Send(t.Context(), message(agent.Owner, agent.Clone(1), "hi")); !errors.Is(err, unix.EIO) {
		t.Fatalf("Send with a bad fsync of the directory = %v, want EIO", err)
	}
	mustCount(t, b, agent.Clone(1), bus.Inbox, 1)
	// The same for what the receiver remembers.
	mailbox.SetFault(nil)
	r := mustReceive(t, b, agent.Clone(1), bus.ReceiveOptions{})
	d := mustNext(t, r)
	ops, fail = nil, 1
	mailbox.SetFault(func(op string) error {
		mu.Lock() // the receiver's own goroutine may be listing the inbox
		defer mu.Unlock()
		if op == "rename" || op == "fsync" {
			ops = append(ops, op)
		}
		if op == "fsync" && fail > 0 {
			fail--
			return unix.EIO
		}
		return nil
	})
	mustConfirm(t, d)
	mu.Lock()
	defer mu.Unlock()
	testworld.Contains(t, strings.Join(ops, " "), "rename fsync", "a fresh file renamed over seen")
	seen, err := os.ReadFile(h.Path(home.Mailbox(agent.Clone(1)), "seen"))
	if err != nil || bytes.Count(seen, []byte("\n")) != 1 {
		t.Errorf("seen: %q, %v, want one line", seen, err)
	}
}

// TestFaultNameTaken: a name that is taken is never written over; another is tried, eight at
// most.
func TestFaultNameTaken(t *testing.T) {
	t.Parallel()
	apart(t, func() { faultNameTaken(t) })
}

func faultNameTaken(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(1))
	taken := 0
	mailbox.SetFault(func(op string) error {
		if op == "link" && taken > 0 {
			taken--
			return unix.EEXIST
		}
		return nil
	})
	defer mailbox.SetFault(nil)
	taken = 7
	if _, err := b.Send(t.Context(), message(agent.Owner, agent.Clone(1), "hi")); err != nil || taken != 0 {
		t.Errorf("Send with seven names taken = %v, %d not tried", err, taken)
	}
	mustCount(t, b, agent.Clone(1), bus.Inbox, 1)
	taken = 8
	if _, err := b.Send(t.Context(), message(agent.Owner, agent.Clone(1), "hi")); !errors.Is(err, unix.EEXIST) || taken != 0 {
		t.Errorf("Send with eight names taken = %v, %d not tried", err, taken)
	}
	mustCount(t, b, agent.Clone(1), bus.Inbox, 1)
}

// TestFaultFullDisk, row 19: a receiver whose disk is full for a while hands nothing over
// twice and loses nothing once there is room.
func TestFaultFullDisk(t *testing.T) {
	t.Parallel()
	apart(t, func() { faultFullDisk(t) })
}

func faultFullDisk(t *testing.T) {
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(1))
	r := mustReceive(t, b, agent.Clone(1), bus.ReceiveOptions{})
	mustSend(t, b, message(agent.Owner, agent.Clone(1), "one"))
	d := mustNext(t, r)
	var full atomic.Bool
	full.Store(true)
	mailbox.SetFault(func(op string) error {
		if full.Load() && writes(op) {
			return unix.ENOSPC
		}
		return nil
	})
	defer mailbox.SetFault(nil)
	if err := d.Confirm(); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("Confirm on a full disk = %v, want ENOSPC", err)
	}
	if _, err := b.Send(t.Context(), message(agent.Owner, agent.Clone(1), "two")); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("Send on a full disk = %v, want ENOSPC", err)
	}
	mustCount(t, b, agent.Clone(1), bus.Claimed, 1)
	full.Store(false)
	mustConfirm(t, d)
	mustSend(t, b, message(agent.Owner, agent.Clone(1), "two"))
	mustConfirm(t, mustNext(t, r))
	mustCount(t, b, agent.Clone(1), bus.Delivered, 2)
	mustCount(t, b, agent.Clone(1), bus.Inbox, 0)
}
