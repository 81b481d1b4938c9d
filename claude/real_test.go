//go:build live

package claude_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// A stage is a rig with the real Claude Code, a model on the loopback, and a
// tmux server of its own.
type stage struct {
	*rig
	model *anthropic.Server
}

func mustStage(tb testing.TB) *stage {
	tb.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		tb.Fatal("NETSKY_TEST_CLAUDE is not set: scripts/test installs the Claude Code that this test uses and says where it is")
	}
	model := testworld.Got(anthropic.Start())(tb)
	tb.Cleanup(func() { model.Close() })
	w := &stage{rig: mustRig(tb), model: model}
	testworld.Must(tb, os.Symlink(program, filepath.Join(w.bin, "claude")))
	testworld.Must(tb, anthropic.WriteHome(w.config, w.work))
	w.env = slices.Concat(w.env, model.Env(w.config), []string{anthropic.Sandbox})
	w.options.Mode = "bypassPermissions"
	w.mustNetsky()
	tb.Cleanup(func() { w.tmux("kill-server") })
	return w
}

// mustNetsky makes a netsky of a few lines: its hooks append what they are told
// to the file hooks, its server has three tools.
func (w *stage) mustNetsky() {
	w.Helper()
	file := filepath.Join(w.bin, "net sky")
	testworld.Program(w, file, fmt.Sprintf(`#!/bin/sh
cd %q || exit 0
if [ "$1" = hook ]; then
	told=$(cat)
	printf '%%s %%s\n' "$2" "$told" >> hooks
	case "$2 $told" in
	PermissionRequest*'"tool_name":"mcp__agent__'* | PermissionRequest*'"tool_name":"mcp__imessage__'*)
		echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}' ;;
	esac
	exit 0
fi
echo "$*" >> served
env >> "env.$4"
while read -r line; do
	id=$(printf '%%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"method":"initialize"'*)
		echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"agent","version":"1"}}}' ;;
	*'"method":"tools/list"'*)
		tools=
		for t in reply send agent_start; do
			tools="$tools,"'{"name":"'$t'","description":"'$t'","inputSchema":{"type":"object","properties":{}},"_meta":{"anthropic/alwaysLoad":true}}'
		done
		echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":['"${tools#,}"']}}' ;;
	*'"method":"tools/call"'*)
		echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"it is done"}]}}' ;;
	*'"id":'*)
		echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no"}}' ;;
	esac
done
`, w.bin))
	w.fresh().Binary = file
}

