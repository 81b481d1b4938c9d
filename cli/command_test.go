package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"

	"github.com/rogpeppe/go-internal/testscript"
)

// The commands that scripts have beside testscript's own.

// exits STATUS COMMAND… runs a command that must end with that exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// waitFor REGEXP COMMAND… runs the command until its output matches; with a !
// in front, until it doesn't.
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] waitfor REGEXP COMMAND…")
	}
	re, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	matches := func() bool {
		err := ts.Exec(args[1], args[2:]...)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		return re.MatchString(ts.ReadFile("stdout")+ts.ReadFile("stderr")) != neg
	}
	if !testworld.Until(matches) {
		ts.Fatalf("waited in vain")
	}
}

// checkJSON PATH REGEXP looks into the JSON object that the last command
// printed; with a ! in front the value must not match, or not be there.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] json PATH REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	got, err := lookup(ts.ReadFile("stdout"), args[0])
	if err != nil && !neg {
		ts.Fatalf("%v", err)
	}
	if (err == nil && re.MatchString(got)) == neg {
		ts.Fatalf("%s is %s", args[0], got)
	}
}

// get VAR [PATH] keeps what the last command printed, or a value of it, in the
// variable.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: get VAR [PATH]")
	}
	value := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) == 2 {
		var err error
		value, err = lookup(value, args[1])
		ts.Check(err)
	}
	ts.Setenv(args[0], value)
}

// lookup finds a value in a JSON text. The path's words are keys, indexes,
// key=value for the element of a list that has it, and len for a list's length.
func lookup(text, path string) (string, error) {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", fmt.Errorf("no JSON: %w", err)
	}
	for word := range strings.SplitSeq(path, ".") {
		switch t := v.(type) {
		case map[string]any:
			inner, ok := t[word]
			if !ok {
				return "", fmt.Errorf("%s: no %q", path, word)
			}
			v = inner
		case []any:
			inner, err := element(t, word)
			if err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
			v = inner
		default:
			return "", fmt.Errorf("%s: nothing below %q", path, word)
		}
	}
	if s, ok := v.(string); ok {
		return s, nil
	}
	data, err := json.Marshal(v)
	return string(data), err
}

func element(list []any, word string) (any, error) {
	if word == "len" {
		return len(list), nil
	}
	if key, value, ok := strings.Cut(word, "="); ok {
		for _, e := range list {
			if m, ok := e.(map[string]any); ok && fmt.Sprint(m[key]) == value {
				return e, nil
			}
		}
		return nil, fmt.Errorf("no element with %s", word)
	}
	i, err := strconv.Atoi(word)
	if err == nil && (i < 0 || i >= len(list)) {
		err = fmt.Errorf("%d elements, no %d", len(list), i)
	}
	if err != nil {
		return nil, err
	}
	return list[i], nil
}

// sendSignal NAME PID sends a signal; a STOP has stopped the process when it
// returns.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "TERM": syscall.SIGTERM}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal NAME PID")
	}
	pid, err := strconv.Atoi(args[1])
	ts.Check(err)
	if pid <= 1 {
		ts.Fatalf("pid %d", pid)
	}
	if args[0] == "KILL" {
		awaitClient(ts)
	}
	ts.Check(syscall.Kill(pid, signals[args[0]]))
	if args[0] == "STOP" { // its threads stop one after another, and one that runs still answers
		waitFor(ts, false, []string{"^T", "ps", "-o", "state=", "-p", args[1]})
		if !testworld.Until(func() bool { return stopped(args[1]) }) {
			ts.Fatalf("threads of %s do not stop", args[1])
		}
	}
}

// awaitClient waits until a daemon that runs has attached to tmux, if there are agents: tmux
// 3.3a may die if one of its sessions ends in that moment. It gives up silently, as a script may have
// made the daemon unable to.
func awaitClient(ts *testscript.TestScript) {
	h, err := home.At(ts.Getenv("NETSKY_HOME"))
	if err != nil {
		return
	}
	la, err := h.LoadLaunch(agent.Root)
	if _, locked := h.LockHolder(agent.DaemonName); err != nil || !locked || strings.Contains(la.Socket, "/") {
		return
	}
	began := time.Now()
	testworld.Until(func() bool {
		out, err := exec.Command("tmux", "-L", la.Socket, "list-clients", "-F", "#{client_control_mode}").Output()
		return err != nil || strings.Contains(string(out), "1") || time.Since(began) > 3*time.Second
	})
}

// stopped reports whether all threads of a process have stopped, where the system
// tells.
func stopped(pid string) bool {
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/stat")
	for _, path := range tasks {
		stat, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(stat), ") T ") {
			return false
		}
	}
	return true
}

// fill FILE SIZE writes a file of that many letters; fill FILE HEX… one of those
// bytes.
func fill(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fill FILE SIZE|\"…\"")
	}
	var data string
	if n, err := strconv.Atoi(args[1]); err == nil {
		data = strings.Repeat("x", n)
	} else {
		data, err = strconv.Unquote(args[1])
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(data), 0o600))
}
