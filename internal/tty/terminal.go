// Package tty lends this process's terminal to a program in the foreground, and
// takes it back.
//
// It promises that the program has the terminal as it would have it below a shell;
// that a signal to the program reaches no other process, because the program is not
// reaped while it is signalled; and that the screen is usable after [Terminal.Take],
// whatever mode the program was in when it died. A program does not outlive the
// thread that started it (Linux); elsewhere the end of this process hangs up its
// terminal.
package tty

import (
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"
)

// Catch catches and drops the signals that a terminal sends until stop is called. They
// are not ignored: an ignored signal would stay ignored in the programs that this
// process starts.
func Catch() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE)
	return func() { signal.Stop(c) }
}

// A Terminal is this process's own. All methods of a nil Terminal do nothing.
type Terminal struct {
	fd     int
	saved  unix.Termios   // as it was found
	caught chan os.Signal // SIGTTOU, after background
}

// Open returns the terminal on fd, or nil if fd is not a terminal or not the
// controlling one. Before it is lent to a program, [Catch] must have been called.
func Open(fd int) *Terminal {
	saved, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil
	}
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil {
		return nil
	}
	return &Terminal{fd: fd, saved: *saved, caught: make(chan os.Signal, 1)}
}

// Lend restores the line discipline as it was found.
func (t *Terminal) Lend() {
	if t != nil {
		t.set(setTermios, &t.saved)
	}
}

// Restore is Lend, and also drops input that was typed but not read.
func (t *Terminal) Restore() {
	if t != nil {
		t.set(setTermiosFlush, &t.saved)
	}
}

// Take puts this process into the foreground and restores the line discipline, except
// that keys are neither echoed nor turned into signals any more, and that output which
// Ctrl-S stopped continues. It returns what to print to restore the screen.
func (t *Terminal) Take() string {
	if t == nil {
		return ""
	}
	t.give(unix.Getpgrp())
	for fd := range 3 {
		unix.SetNonblock(fd, false) // shared with the program, which may have left it on
	}
	quiet := t.saved
	quiet.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	quiet.Iflag &^= unix.IXON
	quiet.Cc[unix.VMIN], quiet.Cc[unix.VTIME] = 1, 0
	t.set(setTermios, &quiet)
	return resetScreen
}

// give puts a process group into the foreground.
func (t *Terminal) give(group int) {
	if t != nil {
		t.background(func() { unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) })
	}
}

func (t *Terminal) set(how uint, to *unix.Termios) {
	t.background(func() { unix.IoctlSetTermios(t.fd, how, to) })
}

// background does something that would stop a process in the background.
func (t *Terminal) background(do func()) {
	if !signal.Ignored(unix.SIGTTOU) {
		signal.Ignore(unix.SIGTTOU)
		defer signal.Notify(t.caught, unix.SIGTTOU)
	}
	do()
}

// resetScreen ends whatever mode a killed program left the terminal in.
var resetScreen = strings.Join([]string{
	"\x18",   // ends an escape sequence that was cut off
	"\x1b[m", // colours
	"\x1b(B\x0f",
	"\x1b7\x1b[r\x1b8", // scroll region; setting it moves the cursor
	"\x1b[4l\x1b[?7h",  // overwrite, wrap
	"\x1b[?25h",        // cursor
	"\x1b[?1l\x1b>",    // cursor keys, keypad
	"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l", // mouse
	"\x1b[?1004l\x1b[?2004l\x1b[>4m\x1b[<u",                   // focus, paste, other keys, kitty's keys
	// Leaving the alternate screen puts the cursor where it was on entering,
	// even if it has been left already and lines were printed since. Entering
	// first does nothing in it, and outside it notes where the cursor is now.
	"\x1b[?1049h\x1b[?1049l",
}, "")
