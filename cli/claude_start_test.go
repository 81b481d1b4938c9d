//go:build live

package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// A yes to a dialog is given only where the owner's own command says it: the
// directory that an up names is trusted, the key of the environment is not.
func TestClaudeDialogs(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	config := filepath.Join(w.dir, "cc")
	testworld.Must(t, anthropic.WriteHomeWithout(config, anthropic.APIKey))
	w.config(t, freely)
	mustContain(t, "agent", w.up1(t), "agent1         waiting", "custom API key")
	w.mustShow(t, "status", "waiting", "custom API key")
	w.mustShow(t, "inbox", "agent1 is waiting at a dialog in its pane (custom API key)", "netsky attach agent1")
	mustContain(t, "netsky", w.must(t, "netsky"), "next: netsky approve ", "answers what agent1 waits at with yes")
	id := w.mustSend(t, "agent1", "hello")
	mustContain(t, "peek", w.must(t, "netsky", "peek", "agent1"), "Do you want to use this API key?", "❯ No")

	// The owner says yes; what follows is what their own command has answered.
	w.pane(t, "send-keys", "-t", "=agent1:", "Up", "Enter")
	if l := w.mustOne(t, id); l.Text != "echo: hello" {
		t.Errorf("the answer is %+v", l)
	}
	mustContain(t, "log", w.must(t, "netsky", "log"), "answered with yes, implied by how it was started: workspace trust: "+filepath.Join(w.dir, "src"))
	known := testworld.Got(os.ReadFile(filepath.Join(config, ".claude.json")))(t)
	if n := strings.Count(string(known), `"hasTrustDialogAccepted": true`); n != 1 {
		t.Errorf("%d directories are trusted, want one:\n%s", n, known)
	}
	testworld.Len(t, model.Strays(), 0, "asked for what the model does not")
}

// One answer of the owner's to the dialog that several agents show: nobody has to
// go to each pane, and no agent can say it.
func TestClaudeSameDialog(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	testworld.Must(t, anthropic.WriteHomeWithout(filepath.Join(w.dir, "cc"), anthropic.APIKey))
	w.config(t, freely)
	out := w.mustUp(t, "up", "agent1", "agent2", "agent3", "--type", "claude", "--dir", filepath.Join(w.dir, "src"))
	mustContain(t, "up", out, `agent1 to agent3 wait for you at the same dialog: "custom API key`, "`netsky approve agent1 --all-same` accepts for all")
	mustContain(t, "status", w.must(t, "netsky", "status"), "agent1 to agent3 wait at the same dialog: custom API key")
	mustContain(t, "approvals", w.must(t, "netsky", "approvals"), "`netsky approve agent1 --all-same`")
	w.mustShow(t, "inbox", "or netsky approve agent", "--all-same")
	if status, out := w.within(t, []string{"AGENT_N=0"}, "", "netsky", "approve", "agent1", "--all-same"); status != 2 {
		t.Errorf("agent0 answers with exit status %d\n%s", status, out)
	}

	// One first: the others are named.
	out = w.must(t, "netsky", "approve", "agent2")
	mustContain(t, "approve", out, "allowed: agent2: custom API key: Detected a custom API key in your environment sk-ant-", "agent1, agent3: waiting at the same dialog; `netsky approve agent1 --all-same`")
	if l := w.mustOne(t, w.mustSend(t, "agent2", "hello")); l.Text != "echo: hello" {
		t.Errorf("the answer is %+v", l)
	}
	// The page is told which dialogs can be answered so. One that waits at something
	// else is not answered, and named.
	w.mustDecidable(t, "agent1", "agent3")
	w.mustUp(t, "up", "agent4", "--type", "demo", "--dir", filepath.Join(w.dir, "src"))
	w.mustSend(t, "agent4", "/dialog Go on?")
	w.mustShow(t, "status", "Go on?")
	var list struct{ Needs []attention.Need }
	testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "needs", "--json")), &list))
	i := slices.IndexFunc(list.Needs, func(n attention.Need) bool {
		return n.Kind == attention.Dialog && slices.Equal(n.Agents, []agent.ID{"agent1", "agent3"})
	})
	if i < 0 {
		t.Fatalf("netsky needs has %+v", list)
	}
	out = w.must(t, "netsky", "approve", list.Needs[i].Code) // the same as agent3 --all-same
	mustContain(t, "approve", out, "allowed: agent1: custom API key", "allowed: agent3: custom API key", "agent4: waits at a different dialog, which was not answered")
	w.mustDecidable(t)
	for _, to := range []string{"agent1", "agent3"} {
		if l := w.mustOne(t, w.mustSend(t, to, "hello")); l.Text != "echo: hello" {
			t.Errorf("%s: the answer is %+v", to, l)
		}
	}
	for _, id := range []string{"agent1", "agent2", "agent3"} {
		log := w.must(t, "netsky", "log", "--actor", id)
		mustContain(t, "log", log, "answered with yes, as the owner decided, with netsky approve: custom API key")
	}
	status, out := w.within(t, nil, "", "netsky", "approve", "agent1")
	testworld.Equal(t, status, 1, "an answer to nothing: exit status")
	mustContain(t, "an answer to nothing", out, "agent1: nothing was answered: it is idle")
}

