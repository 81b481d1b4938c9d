package keeper_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"netsky/internal/testworld"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// TestSignalsAreDefault: the keeper's own handling of signals is not handed on.
func TestSignalsAreDefault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, _ := r.run("agent1", "/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
	r.shows(p, "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n")
}

// TestStuckTerminal: a terminal that takes no output does not hide a death, and
// has the line as soon as it takes output again.
func TestStuckTerminal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, l := r.run("agent1", "/bin/sh", "-c", "echo up; read x; exec yes")
	r.shows(p, "up")
	server := testworld.Got(strconv.Atoi(r.tmux("display", "-p", "#{pid}")))(t)
	program := r.program(l)
	// The server stops while it has the program print for ever.
	t.Cleanup(func() { unix.Kill(server, unix.SIGCONT) })
	r.keys(p, "Enter")
	r.shows(p, "y\ny")
	unix.Kill(server, unix.SIGSTOP)
	asleep := 0
	testworld.WaitOr(t, func() bool {
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(program.PID) + "/stat")
		if asleep++; !strings.Contains(string(stat), ") S ") {
			asleep = 0
		}
		return asleep == 20 // looks in a row: it sleeps in the write
	}, func() string { return "the program can still print" })
	unix.Kill(program.PID, unix.SIGKILL)
	testworld.Equal(t, ending(r.ended(l)), "SIGKILL", "record says")
	unix.Kill(server, unix.SIGCONT)
	r.shows(p, "[agent1 killed: SIGKILL]")
}
