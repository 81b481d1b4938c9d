//go:build live

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"netsky/attention"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// A turn that took a message of the owner's gives one answer: what the model
// said by its tool, else its last words, else what failed, and what was broken
// off is told as that.
func TestClaudeAnswerKinds(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	var failed atomic.Bool
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		switch news := strings.Join(q.News(), ""); {
		case strings.Contains(news, "by the tool"):
			return anthropic.ReplyAll(q)
		case strings.Contains(news, "what is badly asked"):
			return anthropic.Error(http.StatusBadRequest, "invalid_request_error", "messages.0: something is wrong")
		case strings.Contains(news, "in bad times") && failed.CompareAndSwap(false, true):
			return anthropic.Fail(http.StatusInternalServerError)
		}
		return nil
	})
	w.config(t, freely)
	w.up1(t)
	if l := w.mustOne(t, w.mustSend(t, "agent1", "answer by the tool")); l.Kind != "reply" || l.Implicit || l.Text != "echo: answer by the tool" {
		t.Errorf("the model's own answer is %+v", l)
	}
	w.mustBe(t, "idle")
	id := w.mustSend(t, "agent1", "loop: say my last words")
	if l := w.mustOne(t, id); l.Kind != "reply" || !l.Implicit || l.Text != "my last words" {
		t.Errorf("an implicit answer is %+v", l)
	}
	recorded := ""
	testworld.WaitOr(t, func() bool {
		recorded = w.must(t, "netsky", "show", id)
		return strings.Contains(recorded, "turn completed (")
	},
		func() string { return "the turn on record: " + recorded })
	mustContain(t, "log", w.must(t, "netsky", "log", "--json"), `"requests": 1`)
	if l := w.mustOne(t, w.mustSend(t, "agent1", "what is badly asked")); l.Kind != "error" || !strings.Contains(l.Text, "something is wrong") {
		t.Errorf("a failed turn's answer is %+v", l)
	}
	if l := w.mustOne(t, w.mustSend(t, "agent1", "loop: say asked in bad times")); l.Kind != "reply" || l.Text != "asked in bad times" {
		t.Errorf("the answer after the vendor has failed once is %+v", l)
	}

	// One Escape ends a turn; the next message is answered as ever.
	id = w.mustSend(t, "agent1", "loop: shell tail -f /dev/null")
	w.mustShow(t, "status", "busy", "Bash: tail -f /dev/null")
	mustContain(t, "interrupt", w.must(t, "netsky", "interrupt", "agent1"), "agent1: its turn has ended")
	if l := w.mustOne(t, id); l.Kind != "error" || !strings.Contains(l.Text, "interrupted") {
		t.Errorf("an interrupted turn's answer is %+v", l)
	}
	for _, verb := range [][]string{{"log", "--actor", "agent1"}, {"show", id}, {"show", "agent1"}} {
		mustContain(t, strings.Join(verb, " "), w.must(t, "netsky", verb...), "turn ended by owner, with netsky interrupt")
	}
	mustContain(t, "the next answer", w.mustAsk(t, "loop: say still here"), "still here")
	w.mustBe(t, "idle")
	mustContain(t, "interrupt", w.must(t, "netsky", "interrupt", "agent1"), "is idle: nothing to interrupt")
	mustContain(t, "peek", w.must(t, "netsky", "peek", "agent1"), "still here")
}

