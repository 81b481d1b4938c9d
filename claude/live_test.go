package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

func TestMain(m *testing.M) {
	if os.Getenv("LIVE_START") != "" && len(os.Args) == 3 && os.Args[1] == "hook" {
		if err := liveHook(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return // whatever goes wrong, no prompt is blocked
	}
	os.Exit(m.Run())
}

// liveHook is what a hook of netsky's does, as far as this package has a part
// in it.
func liveHook(event string) error {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	h, err := claude.ParseHook(event, data)
	if err != nil {
		return err
	}
	home, err := home.Find(os.Getenv)
	if err != nil {
		return err
	}
	if p, ok := h.Permission(); ok {
		return livePermission(home, h, p)
	}
	e := h.Line()
	if e.Event == agent.EventPrompt {
		e.IDs, _ = envelope.RenderedIDs(h.Prompt)
	}
	return liveEvent(home, e)
}

func liveEvent(dir home.Dir, e agent.Event) error {
	if e.Event == "" {
		return nil
	}
	e.Start = os.Getenv("LIVE_START")
	return home.Events(dir).Append("agent1", e)
}

func livePermission(dir home.Dir, h claude.Hook, q agent.Approval) error {
	start := os.Getenv("LIVE_START")
	q.Agent, q.Start, q.AskedMS = "agent1", start, time.Now().UnixMilli()
	a, err := home.Approvals(dir).Ask(q)
	if err != nil {
		return err
	}
	defer home.Approvals(dir).Settle(a.Code)
	e := h.Line()
	e.ID = a.Code
	if err := liveEvent(dir, e); err != nil {
		return err
	}
	keeper, err := dir.LoadKeeper("agent1")
	if err != nil {
		return err
	}
	w := claude.PermissionWait{
		Home: dir, Agent: "agent1", Start: start, ConfigDir: claude.ConfigDir(os.Getenv), PID: keeper.PID,
		Session: h.Session, Call: h.Call, Subagent: h.Subagent != "",
	}
	// An Escape in the dialog ends the turn and this process with it.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer cancel()
	words := map[claude.Outcome]string{claude.Allowed: "allowed", claude.Denied: "denied", claude.AtPane: "at the pane", claude.AllowedAtPane: "at the pane", claude.Unanswered: "unanswered"}
	var answer agent.Answer
	outcome, call := w.Wait(ctx, func() (allow, ok bool) {
		answer, ok, err = home.Approvals(dir).Answered(a.Code)
		return answer.Allow, ok && err == nil
	})
	o := agent.Outcome{How: words[outcome]}
	switch outcome {
	case claude.Allowed, claude.Denied:
		os.Stdout.Write(claude.Decision(answer.Allow, "the owner said no"))
		o.Answer, o.Proof = answer, w.Taken(h.File(), call, answer.Allow)
	}
	if err := home.Approvals(dir).Settled(a, o); err != nil {
		return err
	}
	return liveEvent(dir, agent.Event{Event: agent.EventPermitted, ID: a.Code, Text: words[outcome]})
}

// A live is the real Claude Code in a pane of its own, with a model on the
// loopback.
type live struct {
	testing.TB
	*claude.Session
	ctx    context.Context
	model  *anthropic.Server
	top    string
	work   string
	config string
}

// liveEvents are those that the hooks are asked for.
var liveEvents = []string{
	"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest",
	"Notification", "Stop", "StopFailure", "SessionEnd",
}

// mustLive starts Claude Code in a permission mode, with more variables, and waits until it
// is ready.
func mustLive(tb testing.TB, mode string, more ...string) *live {
	tb.Helper()
	return mustLiveWith(tb, nil, mode, more...)
}

// mustLiveWith is mustLive with files in Claude Code's configuration directory.
func mustLiveWith(tb testing.TB, files map[string]string, mode string, more ...string) *live {
	tb.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		tb.Fatal("NETSKY_TEST_CLAUDE is not set: scripts/test installs the Claude Code that this test uses and says where it is")
	}
	h := testworld.Home(tb)
	top := filepath.Dir(h.Root())
	model := testworld.Got(anthropic.Start())(tb)
	l := &live{TB: tb, model: model, top: top, work: filepath.Join(top, "work"), config: filepath.Join(top, "config")}
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithTimeout(context.Background(), 3*testworld.Patience)
	l.Session = &claude.Session{Home: h, Agent: "agent1", Start: agent.NewStart(), ConfigDir: l.config, Pane: l}
	tb.Cleanup(func() {
		l.Close()
		l.tmux("kill-server")
		testworld.Wait(tb, "Claude Code's end", func() bool { _, err := proc.Find(l.PID); return err != nil })
		cancel()
		model.Close()
	})
	testworld.Must(tb, os.Mkdir(l.work, 0o700))
	testworld.Must(tb, anthropic.WriteHome(l.config, l.work))
	for name, text := range files {
		testworld.Must(tb, os.WriteFile(filepath.Join(l.config, name), []byte(text), 0o600))
	}
	l.mustStart(program, mode, more)
	return l
}

