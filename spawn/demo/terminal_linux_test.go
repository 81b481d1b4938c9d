package demo_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/bus/envelope"
	"netsky/internal/testworld"
	"netsky/spawn/demo"
)

// mustTerminal makes a terminal of 40 columns: the side a person sees, and the
// side of the program.
func mustTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person = testworld.Got(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { person.Close() })
	conn := testworld.Got(person.SyscallConn())(t) // Fd would make it one whose Close waits for a Read
	var n int
	var failed error
	err := conn.Control(func(fd uintptr) {
		if n, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); failed == nil {
			failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	program = testworld.Got(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { program.Close() })
	testworld.Must(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}))
	return person, program
}

// TestTerminal runs a demo as it stands in its pane: a dialog takes a key
// without Enter, lines fit the window, and the prompt stands last.
func TestTerminal(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, "agent1")
	person, program := mustTerminal(t)
	before := testworld.Got(unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS))(t)
	screen := newScreen()
	go io.Copy(screen, person) // ends when the terminal is closed
	p := &player{world: w, id: "agent1", pane: screen, keys: person, done: make(chan error, 1)}
	ctx, stop := context.WithCancel(w.ctx)
	go func() {
		p.done <- demo.Run(ctx, demo.Options{Home: w.home, Agent: "agent1", Start: "s", Bus: w.bus, In: program, Out: program})
	}()
	p.shows("agent1, a message or /help> ")
	p.typeIn("hello\n")
	p.shows("received: hello\r\nagent1, a message or /help> ")
	id := w.tell("agent1", "/dialog")
	p.shows("[y/n]")
	p.typeIn("y")
	w.answered(id, envelope.KindReply, "yes")
	w.answered(w.tell("agent1", "last"), envelope.KindReply, "last")
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is left as %+v, want %+v (%v)", after, before, err)
	}
	stop()
	testworld.ErrorIs(t, p.end(), context.Canceled, "Run")
	for line := range strings.SplitSeq(screen.String(), "\n") {
		line = line[strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r')+1:]
		line = strings.TrimPrefix(strings.TrimRight(line, "\r"), "\x1b[K")
		if len([]rune(line)) > 40 && !strings.Contains(line, "/help> hello") {
			t.Errorf("a line is too long for the window: %q", line)
		}
	}
	p.typeIn("\n") // the Read under way ends
}