// mustDecidable waits until the dashboard is told that these agents, and no others,
// wait at a dialog that `netsky approve` answers.
func (w *world) mustDecidable(t *testing.T, want ...agent.ID) {
	t.Helper()
	h := w.mustHome(t)
	url := testworld.Got(h.ReadFile("run/url", 1<<10))(t)
	token := testworld.Got(h.ReadFile("run/token", 1<<10))(t)
	var got []agent.ID
	testworld.WaitOr(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), "GET", strings.TrimSpace(string(url))+"/api/agents", nil)
		testworld.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(r)
		testworld.Must(t, err)
		var v struct {
			Items []struct {
				ID        agent.ID
				Decidable bool
			}
		}
		err = json.NewDecoder(resp.Body).Decode(&v)
		resp.Body.Close()
		testworld.Must(t, err)
		got = nil
		for _, a := range v.Items {
			if a.Decidable {
				got = append(got, a.ID)
			}
		}
		return slices.Equal(got, want)
	}, func() string {
		return fmt.Sprintf("the dashboard is told that %v can be answered, want %v", got, want)
	})
}

// Of a Claude Code that does not start, up prints why and not its pictures, and of
// several that fail alike once.
func TestClaudeFailedStart(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	fake := filepath.Join(w.dir, "fake")
	testworld.Must(t, os.Mkdir(fake, 0o700))
	screen := testworld.Got(os.ReadFile("../testdata/screens/claude/offline.70.txt"))(t)
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo '2.1.329 (Claude Code)'; exit; }\ncat <<'END'\n" + string(screen) + "END\nexit 1\n"
	testworld.Must(t, os.WriteFile(filepath.Join(fake, "claude"), []byte(script), 0o700))
	w.prepend(fake)
	w.config(t, freely)
	status, out := w.within(t, nil, "", "netsky", "up", "agent1", "agent2", "--type", "claude", "--dir", filepath.Join(w.dir, "src"))
	testworld.Equal(t, status, 1, "exit status")
	if strings.Contains(out, "█") || strings.Contains(out, "░") || strings.Contains(out, "Welcome") {
		t.Errorf("it prints pictures:\n%s", out)
	}
	for line, n := range map[string]int{
		"  | Unable to connect to Anthropic services": 1, "  | Failed to connect to api.anthropic.com: ENOTFOUND": 1, "failed    exited 1": 2, "failed    exited 1, as agent": 1,
	} {
		if got := strings.Count(out, line); got != n {
			t.Errorf("%q stands there %d times, want %d:\n%s", line, got, n, out)
		}
	}
}

// Nothing is typed into a pane that shows what nobody knows.
func TestClaudeUnknownDialog(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	fake, typed := filepath.Join(w.dir, "fake"), filepath.Join(w.dir, "typed")
	testworld.Must(t, os.Mkdir(fake, 0o700))
	rule := strings.Repeat("─", 200)
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo '2.1.329 (Claude Code)'; exit; }\nstty -echo -icanon\n" +
		"printf '\\033[2J\\033[H" + rule + "\\n  Something new has come up\\n\\n  ❯ 1. Yes, all of it\\n    2. No\\n\\n  Enter to confirm · Esc to cancel\\n'\n" +
		"cat >'" + typed + "'\n"
	testworld.Must(t, os.WriteFile(filepath.Join(fake, "claude"), []byte(script), 0o700))
	w.prepend(fake)
	w.config(t, freely)
	mustContain(t, "agent", w.up1(t), "agent1         waiting", "unknown dialog: Something new has come up")
	w.mustSend(t, "agent1", "hello")
	w.mustShow(t, "inbox", "agent1 is waiting at a dialog in its pane (unknown dialog): Something new has come up")
	w.mustShow(t, "status", "waiting", "unknown dialog", "1 waiting")
	if data, err := os.ReadFile(typed); err != nil || len(data) > 0 {
		t.Errorf("typed into it: %q (%v)", data, err)
	}
}

