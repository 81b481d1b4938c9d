package cli_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/testworld"
)

// drained is a world with three messages for an agent that is down.
func drained(t *testing.T) (w *world, run func(args ...string) string) {
	t.Helper()
	w = testworld.Got(newWorld())(t)
	t.Cleanup(func() {
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
	run = func(args ...string) string {
		t.Helper()
		out, err := w.command(t.Context(), "netsky", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("netsky %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("agent", "1", "--type", "demo")
	run("down")
	for _, text := range []string{"one", "two", "three"} {
		run("channel", "send", "agent1", text)
	}
	return w, run
}

// Mail that lies in the pipe of a reader that goes stays new, and is not lost to
// the next reader; what the reader took does not come again.
func TestInboxLostReader(t *testing.T) {
	w, run := drained(t)
	for _, text := range []string{"one", "two", "three"} {
		run("channel", "send", "owner", text)
	}
	for _, flag := range []string{"--json", "--follow", ""} {
		args := []string{"inbox"}
		if flag != "" {
			args = append(args, flag)
		}
		r, wr, err := os.Pipe()
		testworld.Must(t, err)
		list := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
		cmd := w.command(t.Context(), "netsky", args...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = wr, &errs
		testworld.Must(t, cmd.Start())
		wr.Close()
		if n, err := unix.Poll(list, int(time.Minute.Milliseconds())); n != 1 || err != nil {
			t.Fatalf("nothing printed: %d, %v", n, err)
		}
		r.Close()
		if err := cmd.Wait(); err != nil || errs.String() != "netsky: stdout: its reader has gone; messages not read: 3; they stay new\n" {
			t.Errorf("%s: %v: %s", flag, err, errs.String())
		}
	}
	out, err := w.command(t.Context(), "sh", "-c", "netsky inbox | head -1").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "messages not read: 2; they stay new") {
		t.Errorf("through head: %v\n%s", err, out)
	}
	if out := run("inbox"); strings.Contains(out, "    one\n") || !strings.Contains(out, "    two\n") || !strings.Contains(out, "    three\n") {
		t.Errorf("then: %s", out)
	}
	if out := run("inbox"); !strings.HasPrefix(out, "no new mail") {
		t.Errorf("at last: %s", out)
	}
}
