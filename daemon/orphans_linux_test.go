package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/testworld"
)

// What an agent that is down has left behind is ended if it is proved to be its own; what
// somebody else runs is not touched, nor what an agent runs that is up.
func TestOrphans(t *testing.T) {
	t.Parallel()
	w := newWard(t)
	w.stop()
	dir := filepath.Dir(w.home.Root())
	leaves := sh(`cd ` + dir + `; setsid sleep 600 & echo $! >left$AGENT_N
` + ready + `read line`)
	w.up(leaves, "agent1", "agent2")
	pid := func(n int) (p int) {
		t.Helper()
		data := testworld.Got(os.ReadFile(filepath.Join(dir, fmt.Sprintf("left%d", n))))(t)
		fmt.Sscan(string(data), &p)
		return p
	}
	left, other := processOf(pid(1)), processOf(pid(2))
	testworld.Wait(w, "they have left the pane's session", func() bool { // else they end with it
		mine, err := unix.Getsid(left.PID)
		others, err2 := unix.Getsid(other.PID)
		return err == nil && err2 == nil && mine == left.PID && others == other.PID
	})
	k := testworld.Got(w.home.LoadKeeper("agent1"))(t)
	testworld.Must(t, home.Desired(w.home).Set("agent1", false, "owner"))
	testworld.Must(t, k.Own.Signal(syscall.SIGKILL))
	testworld.WaitOr(w, func() bool { return w.statuses().Find("agent1").Pane() == "" && !k.Alive() }, func() string { return "still there" })
	if !left.Alive() {
		t.Fatal("it died with its keeper: nothing is tested")
	}
	w.begin()
	testworld.WaitOr(w, func() bool { return !left.Alive() }, func() string { return "not ended\n" + w.log() })
	w.event("agent1 left behind by its last start: process ")
	if got := strings.Join(w.events(), "\n"); !strings.Contains(got, "; ended") || strings.Contains(got, "agent2") {
		t.Error(got)
	}
	if d, err := home.Desired(w.home).Load("agent1"); err != nil || d.Up || d.By != "owner" {
		t.Errorf("%+v %v", d, err)
	}
	if !other.Alive() {
		t.Error("ended what an agent runs that is up")
	}
}
