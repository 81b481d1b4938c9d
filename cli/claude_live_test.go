//go:build live

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// mustClaude is a world in which the real Claude Code is installed, and speaks
// to a model on the loopback. Agents work in the directory src of the world.
func mustClaude(t testing.TB) (*world, *anthropic.Server) {
	t.Helper()
	w := mustWorld(t)
	return w, w.addClaude(t)
}

func (w *world) addClaude(t testing.TB) *anthropic.Server {
	t.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		t.Fatal("NETSKY_TEST_CLAUDE is not set: scripts/test installs Claude Code and sets it")
	}
	model := testworld.Got(anthropic.Start())(t)
	t.Cleanup(func() { model.Close() })
	config, bin, src := filepath.Join(w.dir, "cc"), filepath.Join(w.dir, "b"), filepath.Join(w.dir, "src")
	for _, dir := range []string{config, bin, src} {
		testworld.Must(t, os.Mkdir(dir, 0o700))
	}
	testworld.Must(t, os.Symlink(program, filepath.Join(bin, "claude")))
	testworld.Must(t, anthropic.WriteHome(config, w.dir))
	w.prepend(bin)
	w.env = append(append(w.env, model.Env(config)...), anthropic.Sandbox)
	return model
}

// prepend puts a directory in front of the world's PATH.
func (w *world) prepend(dir string) {
	path := os.Getenv("PATH")
	for _, v := range w.env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	w.env = append(w.env, "PATH="+dir+":"+path)
}

const freely = "[claude]\npermission_mode = \"bypassPermissions\"\n"

// A fresh agent costs nothing until mail comes, answers what comes, once, and
// goes when it is told to.
func TestClaudeAnswers(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.config(t, freely)
	out := w.mustUp(t, "agent", "1", "--type", "claude", "--dir", filepath.Join(w.dir, "src"))
	mustContain(t, "agent", out, "agent1", "ready", "claude", "may do everything you can do, without asking")
	if n := len(model.Requests()); n != 0 {
		t.Errorf("bringing an agent up sent %d requests to the model, want none", n)
	}
	for i := range 3 {
		out = w.must(t, "netsky", "ask", "agent1", fmt.Sprintf("hello %d", i))
		mustContain(t, "the answer", out, "echo: ", fmt.Sprintf("hello %d", i))
	}
	first, _ := model.Wait(t.Context().Done(), func(q anthropic.Request) bool { return true })
	mustContain(t, "the system prompt", first.System, "You are agent1, one of several AI agents")
	mustContain(t, "the first thing said", first.Said[0], "just started by netsky", "hello 0")
	w.mustShow(t, "status", "agent1", "idle", "claude")
	mustContain(t, "down", w.must(t, "netsky", "down", "1"), "agent1: finished", "agent1: ended")
}

// A manager on Claude Code, a clone on each other runtime: what the owner asks
// agent0 is handed to all of them, and comes back as one answer.
func TestMixedConstellation(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	model := w.addClaude(t)
	model.Handle(manager("agent1", "agent2", "agent3"))
	program := filepath.Join(w.dir, "own.sh")
	script := "#!/bin/sh\necho ready\nwhile read -r line; do\n" +
		"netsky channel drain | sed -n 's/^<channel .* id=\"\\([^\"]*\\)\".*/\\1/p' |\n" +
		"while read -r id; do netsky reply \"$id\" \"own command: done\"; done\ndone\n"
	testworld.Must(t, os.WriteFile(program, []byte(script), 0o700))
	w.config(t, freely+"[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n"+
		"[runtime.mine]\ncommand = [\""+program+"\"]\n"+
		"[agents.0]\nruntime = \"claude\"\n[agents.1]\nruntime = \"codex\"\n[agents.2]\nruntime = \"demo\"\n"+
		"[agents.3]\nruntime = \"mine\"\n[agents.infinity]\nruntime = \"demo\"\n")
	out := w.mustUp(t, "up", "3", "--no-attach", "--dir", filepath.Join(w.dir, "src"))
	mustContain(t, "up", out, "claude", "codex", "demo", "mine")
	out = w.must(t, "netsky", "ask", "agent0", "what are your names?")
	mustContain(t, "the first answer", out, "I have asked all of them")
	w.mustShow(t, "inbox", "agent1: echo: ", "agent2: ", "My name is agent2", "agent3: own command: done")
	w.must(t, "netsky", "down", "--all")
}