// A question of the model's shows as what the agent waits for, and is answered
// once: by its code, yes or no, in the dashboard, or at the pane.
func TestClaudeApproval(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.config(t, "[claude]\npermission_mode = \"manual\"\n")
	mustContain(t, "agent", w.up1(t), "may read; ask for all else")
	for _, how := range []string{"allow", "deny", "pane", "dashboard", "unread"} {
		file := filepath.Join(w.dir, "src", how)
		id := w.mustSend(t, "agent1", "loop: shell touch "+file)
		code := w.mustApproval(t, "touch "+file)
		w.mustShow(t, "status", "waiting", "permission: Bash: touch "+file)
		if how != "unread" {
			w.mustShow(t, "inbox", "approval", "netsky approve "+code)
		}
		switch how {
		case "unread":
			w.must(t, "netsky", "approve", code)
		case "allow":
			cmd := w.command(t.Context(), "netsky", "approve", code)
			cmd.Env = append(cmd.Env, "AGENT_N=1")
			if out, err := cmd.CombinedOutput(); err == nil {
				t.Errorf("the agent answered for the owner:\n%s", out)
			}
			w.must(t, "netsky", "approve", code)
		case "deny":
			w.must(t, "netsky", "approve", code, "--deny")
		case "dashboard":
			w.mustAnswerInDashboard(t, code, "touch "+file)
		case "pane":
			// A key that comes before the menu is drawn, or as it is drawn anew, is lost.
			testworld.Wait(t, "an answer at the pane", func() bool {
				w.pane(t, "send-keys", "-t", "=agent1:", "Enter")
				return !strings.Contains(w.must(t, "netsky", "approvals"), code)
			})
		}
		w.mustOne(t, id)
		testworld.Equal(t, testworld.Err(os.Stat(file)) == nil, how != "deny", "%s: the command ran", how)
		testworld.Wait(t, "nothing left to approve", func() bool {
			return strings.Contains(w.must(t, "netsky", "approvals"), "nothing waits for your approval")
		})
		// Who decided what is on record: in the log, in the story of the message
		// and in that of the agent. The mail that asked is not left unread.
		decision := map[string]string{
			"allow":     "allowed by the owner, with netsky approve: Bash: touch ",
			"deny":      "denied by the owner, with netsky approve: Bash: touch ",
			"dashboard": "answered in the dashboard, allowed by the owner: Bash: touch ",
			"pane":      " in the pane: Bash: touch ", // answered, or allowed if the command is done by then
		}[strings.Replace(how, "unread", "allow", 1)]
		for _, verb := range [][]string{{"log", "--actor", "agent1"}, {"show", id}, {"show", "approval-" + code}, {"show", "agent1"}} {
			testworld.Wait(t, how+" in "+strings.Join(verb, " "), func() bool {
				return strings.Contains(w.must(t, "netsky", verb...), decision)
			})
		}
		testworld.Lacks(t, w.must(t, "netsky", "inbox"), code, "%s: the decided question is unread", how)
	}
	testworld.Equal(t, strings.Count(w.must(t, "netsky", "log"), " by the owner, with netsky approve: "), 3, "decisions in the log")
}

// mustAnswerInDashboard allows what the item with that code and text asks for, as a page of
// the dashboard does.
func (w *world) mustAnswerInDashboard(t *testing.T, code, text string) {
	t.Helper()
	var list struct{ Needs []attention.Need }
	testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "needs", "--json")), &list))
	n, ok := attention.Find(list.Needs, code)
	if !ok || n.Text != text || n.Kind != attention.Approval || n.Command != "netsky approve "+code {
		t.Fatalf("netsky needs has %+v", list)
	}
	h := w.mustHome(t)
	url, err := h.ReadFile("run/url", 1<<10)
	testworld.Must(t, err)
	token, err := h.ReadFile("run/token", 1<<10)
	testworld.Must(t, err)
	body := fmt.Sprintf(`{"code":%q,"digest":%q,"answer":"allow once"}`, code, n.Digest)
	r, err := http.NewRequestWithContext(t.Context(), "POST", strings.TrimSpace(string(url))+"/api/approval-answer", strings.NewReader(body))
	testworld.Must(t, err)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	testworld.Must(t, err)
	defer resp.Body.Close()
	if said, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("the dashboard answers %s %s", resp.Status, said)
	}
	out, err := w.command(t.Context(), "netsky", "approve", code, "--deny").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "it is settled already (answered in the dashboard, allowed by the owner), and nothing has changed") {
		t.Errorf("the second answer: %v\n%s", err, out)
	}
}

