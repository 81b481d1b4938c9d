package imessage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"netsky/internal/execx"
	"netsky/internal/proc"
)

// sendScript sends one text or file. Its arguments are how to address ("chat" or "participant"),
// whom, what it is ("text" or "file"), and the text or the path.
const sendScript = `on run argv
	set addressing to item 1 of argv
	set recipient to item 2 of argv
	set content to item 4 of argv
	if item 3 of argv is "file" then set content to (POSIX file content) as alias
	with timeout of 25 seconds
		tell application "Messages"
			if addressing is "chat" then
				send content to chat id recipient
			else
				set theAccount to first account whose service type is iMessage
				send content to participant recipient of theAccount
			end if
		end tell
	end timeout
end run
`

// countScript asks Messages something that changes nothing.
const countScript = `with timeout of 10 seconds
	tell application "Messages" to return count of chats
end timeout
`

// Scripts returns the texts that osascript is run with, for those who stand in for it.
func Scripts() []string { return []string{sendScript, countScript} }

const (
	endGrace  = 2 * time.Second // between TERM and KILL
	maxErrors = 4 << 10         // of what osascript prints
)

// An ending is how one osascript ended.
type ending struct {
	ok       bool
	timedOut bool
	number   int    // of its error; 0 is none
	output   string // the beginning of it
	errors   string // the end of it
	status   string
}

// osascript returns the program's path.
func (t *Transport) osascript() (string, error) {
	path := execx.Find(execx.Value(t.o.Env, "PATH"), "osascript")
	if path == "" {
		return "", fmt.Errorf("osascript: not found on PATH; macOS has it as /usr/bin/osascript")
	}
	return path, nil
}

// run runs a script. The error says that it was not started.
func (t *Transport) run(script string, args ...string) (e ending, err error) {
	path, err := t.osascript()
	if err != nil {
		return e, err
	}
	// The mark finds what it started, wherever that went.
	mark := fmt.Sprintf("NETSKY_OSASCRIPT=%d-%d", proc.Self().PID, time.Now().UnixNano())
	cmd := exec.Command(path, append([]string{"-"}, args...)...)
	cmd.Env = append(t.o.Env[:len(t.o.Env):len(t.o.Env)], mark)
	stdin, err := whole(script)
	if err != nil {
		return e, err
	}
	defer stdin.Close()
	cmd.Stdin = stdin
	out, errs := &tail{max: maxErrors}, &tail{max: maxErrors}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at a terminal is not for it
	cmd.WaitDelay = time.Second                           // something it started may keep its output open
	if err := cmd.Start(); err != nil {
		return e, fmt.Errorf("osascript: %w", err)
	}
	started, _ := proc.Find(cmd.Process.Pid) // it is not waited for yet, so the number is its own
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	timer := time.NewTimer(t.o.Timeout)
	defer timer.Stop()
	select {
	case err = <-done:
	case <-timer.C:
		e.timedOut = true
		endAll(started, mark)
		err = <-done
	}
	e.ok = err == nil && !e.timedOut
	e.output, e.errors, e.number = out.String(), errs.String(), numberOf(errs.String())
	if err != nil {
		e.status = err.Error()
	}
	return e, nil
}

// whole returns a pipe that holds the script from its beginning to its end before anything reads
// it: a process that is killed while it hands the script over would leave one that was cut
// anywhere.
func whole(script string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("osascript: %w", err)
	}
	_, err = w.WriteString(script) // shorter than the smallest pipe, 4 KiB
	if err = errors.Join(err, w.Close()); err != nil {
		r.Close()
		return nil, fmt.Errorf("osascript: %w", err)
	}
	return r, nil
}

// endAll ends a process with all that it started: TERM, then KILL.
func endAll(p proc.Process, mark string) {
	for range 3 {
		var list []proc.Process
		below := 0
		if p.Alive() {
			list, below = append(list, p), p.PID
		}
		if family, err := proc.Descendants(below, mark, proc.Self().PID); err == nil {
			list = append(list, family...)
		}
		if len(list) == 0 {
			return
		}
		proc.End(context.Background(), list, endGrace)
	}
}

// numberAtEnd is how osascript ends its report, in every language.
var numberAtEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[(（](-?[0-9]{1,6})[)）]\s*$`) })

func numberOf(errors string) int {
	m := numberAtEnd().FindStringSubmatch(errors)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// A tail keeps the end of what is written to it.
type tail struct {
	max  int
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	if len(p) >= t.max {
		t.text = append(t.text[:0], p[len(p)-t.max:]...)
		return len(p), nil
	}
	if over := len(t.text) + len(p) - t.max; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	t.text = append(t.text, p...)
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.text), "") }
