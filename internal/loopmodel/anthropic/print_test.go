//go:build live

package anthropic_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

func TestPrint(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	say := w.mustTalk(w.env()) // one start for all
	for _, tt := range []struct {
		name, prompt, want string
	}{
		{"users", "loop: users", "users: 1"},
		{"echo", "hello there", "echo: hello there"},
		{"say", "x\nloop: say  two words", "two words"},
		{"delay", "loop: sleep 10ms\nloop: say late", "late"},
		{"shell", "loop: shell echo $((40+2))", "tool: 42"},
		{"shell, then say", "loop: shell echo 1\nloop: say done", "done"},
		{"escaped", "<channel source=\"agent\" chat_id=\"agent0\" from=\"agent0\" ts=\"\" id=\"m1\">\nloop: shell printf &#39;&lt;%s&gt;&#39; a&amp;&amp;true\n</channel>", "tool: <a>"},
		{"message", "<channel source=\"agent\" chat_id=\"agent0\" from=\"agent0\" ts=\"\" id=\"m1\">\na &lt;b&gt;\n</channel>", "echo: a <b>"},
		{"no JSON", "loop: call Bash {", "not JSON: {"},
	} {
		if got, failed := say(tt.prompt); got != tt.want || failed {
			t.Errorf("%s: claude -p %q = %q (failed: %v), want %q", tt.name, tt.prompt, got, failed, tt.want)
		}
	}
	if got, _ := say("loop: long"); len(got) != 200_000 {
		t.Errorf("loop: long gave %d characters, want 200000", len(got))
	}
	testworld.Len(t, w.model.Strays(), 0, "the program also asked for")
}