// A receiver that dies takes no mail with it: status says that it has gone, the
// agent is started again when it is idle, and goes on with its conversation. So
// it does when all of it has died; a person's /clear and --fresh begin another.
func TestClaudeConversation(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	h := w.mustHome(t)
	session := func() claude.State {
		return testworld.Got(claude.LoadState(h, "agent1"))(t)
	}
	users := func(want string) {
		t.Helper()
		if got := w.mustAsk(t, "loop: users"); got != "users: "+want {
			t.Errorf("the conversation has %q, want %s", got, want)
		}
	}
	// Claude Code writes its conversation's file a moment after the turn. What
	// ends in that moment has lost the turn, whoever ended it.
	written := func(text string) {
		t.Helper()
		testworld.Wait(t, "a conversation's file with "+text, func() bool {
			data, err := os.ReadFile(session().Transcript)
			return err == nil && strings.Contains(string(data), text)
		})
	}
	w.config(t, freely)
	w.up1(t)
	users("1")
	first := session()
	testworld.Wait(t, "the conversation on record", func() bool {
		return strings.Contains(w.must(t, "netsky", "show", first.Start), first.Session)
	})

	// Its receiver dies in a turn.
	busy := w.mustSend(t, "agent1", "loop: shell sleep 4; echo slept")
	w.mustShow(t, "status", "Bash: sleep 4")
	holder, ok := h.LockHolder("receiver-agent1")
	if !ok {
		t.Fatal("nobody holds the mailbox")
	}
	testworld.Must(t, syscall.Kill(holder.PID, syscall.SIGKILL))
	later := w.mustSend(t, "agent1", "loop: users")
	w.mustShow(t, "status", "its receiver has exited", "1 waiting")
	if l := w.mustOne(t, busy); l.Text != "tool: slept" {
		t.Errorf("the turn that went on alone answered %+v", l)
	}
	if l := w.mustOne(t, later); l.Text != "users: 3" {
		t.Errorf("after the restart: %+v, want users: 3", l)
	}
	if s := session(); s.Session != first.Session || s.Start == first.Start {
		t.Errorf("restarted, it has %+v, before it had %+v", s, first)
	}

	// All of it dies, with no daemon that would start it again before anybody has seen that.
	written("users: 3")
	w.must(t, "netsky", "daemon", "stop")
	w.pane(t, "kill-server")
	w.mustBe(t, "dead")
	w.up1(t)
	users("4")

	// A person begins another conversation in the pane.
	w.pane(t, "send-keys", "-t", "=agent1:", "-l", "/clear")
	w.pane(t, "send-keys", "-t", "=agent1:", "Enter")
	testworld.Wait(t, "another conversation", func() bool { return session().Session != first.Session })
	second := session()
	users("1")
	written("users: 1")
	w.must(t, "netsky", "daemon", "stop")
	testworld.Must(t, syscall.Kill(testworld.Got(h.LoadKeeper("agent1"))(t).PID, syscall.SIGKILL))
	w.mustBe(t, "dead")
	w.up1(t)
	users("2")
	testworld.Equal(t, session().Session, second.Session, "it goes on with")
	w.up1(t, "--fresh")
	users("1")
	w.must(t, "netsky", "down", "--all", "--force", "--verify")
}

// A person's hooks run beside netsky's, their settings hold, and of their MCP
// servers those that are left out are named once.
func TestClaudeOwnSettings(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	global := filepath.Join(w.dir, "cc", ".claude.json")
	var known map[string]any
	data, err := os.ReadFile(global)
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	testworld.Must(t, err)
	known["mcpServers"] = map[string]any{
		"github": map[string]any{"type": "stdio", "command": "/bin/false"},
		"notes":  map[string]any{"type": "stdio", "command": "/bin/false"},
	}
	hook := func(file string) map[string]any {
		return map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{
			"hooks": []any{map[string]any{"type": "command", "command": "touch '" + filepath.Join(w.dir, file) + "'"}},
		}}}}
	}
	for file, value := range map[string]any{
		global: known, filepath.Join(w.dir, "cc", "settings.json"): hook("ran-theirs"), filepath.Join(w.dir, "mine.json"): hook("ran-named"),
	} {
		data, err := json.Marshal(value)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		testworld.Must(t, err)
	}
	w.config(t, freely+"settings = \""+filepath.Join(w.dir, "mine.json")+"\"\nmcp = [\"notes\"]\n")
	out := w.up1(t)
	mustContain(t, "agent", out, "agents on Claude Code do not get these MCP servers of yours: github (name them in `mcp` under [claude]")
	w.mustAsk(t, "hello")
	for _, file := range []string{"ran-theirs", "ran-named"} {
		testworld.Wait(t, "the hook "+file, func() bool {
			_, err := os.Stat(filepath.Join(w.dir, file))
			return err == nil
		})
	}
	w.must(t, "netsky", "down", "1")
	testworld.Lacks(t, w.up1(t), "github", "said twice")
	servers, err := os.ReadFile(filepath.Join(w.home, home.Mailbox("agent1"), "mcp-config.json"))
	testworld.Must(t, err)
	mustContain(t, "mcp-config.json", string(servers), `"agent"`, `"notes"`)
	if strings.Contains(string(servers), "github") || strings.Contains(string(servers), "imessage") {
		t.Errorf("too many servers:\n%s", servers)
	}
}
