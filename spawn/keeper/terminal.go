package keeper

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is the pane's. The zero terminal is none: nothing happens to it.
type terminal struct {
	ok    bool
	fd    int
	saved unix.Termios // as it was before the program
}

// openTerminal looks whether fd is our controlling terminal.
func openTerminal(fd int) terminal {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return terminal{}
	}
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
		return terminal{} // a terminal, but not the one we belong to
	}
	return terminal{ok: true, fd: fd, saved: *t}
}

// give puts a process group into the foreground.
func (t terminal) give(group int) {
	if t.ok {
		unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	}
}

// take puts us into the foreground and the line discipline back, except that
// keys are neither echoed nor turned into signals any more, and that output
// which Ctrl-S held up goes on. It answers what has to be printed to have the
// screen back.
func (t terminal) take() string {
	if !t.ok {
		return ""
	}
	t.give(unix.Getpgrp())
	for fd := range 3 {
		unix.SetNonblock(fd, false) // shared with the program, which may have left it on
	}
	quiet := t.saved
	quiet.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	quiet.Iflag &^= unix.IXON
	unix.IoctlSetTermios(t.fd, setTermios, &quiet)
	return resetScreen
}

// restore puts the line discipline back as it was before the program, and
// drops what has been typed since.
func (t terminal) restore() {
	if t.ok {
		unix.IoctlSetTermios(t.fd, setTermiosFlush, &t.saved)
	}
}

// resetScreen ends whatever mode a program that was killed left the pane in.
var resetScreen = strings.Join([]string{
	"\x18",   // ends an escape sequence that was cut off
	"\x1b[m", // colours
	"\x1b(B\x0f",
	"\x1b7\x1b[r\x1b8", // scroll region; setting it moves the cursor
	"\x1b[4l\x1b[?7h",  // overwrite, wrap
	"\x1b[?25h",        // cursor
	"\x1b[?1l\x1b>",    // cursor keys, keypad
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l", // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[>4m",                          // focus, paste, other keys
	// Leaving the alternate screen puts the cursor where it was on entering,
	// even if it has been left already and lines were printed since. Entering
	// first does nothing in it, and outside it notes where the cursor is now.
	"\x1b[?1049h\x1b[?1049l",
}, "")

// stuck is how long a terminal that takes no output is waited for.
const stuck = time.Second

// A console prints to standard output, in order. The zero console is ready.
type console struct{ last chan struct{} }

// print writes s, and gives up waiting for the terminal to take it after a
// second: the write then goes on by itself until the process ends.
func (c *console) print(s string) {
	before, done := c.last, make(chan struct{})
	c.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		write(1, s)
	}()
	select {
	case <-done:
	case <-time.After(stuck):
	}
}

func write(fd int, s string) {
	for len(s) > 0 {
		n, err := unix.Write(fd, []byte(s))
		if err != nil && err != unix.EINTR {
			return // hung up: nobody to tell
		}
		s = s[max(n, 0):]
	}
}
