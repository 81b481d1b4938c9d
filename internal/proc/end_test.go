package proc_test

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// mustStart starts a shell command as a process of the test's; it says a line
// when it is ready.
func mustStart(tb testing.TB, script string) proc.Process {
	tb.Helper()
	return testworld.Start(tb, exec.Command("/bin/sh", "-c", script))
}

// mustLead is mustStart in a process group of its own.
func mustLead(tb testing.TB, script string) proc.Process {
	tb.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return testworld.Start(tb, cmd)
}

const (
	meek = "echo up; exec sleep 1000"
	deaf = "trap '' TERM; echo up; exec sleep 1000"
	held = "echo up; kill -STOP $$; sleep 1000"
)

func gone(tb testing.TB, what string, p proc.Process) {
	tb.Helper()
	testworld.WaitOr(tb, func() bool { return !p.Alive() }, func() string {
		return what + " lives: " + strconv.Itoa(p.PID)
	})
}

func TestEnd(t *testing.T) {
	stranger := mustStart(t, meek)
	meekOne, heldOne := mustStart(t, meek), mustStart(t, held)
	dead := mustStart(t, meek)
	unix.Kill(dead.PID, unix.SIGKILL)
	gone(t, "process", dead)
	other := stranger
	other.Start--
	began := time.Now()
	list := []proc.Process{meekOne, heldOne, dead, other}
	testworld.Len(t, proc.End(context.Background(), list, 20*time.Second), 0, "left")
	if waited := time.Since(began); waited > 10*time.Second {
		t.Errorf("it waited %v for nobody", waited)
	}
	for _, p := range list {
		testworld.Equal(t, p.Alive(), false, "%d lives", p.PID)
	}
	testworld.Equal(t, stranger.Alive(), true, "a stranger with a listed number was ended")
}

func TestEndKills(t *testing.T) {
	p := mustStart(t, deaf)
	if left := proc.End(context.Background(), []proc.Process{p}, 50*time.Millisecond); len(left) != 0 || p.Alive() {
		t.Errorf("left %v", left)
	}
}

func TestEndSparesInitAndItself(t *testing.T) {
	self := proc.Self()
	first := testworld.Got(proc.Find(1))(t)
	left := proc.End(context.Background(), []proc.Process{self, first, {}, {PID: -1}}, 0)
	if len(left) != 2 || left[0] != self || left[1] != first {
		t.Errorf("left %v, want %v and %v", left, self, first)
	}
}

func TestEndGivesUpWithContext(t *testing.T) {
	p := mustStart(t, deaf)
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	left := proc.End(ctx, []proc.Process{p}, time.Hour)
	if len(left) != 1 || left[0] != p || !p.Alive() {
		t.Errorf("left %v, want %v living", left, p)
	}
	q := mustStart(t, meek)
	if left := proc.End(ctx, []proc.Process{q}, time.Hour); len(left) != 1 || !q.Alive() {
		t.Error("signalled although the context had ended")
	}
}

// A group is what a process leads; what has a group of its own is not in it, and a
// leader that is gone has none.
func TestGroup(t *testing.T) {
	leader := mustLead(t, `sleep 1000 & setsid sh -c 'echo up; exec sleep 2' & wait`)
	group, err := leader.Group()
	if err != nil || len(group) != 2 || group[0] != leader {
		t.Fatalf("Group() = %v, %v, want %v and its child", group, err, leader)
	}
	if mine, err := proc.Self().Group(); err != nil || len(mine) > 0 && mine[0] != proc.Self() {
		t.Errorf("Group() of the test = %v, %v", mine, err)
	}
	testworld.Len(t, testworld.Got(group[1].Group())(t), 0, "Group() of a member")
	testworld.Len(t, proc.End(t.Context(), group, 20*time.Second), 0, "left")
	testworld.Len(t, testworld.Got(leader.Group())(t), 0, "Group() of one that is gone")
}
