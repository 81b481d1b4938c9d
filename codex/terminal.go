package codex

import (
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// A terminal is the one on our standard input.
type terminal struct {
	saved  unix.Termios // as we found it
	ignore chan os.Signal
}

// openTerminal is nil if standard input is no terminal of ours.
func openTerminal() *terminal {
	t, err := unix.IoctlGetTermios(0, getTermios)
	if err != nil {
		return nil
	}
	if _, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err != nil {
		return nil // a terminal, but not the one we belong to
	}
	tty := &terminal{saved: *t, ignore: make(chan os.Signal, 1)}
	// Caught and forgotten rather than ignored: an ignored signal would stay
	// ignored in the program that we start.
	signal.Notify(tty.ignore, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)
	return tty
}

func (t *terminal) close() { signal.Stop(t.ignore) }

// lend puts the line discipline back as a program expects it.
func (t *terminal) lend() { t.set(&t.saved) }

// take puts us into the foreground, with keys neither echoed nor turned into
// signals, and the screen back into its normal mode.
func (t *terminal) take() {
	t.foreground(unix.Getpgrp())
	for fd := range 3 {
		unix.SetNonblock(fd, false) // shared with the program, which may have left it on
	}
	quiet := t.saved
	quiet.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	quiet.Iflag &^= unix.IXON
	quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
	t.set(&quiet)
	os.Stdout.WriteString(resetScreen)
}

func (t *terminal) foreground(group int) {
	t.background(func() { unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) })
}

func (t *terminal) set(to *unix.Termios) {
	t.background(func() { unix.IoctlSetTermios(0, setTermios, to) })
}

// background does what would stop a process in the background.
func (t *terminal) background(do func()) {
	signal.Ignore(unix.SIGTTOU)
	do()
	signal.Notify(t.ignore, unix.SIGTTOU)
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
	"\x1b[?1004l\x1b[?2004l\x1b[>4m\x1b[<u",                   // focus, paste, other keys
	"\x1b[?1049h\x1b[?1049l",                                  // the alternate screen
}, "")