// tmux runs a command of the world's own tmux server.
func (w *stage) tmux(args ...string) string {
	cmd := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", filepath.Join(filepath.Dir(w.work), "t")}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// mustUp prepares the agent and starts what comes of it, as a keeper would, and
// returns once its conversation has begun.
func (w *stage) mustUp(id agent.ID) agent.Launch {
	w.Helper()
	testworld.Must(w, w.runtime.Check(w.ctx, w.launch(id)), "Check")
	before := w.count("SessionStart")
	l := w.mustPrepare(id)
	words := []string{"new-session", "-d", "-s", string(id), "-x", "180", "-y", "50", "-c", l.Dir, "env", "-i"}
	w.tmux(append(append(words, l.Env...), l.Argv...)...)
	w.wait("a conversation to begin", func() bool { return w.count("SessionStart") > before })
	return l
}

// read returns a file of the netsky's.
func (w *stage) notes(name string) string {
	data, _ := os.ReadFile(filepath.Join(w.bin, name))
	return string(data)
}

// count is how often a hook has run.
func (w *stage) count(event string) int {
	n := 0
	for line := range strings.Lines(w.notes("hooks")) {
		if strings.HasPrefix(line, event+" ") {
			n++
		}
	}
	return n
}

func (w *stage) screen(id agent.ID) string {
	return w.tmux("capture-pane", "-p", "-t", "="+string(id)+":")
}

// wait waits until a condition holds.
func (w *stage) wait(what string, holds func() bool) {
	w.Helper()
	testworld.WaitOr(w, holds, func() string {
		return fmt.Sprintf("%s\npanes: %s\nhooks: %s", what, w.tmux("list-panes", "-a"), w.notes("hooks"))
	})
}

// mustSay types a text and returns the model's request that holds it.
func (w *stage) mustSay(id agent.ID, text string) anthropic.Request {
	w.Helper()
	w.wait("a prompt", func() bool { return strings.Contains(w.screen(id), "❯") })
	if d, ok := claude.Recognise(w.screen(id)); ok {
		w.Fatalf("a dialog is in the way: %+v\n%s", d, w.screen(id))
	}
	w.tmux("send-keys", "-t", "="+string(id)+":", "-l", text)
	w.wait("the text to stand there", func() bool { return strings.Contains(w.screen(id), text) })
	var got anthropic.Request
	enter := time.Time{} // one that comes early is lost
	w.wait("the model to hear "+text, func() bool {
		for _, q := range w.model.Requests() {
			if slices.Contains(q.Said, text) {
				got = q
				return true
			}
		}
		if time.Since(enter) > 2*time.Second {
			w.tmux("send-keys", "-t", "="+string(id)+":", "Enter")
			enter = time.Now()
		}
		return false
	})
	return got
}

// mustEnd kills the agent's program as a crash would.
func (w *stage) mustEnd(id agent.ID) {
	w.Helper()
	pid := testworld.Got(strconv.Atoi(strings.TrimSpace(w.tmux("display-message", "-p", "-t", "="+string(id)+":", "#{pane_pid}"))))(w)
	testworld.Must(w, syscall.Kill(pid, syscall.SIGKILL))
	w.wait("the session's end", func() bool { return !strings.Contains(w.tmux("list-sessions", "-F", "#{session_name}"), string(id)) })
}

func TestRealCheck(t *testing.T) {
	t.Parallel()
	w := mustStage(t)
	begun := time.Now()
	testworld.Equal(t, w.runtime.Check(w.ctx, w.launch("agent1")), nil, "Check with a key")
	t.Logf("Check with a key: %v", time.Since(begun))
	w.env = slices.DeleteFunc(w.env, func(e string) bool { return strings.HasPrefix(e, "ANTHROPIC_") })
	begun = time.Now()
	testworld.ErrorIs(t, w.runtime.Check(w.ctx, w.launch("agent1")), claude.ErrLogin, "Check without a key")
	t.Logf("Check without a key: %v", time.Since(begun))
	w.mustWrite(filepath.Join(w.config, "settings.json"), `{"apiKeyHelper": "echo k"}`)
	w.rig.fresh()
	testworld.Equal(t, w.runtime.Check(w.ctx, w.launch("agent1")), nil, "Check with a helper in the person's settings")
	if len(w.model.Requests()) > 0 {
		t.Errorf("a check spoke to the model")
	}
}

// TestRealModes starts one agent in each mode: no dialog comes, the model is told
// the prompt, sees our tools and none that asks a person, and the hooks run.
func TestRealModes(t *testing.T) {
	t.Parallel()
	for mode, footer := range map[string]string{
		"bypassPermissions": "bypass permissions on", "manual": "manual mode on", "acceptEdits": "accept edits on",
		"plan": "plan mode on", "auto": "auto mode on", "dontAsk": "don't ask on",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := mustStage(t)
			w.options.Mode, w.options.IMessage = mode, true
			l := w.mustUp(agent.Root)
			w.model.Handle(func(q anthropic.Request) *anthropic.Reply {
				if len(q.Outputs) > 0 {
					return nil
				}
				return &anthropic.Reply{Calls: []anthropic.Call{{Name: "mcp__agent__reply", Arguments: map[string]any{}}, {Name: "mcp__imessage__reply", Arguments: map[string]any{}}}}
			})
			q := w.mustSay(agent.Root, "call both")
			if !strings.Contains(q.System, "You are agent0.") {
				t.Errorf("the system prompt is %.300s…", q.System)
			}
			wanted := []string{"mcp__agent__reply", "mcp__agent__send", "mcp__imessage__reply"}
			unwanted := []string{"AskUserQuestion", "SendMessage", "ListAgents", "CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "RemoteTrigger", "EnterPlanMode", "ExitPlanMode"}
			if mode == "plan" {
				unwanted = unwanted[:8]
			}
			w.wait("the tool's answer", func() bool { return w.count("Stop") == 1 })
			list := w.model.Requests()
			last := list[len(list)-1]
			for _, tool := range wanted {
				if !slices.Contains(last.Tools, tool) {
					t.Errorf("%s is not among %q", tool, last.Tools)
				}
			}
			for _, tool := range unwanted {
				for _, q := range list {
					if slices.Contains(q.Tools, tool) || strings.Contains(string(q.Body), `\n`+tool+`\n`) {
						t.Errorf("the model is offered %s", tool)
					}
				}
			}
			if want := []string{"it is done", "it is done"}; !slices.Equal(last.Outputs, want) {
				t.Errorf("the tools gave %q, want %q", last.Outputs, want)
			}
			testworld.Contains(t, w.screen(agent.Root), footer)
			asks := 0
			if mode == "plan" { // which asks for what changes anything, whatever the rules allow
				asks = 2
			}
			for event, want := range map[string]int{"SessionStart": 1, "UserPromptSubmit": 1, "PreToolUse": 2, "PostToolUse": 2, "Stop": 1, "PermissionRequest": asks} {
				testworld.Equal(t, w.count(event), want, "%s ran", event)
			}
			if got := w.notes("served"); !strings.Contains(got, "io serve -s agent\n") || !strings.Contains(got, "io serve -s imessage\n") {
				t.Errorf("served %q", got)
			}
			for _, v := range []string{"AGENT_N=0", "NETSKY_START=" + l.Start, "NETSKY_HOME=" + w.home.Root(), "NETSKY_PROMPT_FILE=" + l.PromptFile} {
				testworld.Contains(t, w.notes("env.agent"), v+"\n", "the server's environment lacks %s", v)
			}
		})
	}
}