// Nobody is put to work with more power than somebody has said, and what stands
// in the way is named before anything is made.
func TestClaudeConsent(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	src := filepath.Join(w.dir, "src")
	nothing := func(after string) {
		t.Helper()
		if out := w.must(t, "netsky", "status"); !strings.Contains(out, "no agents yet") || strings.Contains(out, "daemon running") {
			t.Errorf("%s, and yet something was made:\n%s", after, out)
		}
	}
	args := []string{"agent", "1", "--type", "claude", "--dir", src}
	mustContain(t, "the refusal", w.refused(t, "netsky", args...), "permission_mode", "[claude]", "netsky.toml", "--yes")
	nothing("without an answer")

	status, out := w.within(t, []string{"ANTHROPIC_API_KEY=", "ANTHROPIC_BASE_URL="}, "", "netsky", append(args, "--yes")...)
	if status == 0 {
		t.Error("started without a login")
	}
	mustContain(t, "without a login", out, "not logged in", "/login", "ANTHROPIC_API_KEY")
	nothing("without a login")

	if os.Geteuid() == 0 {
		status, out = w.within(t, []string{"IS_SANDBOX="}, "", "netsky", append(args, "--yes")...)
		if status == 0 {
			t.Error("as root outside of a sandbox it started")
		}
		mustContain(t, "as root", out, "refuses bypassPermissions as root unless IS_SANDBOX=1", "acceptEdits")
		nothing("as root outside of a sandbox")
		data, _ := os.ReadFile(filepath.Join(w.home, home.ConfigFile))
		testworld.Lacks(t, string(data), "permission_mode = \"b", "an answer was put down with which nothing can start:\n%s", data)
	}

	// On a terminal it asks.
	s := w.mustScreen(t, "asking", "env -u TMUX -u TMUX_PANE sh")
	command := "clear; netsky agent 1 --type claude --dir " + src
	s.types(command, "Enter")
	s.shows(`What may Claude Code agents do on this machine without asking you\?`)
	s.shows(`1  do everything you can do, without asking\n +2  edit in its directory, commit and check in its worktree; ask for the rest\n +\(in a worktree of its own: plain .git add. (?s:.*)\n +3  read; ask for all else`)
	s.types("", "Enter")
	s.shows(`no permission mode was chosen; nothing was started`)
	nothing("nothing chosen")
	s.types(command, "Enter")
	s.shows(`1, 2 or 3 \(anything else starts nothing\):\s*$`)
	s.types("3", "Enter")
	s.shows(`agent1 +ready +claude .* may read; ask for all else`)
	data := testworld.Got(os.ReadFile(filepath.Join(w.home, home.ConfigFile)))(t)
	mustContain(t, "netsky.toml", string(data), "[claude]", `permission_mode = "manual"`)
}

// A down that dies after its agents have obeyed leaves agents that take no mail:
// they do not pass for idle, and the next up starts them again, with their
// conversation and what had come meanwhile.
func TestClaudeFinishedForADeadDown(t *testing.T) {
	t.Parallel()
	w, _ := mustClaude(t)
	w.config(t, freely)
	w.up1(t)
	testworld.Equal(t, w.mustAsk(t, "loop: users"), "users: 1", "before")
	w.mustBe(t, "idle")
	la := testworld.Got(w.mustHome(t).LoadLaunch("agent1"))(t)
	request := fmt.Sprintf(`{"from":"owner","kind":"shutdown","start":%q,"text":"the end","ts":%q}`, la.Start, time.Now().UTC().Format(time.RFC3339))
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, home.Mailbox("agent1"), "inbox", "end.json"), []byte(request), 0o600))
	w.mustShow(t, "status", "agent1         down", "finished as requested")
	if status, out := w.within(t, nil, "", "netsky", "ask", "agent1", "hello"); status != 1 {
		t.Errorf("asked, it gave status %d:\n%s", status, out)
	}
	id := w.mustSend(t, "agent1", "loop: users")
	mustContain(t, "agent", w.up1(t), "agent1         ready")
	if l := w.mustOne(t, id); l.Text != "users: 2" {
		t.Errorf("started again: %+v, want users: 2", l)
	}
}

// An agent whose conversation Claude Code has removed begins a new one: up says so, the
// owner has mail, and the model is told what the records hold.
func TestClaudeConversationGone(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	h := w.mustHome(t)
	w.config(t, freely)
	w.up1(t)
	mustContain(t, "the answer", w.mustAsk(t, "hello first"), "hello first")
	w.must(t, "netsky", "down", "agent1")
	s := testworld.Got(claude.LoadState(h, "agent1"))(t)
	testworld.Must(t, os.Remove(s.Transcript))
	if _, out := w.within(t, nil, "", "netsky", "doctor"); !strings.Contains(out, "agent1: the file of its conversation is gone") {
		t.Errorf("doctor:\n%s", out)
	}
	said := "agent1: its conversation " + s.Session + " can't be continued: Claude Code has no file of it in " + filepath.Dir(filepath.Dir(s.Transcript))
	mustContain(t, "up", w.up1(t), said)
	mustContain(t, "the mail", w.must(t, "netsky", "inbox", "--all"), said)
	mustContain(t, "the log", w.must(t, "netsky", "log"), s.Session+" can't be continued")
	mustContain(t, "the answer", w.mustAsk(t, "hello second"), "hello second")
	told := false
	for _, q := range model.Requests() {
		for _, text := range q.News() {
			told = told || strings.Contains(text, "Your conversation before is gone") && strings.Contains(text, "hello first") && strings.Contains(text, "hello second")
		}
	}
	if !told {
		t.Error("the new conversation was not told that it replaces one")
	}
}
