//go:build live

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

// A reader that begins when the drain has ended gets all of it, once.
func TestDrainLateReader(t *testing.T) {
	w, run := drained(t)
	r, wr, err := os.Pipe()
	testworld.Must(t, err)
	defer r.Close()
	cmd := w.command(t.Context(), "netsky", "channel", "drain", "agent1")
	cmd.Stdout = wr
	err = cmd.Run()
	wr.Close()
	testworld.Must(t, err)
	var got bytes.Buffer
	testworld.Got(got.ReadFrom(r))(t)
	if n := strings.Count(got.String(), "</channel>"); n != 3 {
		t.Errorf("%d messages, want 3:\n%s", n, got.String())
	}
	testworld.Lacks(t, run("channel", "ls", "agent1"), "inbox ", "left")
}

// What lies in the pipe of a reader that goes was printed for nobody.
func TestDrainLostReader(t *testing.T) {
	w, run := drained(t)
	r, wr, err := os.Pipe()
	testworld.Must(t, err)
	list := []unix.PollFd{{Fd: int32(r.Fd()), Events: unix.POLLIN}}
	cmd := w.command(t.Context(), "netsky", "channel", "drain", "agent1")
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = wr, &errs
	testworld.Must(t, cmd.Start())
	wr.Close()
	if n, err := unix.Poll(list, int(time.Minute.Milliseconds())); n != 1 || err != nil {
		t.Fatalf("nothing printed: %d, %v", n, err)
	}
	r.Close()
	if err := cmd.Wait(); err == nil || errs.String() != "netsky: stdout: its reader has gone\n" {
		t.Errorf("%v: %s", err, errs.String())
	}
	if left := run("channel", "ls", "agent1"); strings.Count(left, "inbox ") != 3 {
		t.Errorf("left: %s", left)
	}
}