func (l *live) mustStart(program, mode string, more []string) {
	l.Helper()
	self := testworld.Got(os.Executable())(l)
	hooks := map[string]any{}
	for _, name := range liveEvents {
		hooks[name] = []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "'" + self + "' hook " + name, "timeout": 600}}}}
	}
	settings := testworld.Got(json.Marshal(map[string]any{"hooks": hooks, "skipDangerousModePermissionPrompt": true, "crossSessionInbound": "accept", "autoContinueAtUsageLimit": false}))(l)
	file := filepath.Join(l.top, "settings.json")
	testworld.Must(l, os.WriteFile(file, settings, 0o600))
	env := append(l.model.Env(l.config), "PATH="+os.Getenv("PATH"), "HOME="+l.top, "TERM=xterm-256color", anthropic.Sandbox,
		"NETSKY_HOME="+l.Home.Root(), "LIVE_START="+l.Start)
	env = append(env, more...)
	testworld.Must(l, l.Home.SaveLaunch(agent.Launch{Agent: "agent1", Start: l.Start, Runtime: "claude", Env: env, Dir: l.work}))
	words := append([]string{"exec", "env", "-i"}, env...)
	words = append(words, program, "--permission-mode", mode, "--settings", file, "--model", "opus")
	out := l.mustTmux("-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pane_pid}", "-s", "claude", "-x", "110", "-y", "40", "-c", l.work, strings.Join(words, " "))
	l.PID = testworld.Got(strconv.Atoi(out))(l)
	p := testworld.Got(proc.Find(l.PID))(l)
	testworld.Must(l, l.Home.SaveKeeper("agent1", agent.Keeper{Start: l.Start, Process: p, Program: program}))
	l.wait("it is idle", func() bool { return len(l.events(agent.EventSessionStart)) > 0 && l.State(l.ctx).State == agent.Idle })
}

func (l *live) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", filepath.Join(l.top, "tmux")}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LC_ALL=C.UTF-8"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

func (l *live) mustTmux(args ...string) string {
	l.Helper()
	out, err := l.tmux(args...)
	if err != nil {
		l.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return out
}

// Screen, Keys and Paste make the session's pane.
func (l *live) Screen(context.Context) (string, error) {
	return l.tmux("capture-pane", "-p", "-e", "-t", "claude")
}

func (l *live) Keys(_ context.Context, keys ...string) error {
	_, err := l.tmux(append([]string{"send-keys", "-t", "claude", "--"}, keys...)...)
	return err
}

func (l *live) Paste(_ context.Context, text string) error {
	if _, err := l.tmux("set-buffer", "-b", "paste", text); err != nil {
		return err
	}
	_, err := l.tmux("paste-buffer", "-p", "-r", "-d", "-b", "paste", "-t", "claude")
	return err
}

func (l *live) text() string {
	out, _ := l.tmux("capture-pane", "-p", "-t", "claude")
	return out
}

// mustKeys presses keys as a person would.
func (l *live) mustKeys(keys ...string) {
	l.Helper()
	testworld.Must(l, l.Keys(l.ctx, keys...))
}

// mustType types a line and submits it as a person would.
func (l *live) mustType(text string) {
	l.Helper()
	l.mustKeys(text)
	l.wait("the line stands", func() bool { return strings.Contains(l.text(), "❯\u00a0"+text) })
	l.mustKeys("Enter")
}

// events are those of a kind that the hooks have left.
func (l *live) events(kind agent.EventKind) (list []agent.Event) {
	l.Helper()
	tail := home.Events(l.Home).Tail("agent1")
	defer tail.Close()
	testworld.Must(l, tail.Read(func(e agent.Event) {
		if e.Event == kind {
			list = append(list, e)
		}
	}))
	return list
}

func (l *live) wait(what string, ok func() bool) {
	l.Helper()
	testworld.WaitOr(l, ok, func() string { return fmt.Sprintf("%s; state %+v; screen:\n%s", what, l.State(l.ctx), l.text()) })
}

// mustState waits until the session is in a state whose detail has these words.
func (l *live) mustState(s agent.State, words string) agent.Report {
	l.Helper()
	var r agent.Report
	l.wait(fmt.Sprintf("state %s %q", s, words), func() bool {
		r = l.State(l.ctx)
		return r.State == s && strings.Contains(r.Detail, words)
	})
	return r
}

func (l *live) mustPush(text string) {
	l.Helper()
	testworld.Must(l, l.Push(l.ctx, text), "Push")
}

// mustStop waits for the end of the n-th turn.
func (l *live) mustStop(n int) agent.Event {
	l.Helper()
	l.wait(fmt.Sprintf("the end of turn %d", n), func() bool { return len(l.events(agent.EventStop)) >= n })
	return l.events(agent.EventStop)[n-1]
}

// hold lets the model's answers to a text wait until release is called.
func (l *live) hold(text string) (release func()) {
	gate := make(chan struct{})
	l.model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if q.Last() != text {
			return nil
		}
		reply := *anthropic.Directives(q)
		reply.Delay, reply.Hold = 0, gate
		return &reply
	})
	return sync.OnceFunc(func() { close(gate) })
}

// fail answers a text with an HTTP error.
func (l *live) fail(text string, status int) {
	l.model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if q.Last() != text {
			return nil
		}
		return anthropic.Fail(status)
	})
}

// answer answers a text by a rule, which returns nil to let the model answer.
func (l *live) answer(text string, rule func(n int) *anthropic.Reply) {
	var n atomic.Int32
	l.model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if q.Last() != text {
			return nil
		}
		return rule(int(n.Add(1)))
	})
}

// said reports how often the model was told a text in a request.
func (l *live) said(text string) (n int) {
	for _, q := range l.model.Requests() {
		if slices.Contains(q.Said, text) {
			n++
		}
	}
	return n
}
