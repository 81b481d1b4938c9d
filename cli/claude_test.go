package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	claudemodel "netsky/spawn/claude/loopmodel"
)

// mustClaude is a world in which the real Claude Code is installed, and speaks
// to a model on the loopback. Agents work in the directory src of the world.
func mustClaude(t testing.TB) (*world, *claudemodel.Server) {
	t.Helper()
	w := mustWorld(t)
	return w, w.addClaude(t)
}

func (w *world) addClaude(t testing.TB) *claudemodel.Server {
	t.Helper()
	program := os.Getenv("NETSKY_TEST_CLAUDE")
	if program == "" {
		t.Fatal("NETSKY_TEST_CLAUDE is not set: scripts/test installs Claude Code and sets it")
	}
	model, err := claudemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	config, bin, src := filepath.Join(w.dir, "cc"), filepath.Join(w.dir, "b"), filepath.Join(w.dir, "src")
	for _, dir := range []string{config, bin, src} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(program, filepath.Join(bin, "claude")); err != nil {
		t.Fatal(err)
	}
	if err := claudemodel.WriteHome(config, w.dir); err != nil {
		t.Fatal(err)
	}
	w.prepend(bin)
	w.env = append(append(w.env, model.Env(config)...), claudemodel.Sandbox)
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

// config writes the world's netsky.toml.
func (w *world) config(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, agent.ConfigFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const freely = "[claude]\npermission_mode = \"bypassPermissions\"\n"

// A fresh agent costs nothing until mail comes, answers what comes, once, and
// goes when it is told to.
func TestClaudeAnswers(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.config(t, freely)
	out := w.must(t, "netsky", "agent", "1", "--type", "claude", "--dir", filepath.Join(w.dir, "src"))
	mustContain(t, "agent", out, "agent1", "ready", "claude", "may everything you can do, without asking")
	if n := len(model.Requests()); n != 0 {
		t.Errorf("bringing an agent up sent %d requests to the model, want none", n)
	}
	for i := range 3 {
		out = w.must(t, "netsky", "ask", "agent1", fmt.Sprintf("hello %d", i))
		mustContain(t, "the answer", out, "echo: ", fmt.Sprintf("hello %d", i))
	}
	first, _ := model.Wait(t.Context().Done(), func(q claudemodel.Request) bool { return true })
	mustContain(t, "the system prompt", first.System, "You are agent1, one of several AI agents")
	mustContain(t, "the first thing said", first.Said[0], "just started by netsky", "hello 0")
	w.mustShow(t, "status", "agent1", "idle", "claude")
	mustContain(t, "down", w.must(t, "netsky", "down", "1"), "agent1: finished", "agent1: ended")
}
