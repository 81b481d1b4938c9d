//go:build live

package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// A world is a model, a home of the real Claude Code's, and a directory to work
// in.
type world struct {
	testing.TB
	ctx     context.Context
	model   *anthropic.Server
	program string
	home    string
	dir     string
	socket  string // of its tmux server
}

func mustWorld(tb testing.TB) *world {
	tb.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		tb.Fatal("NETSKY_TEST_CLAUDE is not set: run scripts/test, which installs the Claude Code that these tests use and says where it is")
	}
	top, err := os.MkdirTemp("", "lm") // short, for tmux's socket
	testworld.Must(tb, err)
	w := &world{
		TB: tb, model: mustModel(tb), program: program,
		home: filepath.Join(top, "home"), dir: filepath.Join(top, "work"), socket: filepath.Join(top, "tmux"),
	}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithTimeout(context.Background(), 2*testworld.Patience)
	tb.Cleanup(func() { w.end(); cancel(); os.RemoveAll(top) })
	testworld.Must(tb, os.Mkdir(w.dir, 0o700))
	testworld.Must(tb, anthropic.WriteHome(w.home, w.dir))
	return w
}

// env is the environment of the program and nothing of the test's own besides.
func (w *world) env(more ...string) []string {
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TERM=xterm-256color", anthropic.Sandbox}, w.model.Env(w.home)...)
	return append(env, more...)
}

// print runs the program with -p until its end.
func (w *world) print(env []string, prompt string, args ...string) (string, error) {
	args = append([]string{"-p", "--permission-mode", "bypassPermissions"}, append(args, "--", prompt)...)
	cmd := exec.CommandContext(w.ctx, w.program, args...)
	cmd.Dir, cmd.Env = w.dir, env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

func (w *world) mustPrint(prompt string, args ...string) string {
	w.Helper()
	out, err := w.print(w.env(), prompt, args...)
	if err != nil {
		w.Fatalf("claude -p %q: %v\n%s", prompt, err, out)
	}
	return out
}

// mustTalk starts the program for many prompts of one conversation, and returns what says
// one and returns its answer, and whether that is an error.
func (w *world) mustTalk(env []string) (say func(prompt string) (answer string, isError bool)) {
	w.Helper()
	var failed bool
	cmd := exec.CommandContext(w.ctx, w.program, "-p", "--permission-mode", "bypassPermissions",
		"--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
	cmd.Dir, cmd.Env = w.dir, env
	in, err := cmd.StdinPipe()
	testworld.Must(w, err)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	testworld.Must(w, err)
	w.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); (err != nil) != failed {
			w.Errorf("claude -p ended with %v, the last answer failed: %v", err, failed)
		}
	})
	to, from := json.NewEncoder(in), json.NewDecoder(out)
	return func(prompt string) (string, bool) {
		w.Helper()
		err := to.Encode(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": prompt}})
		for err == nil {
			var line struct {
				Type, Result string
				IsError      bool `json:"is_error"`
			}
			if err = from.Decode(&line); err == nil && line.Type == "result" {
				failed = line.IsError
				return strings.TrimSpace(line.Result), failed
			}
		}
		w.Fatalf("claude -p %q: %v", prompt, err)
		return "", true
	}
}

// A result is what -p prints as JSON.
type result struct {
	Result    string
	SessionID string `json:"session_id"`
	Usage     struct {
		Input      int `json:"input_tokens"`
		Output     int `json:"output_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
	}
}

func (w *world) mustResult(prompt string, args ...string) (r result) {
	w.Helper()
	out := w.mustPrint(prompt, append(args, "--output-format", "json")...)
	testworld.Must(w, json.Unmarshal([]byte(out), &r), "claude -p %q printed %s", prompt, out)
	return r
}

// tmux runs a command of the world's own tmux server.
func (w *world) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", w.socket}, args...)...).CombinedOutput()
	return string(out), err
}

func (w *world) mustTmux(args ...string) string {
	w.Helper()
	out, err := w.tmux(args...)
	if err != nil {
		w.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return out
}

// mustPane starts the program in a pane.
func (w *world) mustPane(args ...string) {
	w.Helper()
	command := []string{"new-session", "-d", "-s", "pane", "-x", "150", "-y", "50", "-c", w.dir}
	for _, e := range w.env() {
		command = append(command, "-e", e)
	}
	w.mustTmux(append(append(command, "--", w.program), args...)...)
}

// end ends the program in the pane, and waits until it is gone: it writes to its
// home to the last, and what is removed before would be there again.
func (w *world) end() {
	pane := func() (pid, dead int) {
		out, err := w.tmux("list-panes", "-t", "pane", "-F", "#{pane_pid} #{pane_dead}")
		if _, scan := fmt.Sscan(out, &pid, &dead); err != nil || scan != nil {
			return 0, 1
		}
		return pid, dead
	}
	if pid, dead := pane(); dead == 0 {
		syscall.Kill(pid, syscall.SIGTERM)
		testworld.WaitOr(w, func() bool { _, dead := pane(); return dead == 1 }, func() string { return "the program's end" })
	}
	w.tmux("kill-server")
}

// mustShow waits until the pane shows all of these.
func (w *world) mustShow(texts ...string) {
	w.Helper()
	var screen string
	testworld.WaitOr(w, func() bool {
		screen, _ = w.tmux("capture-pane", "-p", "-t", "pane")
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return true
	}, func() string { return fmt.Sprintf("%q in the pane:\n%s", texts, screen) })
}

// mustAsk waits for the model to be asked.
func (w *world) mustAsk(match func(anthropic.Request) bool) anthropic.Request {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, testworld.Patience)
	defer cancel()
	q, ok := w.model.Wait(ctx.Done(), match)
	if !ok {
		var said []string
		for _, q := range w.model.Requests() {
			said = append(said, fmt.Sprintf("%d of %q", q.Fresh, q.Said))
		}
		w.Fatalf("the model was never asked that, but: %s", strings.Join(said, "\n"))
	}
	return q
}

// session is the program's entry in its own list of sessions.
type session struct {
	Status string
	Socket string `json:"messagingSocketPath"`
}

func (w *world) session() (s session) {
	files, _ := filepath.Glob(filepath.Join(w.home, "sessions", "*.json"))
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil {
			json.Unmarshal(data, &s)
		}
	}
	return s
}

func (w *world) mustStatus(want string) {
	w.Helper()
	testworld.WaitOr(w, func() bool { return w.session().Status == want }, func() string {
		screen, _ := w.tmux("capture-pane", "-p", "-t", "pane")
		return fmt.Sprintf("status %s, it is %+v:\n%s", want, w.session(), screen)
	})
}