// TestRealResume goes on after a kill with what was said, and with the prompt of
// the day.
func TestRealResume(t *testing.T) {
	t.Parallel()
	w := mustStage(t)
	first := w.mustUp("agent1")
	w.mustSay("agent1", "remember plums")
	w.wait("the conversation on disk", func() bool { // Claude Code writes it a while after the turn
		files, _ := filepath.Glob(filepath.Join(w.config, "projects", "*", "*.jsonl"))
		data, _ := os.ReadFile(strings.Join(files, ""))
		return strings.Contains(string(data), "echo: remember plums")
	})
	w.mustEnd("agent1")

	testworld.Must(t, w.home.WriteFile(home.PromptFile("agent1"), []byte("You are new.\n"), false))
	l := agent.Launch{Agent: "agent1", Start: agent.NewStart(), Dir: w.work, PromptFile: first.PromptFile, Env: slices.Clone(w.env)}
	testworld.Must(t, w.runtime.Prepare(w.ctx, &l))
	if session := word(first.Argv, "--session-id"); l.Resume != session || word(l.Argv, "--resume") != session {
		t.Fatalf("Resume = %q, want %q: %q", l.Resume, session, l.Argv)
	}
	words := []string{"new-session", "-d", "-s", "agent1", "-x", "180", "-y", "50", "-c", l.Dir, "env", "-i"}
	w.tmux(append(append(words, l.Env...), l.Argv...)...)
	q := w.mustSay("agent1", "and pears")
	if !slices.Contains(q.Said, "remember plums") {
		t.Errorf("said %q", q.Said)
	}
	if !strings.Contains(q.System, "You are new.") || strings.Contains(q.System, "You are agent1.") {
		t.Errorf("the system prompt is the old one")
	}
}

// TestRealUnused begins anew if a start died before its first message: Claude
// Code would refuse to resume what it never wrote down.
func TestRealUnused(t *testing.T) {
	t.Parallel()
	w := mustStage(t)
	first := w.mustUp("agent1")
	w.mustEnd("agent1")
	second := w.mustUp("agent1")
	if second.Resume != "" || word(second.Argv, "--session-id") == word(first.Argv, "--session-id") {
		t.Errorf("Argv = %q", second.Argv)
	}
	w.mustSay("agent1", "hello")
}

// TestRealSettings starts with a person's own hooks, rules and servers beside
// ours, of which the one let through is started and the other is not.
func TestRealSettings(t *testing.T) {
	t.Parallel()
	w := mustStage(t)
	w.options.Settings = filepath.Join(w.work, "mine.json")
	w.options.MCP = []string{"named"}
	w.mustWrite(w.options.Settings, `{"permissions": {"deny": ["WebSearch"]}, "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo mine >> hooks.mine"}]}]}}`)
	server := func(name string) string {
		return fmt.Sprintf(`{"command": %q, "args": ["io", "serve", "-s", %q]}`, w.runtime.Binary, name)
	}
	w.mustWrite(filepath.Join(w.work, ".mcp.json"), `{"mcpServers": {"named": `+server("named")+`, "unnamed": `+server("unnamed")+`}}`)
	l := w.mustUp("agent1")
	testworld.EqualList(t, w.runtime.LeftOut(l), []string{"unnamed"}, "LeftOut")
	q := w.mustSay("agent1", "hello")
	w.wait("the end of the turn", func() bool { return w.count("Stop") == 1 })
	if strings.Contains(string(q.Body), "WebSearch\\n") || slices.Contains(q.Tools, "WebSearch") {
		t.Error("a rule of the person's is gone")
	}
	if data, err := os.ReadFile(filepath.Join(w.work, "hooks.mine")); string(data) != "mine\n" || w.count("UserPromptSubmit") != 1 {
		t.Errorf("the person's hook: %q, %v; ours: %d", data, err, w.count("UserPromptSubmit"))
	}
	if got := w.notes("served"); !strings.Contains(got, "-s named\n") || strings.Contains(got, "unnamed") {
		t.Errorf("served %q", got)
	}
}