func TestRequest(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	const id = "0a0a0a0a-0b0b-4c0c-8d0d-0e0e0e0e0e0e"
	w.mustPrint("loop: shell echo out", "--session-id", id, "--append-system-prompt", "RULES of the test", "--model", "claude-opus-4-7")
	testworld.Equal(t, w.mustPrint("loop: users", "--resume", id), "users: 2", "users: 2")
	list := w.model.Requests()
	if len(list) != 3 {
		t.Fatalf("%d requests, want 3", len(list))
	}
	first, second, third := list[0], list[1], list[2]
	if first.Session != id || first.Model != "claude-opus-4-7" || !strings.Contains(first.System, "RULES of the test") || !slices.Contains(first.Tools, "Bash") {
		t.Errorf("first request: session %q, model %q, tools %q, system prompt %q", first.Session, first.Model, first.Tools, first.System)
	}
	if first.Last() != "loop: shell echo out" || first.Fresh != 1 || len(first.Outputs) != 0 {
		t.Errorf("first request said %q, %d fresh, outputs %q", first.Said, first.Fresh, first.Outputs)
	}
	if second.Fresh != 0 || !slices.Equal(second.Outputs, []string{"out"}) {
		t.Errorf("second request has %d fresh, outputs %q; want 0, [out]", second.Fresh, second.Outputs)
	}
	if want := []string{"loop: shell echo out", "loop: users"}; !slices.Equal(third.Said, want) || third.Fresh != 1 || len(third.Outputs) != 0 {
		t.Errorf("third request said %q, %d fresh, outputs %q; want %q, 1, none", third.Said, third.Fresh, third.Outputs, want)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	file := filepath.Join(w.dir, "a.txt")
	w.mustPrint("loop: write " + file + " some words")
	if data, err := os.ReadFile(file); string(data) != "some words" {
		t.Errorf("%s holds %q, %v", file, data, err)
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	talks := map[bool]func(string) (string, bool){ // by login
		false: w.mustTalk(w.env()), true: w.mustTalk(append(w.env(), w.model.LoginEnv(w.home)...)),
	}
	for _, tt := range []struct {
		status int
		login  bool
		want   string
		asked  int
	}{
		{400, false, `^Prompt is too long`, 1},
		{401, false, `^Invalid API key`, 1},
		{401, true, `^Not logged in`, 2}, // the token might have been renewed meanwhile,
		{403, false, `403`, 1},
		{429, false, `rate limit`, 1},
		{429, true, `^You've hit your 5-hour limit · resets \d+:?\d*[ap]m`, 1},
		{500, false, `500 Internal server error`, 1},
		{529, false, `529 Overloaded`, 1},
	} {
		before := len(w.model.Requests())
		out, failed := talks[tt.login](fmt.Sprintf("loop: fail %d", tt.status))
		if !failed || !regexp.MustCompile(tt.want).MatchString(out) {
			t.Errorf("loop: fail %d (login %v) = %q (failed: %v); want an error and %q", tt.status, tt.login, out, failed, tt.want)
		}
		if n := len(w.model.Requests()) - before; n != tt.asked {
			t.Errorf("loop: fail %d (login %v): asked %d times, want %d", tt.status, tt.login, n, tt.asked)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	first := w.mustResult("hello")
	if first.Usage.CacheRead != 0 || first.Usage.CacheWrite < 1000 || first.Usage.Input == 0 || first.Usage.Output == 0 {
		t.Errorf("first usage = %+v, want all written to the cache", first.Usage)
	}
	second := w.mustResult("and again", "--resume", first.SessionID)
	if got, want := second.Usage.CacheRead, first.Usage.CacheWrite; got != want {
		t.Errorf("second turn read %d tokens from the cache, want the %d that the first wrote", got, want)
	}
	if got := second.Usage.CacheWrite; got == 0 || got > first.Usage.CacheWrite/2 {
		t.Errorf("second turn wrote %d tokens to the cache, want what is new: the first wrote %d", got, first.Usage.CacheWrite)
	}
	w.model.Handle(func(anthropic.Request) *anthropic.Reply {
		return &anthropic.Reply{Text: "x", Usage: &anthropic.Usage{Input: 11, Output: 22, CacheRead: 33, CacheWrite: 44}}
	})
	if u := w.mustResult("hello").Usage; u.Input != 11 || u.Output != 22 || u.CacheRead != 33 || u.CacheWrite != 44 {
		t.Errorf("usage = %+v, want 11, 22, 33, 44", u)
	}
}

// Several sessions with one home are told apart.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	const n = 4
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			want := fmt.Sprintf("n%d", i)
			if got, err := w.print(w.env(), "loop: shell sleep 0.2; echo "+want); got != "tool: "+want {
				t.Errorf("session %d = %q, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	asked := map[string]int{}
	for _, q := range w.model.Requests() {
		asked[q.Session]++
	}
	if len(asked) != n {
		t.Errorf("requests by session = %v, want %d sessions", asked, n)
	}
}

// Each of several messages in one text is answered by the reply tool.
func TestReplyAll(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.model.Handle(anthropic.ReplyAll)
	program := testworld.Got(os.Executable())(t)
	log := filepath.Join(w.dir, "replies")
	config := testworld.Got(json.Marshal(map[string]any{"mcpServers": map[string]any{"agent": map[string]any{
		"command": program, "env": map[string]string{"LOOPMODEL_MCP": log},
	}}}))(t)
	prompt := `<channel source="netsky">
a notice
</channel>
<channel source="agent" chat_id="agent0" from="agent0" ts="" id="m1">
one
</channel>
<channel source="agent" chat_id="agent2" from="agent2" ts="" id="m2">
loop: shell echo ran > ran
loop: say two &lt;2&gt;
</channel>`
	testworld.Equal(t, w.mustPrint(prompt, "--mcp-config", string(config), "--strict-mcp-config"), "answered 2", "answered 2")
	data, _ := os.ReadFile(log)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Sort(lines)
	if want := []string{`m1 "echo: one"`, `m2 "two <2>"`}; !slices.Equal(lines, want) {
		t.Errorf("replies = %q, want %q", lines, want)
	}
	testworld.Equal(t, testworld.Err(os.Stat(filepath.Join(w.dir, "ran"))), nil, "the shell command of a message")
}