// manager is a rule by which a model hands what the owner says to the agents, and
// answers when all of them have.
func manager(agents ...string) func(anthropic.Request) *anthropic.Reply {
	var mu sync.Mutex // guards what follows
	asked := ""
	answers := make(map[string]string)
	return func(q anthropic.Request) *anthropic.Reply {
		if !strings.Contains(q.System, "You are agent0,") || len(q.Outputs) > 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		r := &anthropic.Reply{Text: "I have asked all of them"}
		for _, m := range anthropic.Messages(strings.Join(q.News(), "\n")) {
			if m.From != "owner" {
				answers[m.From] = m.Text
				continue
			}
			asked = m.ID
			for _, a := range agents {
				r.Calls = append(r.Calls, anthropic.Call{Name: "mcp__agent__send", Arguments: map[string]any{
					"to": a, "text": m.Text, "requires_ack": true,
				}})
			}
		}
		if len(answers) < len(agents) || asked == "" {
			return r
		}
		var report []string
		for _, a := range agents {
			report = append(report, a+": "+answers[a])
		}
		r.Calls = append(r.Calls, anthropic.Call{Name: anthropic.ReplyTool, Arguments: map[string]any{
			"id": asked, "text": strings.Join(report, "\n"),
		}})
		asked = ""
		return r
	}
}

// Two clones that are told to change the same file of one repository work in
// worktrees of their own, and neither loses the other's edit. What the owner's directory
// tells agents reaches them there.
func TestClonesShareARepository(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	src := filepath.Join(w.dir, "src")
	git := func(args ...string) string {
		t.Helper()
		return w.must(t, "git", append([]string{"-C", src, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	}
	git("init", "-q", "-b", "main")
	testworld.Must(t, os.WriteFile(filepath.Join(src, "poem"), []byte("first\nsecond\nthird\n"), 0o600))
	git("add", "poem")
	git("commit", "-q", "-m", "poem")
	git("config", "user.name", "Ada")
	git("config", "user.email", "ada@example.org")
	testworld.Must(t, os.WriteFile(filepath.Join(src, "CLAUDE.md"), []byte("Rhyme.\n"), 0o600))
	model.Handle(editor)
	w.config(t, freely)
	for _, n := range []string{"1", "2"} {
		w.mustUp(t, "agent", n, "--type", "claude", "--dir", src)
	}
	var ids []string
	for n, line := range []string{"first", "third"} {
		ids = append(ids, strings.TrimSpace(w.must(t, "netsky", "channel", "send", fmt.Sprintf("agent%d", n+1), "--kind", "brief",
			"edit "+line+" of poem")))
	}
	w.mustAnswer(t, ids...)
	testworld.Equal(t, git("status", "--porcelain"), "?? CLAUDE.md\n", "the owner's directory was changed")
	for n := 1; n <= 2; n++ {
		name := fmt.Sprintf("agent%d", n)
		if out, want := git("log", "-1", "--format=%an %s %(trailers:only)", "netsky/"+name), "Ada edit Netsky-Agent: "+name; strings.TrimSpace(out) != want {
			t.Errorf("%s committed %q, want %q", name, out, want)
		}
	}
	git("merge", "-q", "netsky/agent1")
	git("merge", "-q", "-m", "both", "netsky/agent2")
	poem, err := os.ReadFile(filepath.Join(src, "poem"))
	if want := "agent1\nsecond\nagent2\n"; err != nil || string(poem) != want {
		t.Errorf("merged, the poem is %q (%v), want %q", poem, err, want)
	}
}

// editor is a rule by which a model does what its prompt says of git: it works in the
// directory that it is in, on the branch that is there.
func editor(q anthropic.Request) *anthropic.Reply {
	name := regexp.MustCompile(`You are (agent[0-9]+),`).FindStringSubmatch(q.System)
	tree := regexp.MustCompile(`it is in a worktree, (\S+), on the\s+branch`).FindStringSubmatch(q.System)
	list := anthropic.Messages(strings.Join(q.News(), "\n"))
	if name == nil || tree == nil || len(list) != 1 {
		return nil
	}
	if !strings.Contains(q.System, "Rhyme.") {
		return &anthropic.Reply{Text: "the owner's instructions are missing"}
	}
	if len(q.Outputs) > 0 {
		return &anthropic.Reply{Text: "done: " + strings.Join(q.Outputs, "\n")}
	}
	var line string
	if _, err := fmt.Sscanf(list[0].Text, "edit %s of poem", &line); err != nil {
		return nil
	}
	return &anthropic.Reply{Calls: []anthropic.Call{anthropic.Shell(fmt.Sprintf(
		`test "$PWD" = %q && sed -i 's/^%s$/%s/' poem && git commit -q -a -m edit && git rev-parse HEAD`, tree[1], line, name[1]))}}
}
