//go:build live

package mcp_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// mustClaude runs the real Claude Code once with our server, and gives what the
// model was asked and what was printed.
func (s *station) mustClaude(prompt string, args ...string) (asked []anthropic.Request, out string) {
	s.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		if os.Getenv("CI") != "" {
			s.Fatal("NETSKY_TEST_CLAUDE is not set: scripts/test installs Claude Code and sets it")
		}
		s.Skip("NETSKY_TEST_CLAUDE is not set: scripts/test installs Claude Code and sets it")
	}
	model, err := anthropic.Start()
	testworld.Must(s, err)
	defer model.Close()
	config, work := s.TempDir(), s.TempDir()
	testworld.Must(s, anthropic.WriteHome(config, work))
	exe, err := os.Executable()
	testworld.Must(s, err)
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"agent": map[string]any{"command": exe, "env": map[string]string{"MCP_SERVER_HOME": s.home.Root()}},
	}})
	testworld.Must(s, err)
	file := filepath.Join(config, "servers.json")
	testworld.Must(s, os.WriteFile(file, servers, 0o600))
	args = append([]string{"-p", prompt, "--mcp-config", file, "--strict-mcp-config", "--dangerously-skip-permissions"}, args...)
	c := exec.CommandContext(s.ctx, program, args...)
	c.Dir = work
	c.Env = append(append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + config}, model.Env(config)...), anthropic.Sandbox)
	printed, err := c.CombinedOutput()
	if err != nil {
		s.Fatalf("claude: %v\n%s", err, printed)
	}
	return model.Requests(), string(printed)
}

// The real Claude Code has all our tools before its first word, its model sends
// by them, and when it ends the server does.
func TestClaudeCode(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	id := s.mustSend(envelope.Envelope{From: agent.Owner, Text: "what?"})
	debug := filepath.Join(t.TempDir(), "debug.txt")
	asked, out := s.mustClaude(strings.Join([]string{
		`loop: call mcp__agent__send {"to":"agent2","text":"a \"b\" é","requires_ack":true}`,
		`loop: call mcp__agent__send {"to":"owner","text":"refused"}`,
		`loop: call mcp__agent__reply {"id":"` + id + `","text":"that"}`,
		`loop: call mcp__agent__peek {"agent":"agent2"}`,
		`loop: say over`,
	}, "\n"), "--debug-file", debug, "--dangerously-load-development-channels", "server:agent")
	if len(asked) < 2 {
		t.Fatalf("%d requests: %s", len(asked), out)
	}
	for _, name := range []string{"send", "reply", "inbox", "agents", "peek", "task_add", "task_update", "tasks", "note"} {
		if !slices.Contains(asked[0].Tools, "mcp__agent__"+name) {
			t.Errorf("the first request lacks %s: %v", name, asked[0].Tools)
		}
	}
	outputs := strings.Join(asked[len(asked)-1].Outputs, "\n")
	for _, word := range []string{"sent to agent2, id ", "not sent: agent1: is not allowed to write to owner", "answered " + id, "| ok"} {
		testworld.Contains(t, outputs, word, "the model did not hear")
	}
	got := s.mail("agent2")
	if len(got) != 1 || got[0].From != "agent1" || got[0].Text != `a "b" é` || !got[0].RequiresAck {
		t.Errorf("sent %+v", got)
	}
	if got := s.mail(agent.Owner); len(got) != 1 || got[0].InReplyTo != id {
		t.Errorf("answered %+v", got)
	}
	testworld.Wait(t, "the server's end", func() bool { return s.serverGone() })
	data := testworld.Got(os.ReadFile(debug))(t)
	testworld.Contains(t, string(data), `"protocolEra":"legacy"`, "in the era that Claude Code sees, a server cannot push")
}

// serverGone says whether the server has begun and is no more.
func (s *station) serverGone() bool {
	data, err := s.home.ReadFile("run/began", 100)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(string(data))
	if err != nil {
		return false
	}
	_, err = proc.Find(pid)
	return errors.Is(err, fs.ErrNotExist)
}
