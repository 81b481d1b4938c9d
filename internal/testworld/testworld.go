// Package testworld is what the tests of all packages stand on: a home of their
// own, mailboxes in it, processes that end with it, waiting for a condition instead
// of sleeping, and netsky itself, built. It is not in the binary.
package testworld

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/proc"
)

// Patience is how long a test waits for what must happen. It is far above what
// anything takes, also on a machine with more work than processors.
const Patience = 3 * time.Minute

// Home makes a home for the test, on disk, with a path short enough for sockets.
// The directory that it is in is the test's too, and goes with it.
func Home(tb testing.TB) home.Dir {
	tb.Helper()
	return homeIn(tb, "")
}

// FastHome makes a home in memory where the system has room for it: for tests that
// kill processes, not the machine. What is measured is on disk.
func FastHome(tb testing.TB) home.Dir {
	tb.Helper()
	const memory, room = "/dev/shm", 1 << 30
	var fs unix.Statfs_t
	if _, ok := tb.(*testing.B); ok {
		return homeIn(tb, "")
	}
	if err := unix.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room {
		return homeIn(tb, memory)
	}
	return homeIn(tb, "")
}

func homeIn(tb testing.TB, parent string) home.Dir {
	tb.Helper()
	dir, err := os.MkdirTemp(parent, "n")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		tb.Fatal(err)
	}
	h, err := home.At(filepath.Join(dir, "h"))
	if err == nil {
		_, err = h.Make()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// Start starts a process of the test's, and returns once it has printed something.
func Start(tb testing.TB, cmd *exec.Cmd) proc.Process {
	tb.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	p, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 64)); err != nil {
		tb.Fatal(err)
	}
	return p
}

// Program writes a file that can be executed, and returns its path.
func Program(tb testing.TB, path, text string) string {
	tb.Helper()
	// A process that another test starts meanwhile would inherit the open file for a
	// moment, in which it can't be executed.
	syscall.ForkLock.Lock()
	err := os.WriteFile(path, []byte(text), 0o700)
	syscall.ForkLock.Unlock()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// EndAll ends every process that was started for a home.
func EndAll(tb testing.TB, h home.Dir) {
	tb.Helper()
	list, err := proc.Descendants(0, "NETSKY_HOME="+h.Root())
	if err != nil {
		tb.Error(err)
	}
	proc.End(context.Background(), list, 0)
}

// Bus makes the bus of a home, with mailboxes.
func Bus(tb testing.TB, h home.Dir, boxes ...agent.ID) *bus.Bus {
	tb.Helper()
	b := bus.New(h, bus.Options{})
	for _, id := range boxes {
		if err := b.Make(id); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

// Must ends the test if there is an error. What says of what it is, as for Equal.
func Must(tb testing.TB, err error, what ...any) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s%v", words(what), err)
	}
}

// Got is Must for what returns a value, too: testworld.Got(os.ReadFile(path))(t).
func Got[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		Must(tb, err)
		return v
	}
}

// Wait looks every few milliseconds until a condition holds, and fails the test if
// it does not within Patience.
func Wait(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	WaitOr(tb, holds, func() string { return what })
}

// WaitOr is Wait with a failure that is worded when it happens.
func WaitOr(tb testing.TB, holds func() bool, why func() string) {
	tb.Helper()
	if !Until(holds) {
		tb.Fatalf("waited for %v in vain: %s", Patience, why())
	}
}

// Until is Wait for whoever has no test: it reports whether the condition came to
// hold within Patience. A look that takes long, as it starts a program or reads many
// files, is followed by a longer rest: what is waited for needs the processor more.
func Until(holds func() bool) bool {
	const longest, share, most = 25 * time.Millisecond, 4, 2 * time.Second
	rest := 2 * time.Millisecond
	for end := time.Now().Add(Patience); ; rest = min(longest, rest*5/4) {
		began := time.Now()
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(max(rest, min(share*time.Since(began), most)))
	}
}

// Main is the TestMain of a package whose tests start netsky: it builds the program,
// once, hands its path to use and runs the tests. It is the real one, not the test's
// binary under another name: daemon, keepers, agents and ticker are processes that
// netsky starts from its own file.
func Main(m *testing.M, use func(netsky string)) (status int) {
	if Testify() {
		return 0
	}
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	netsky := filepath.Join(dir, "netsky")
	if err := Build("-ldflags", "-s -w", "-o", netsky); err != nil {
		panic(err)
	}
	use(netsky)
	return m.Run()
}

// Build builds netsky with the flags of the build that people get, and these. What scripts/test
// has compiled for that one is not compiled again.
func Build(flags ...string) error {
	const script = `cd "$(dirname "$(go env GOMOD)")" && . scripts/tools && exec go build -trimpath -tags "$tags" "$@" .`
	out, err := exec.Command("sh", append([]string{"-c", script, "sh"}, flags...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
