package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

// config writes the world's netsky.toml.
func (w *world) config(t testing.TB, text string) {
	t.Helper()
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, home.ConfigFile), []byte(text), 0o600))
}

func (w *world) mustHome(t testing.TB) home.Dir {
	t.Helper()
	return testworld.Got(home.At(w.home))(t)
}

// mustAsk asks agent1 and returns what it says.
func (w *world) mustAsk(t testing.TB, text string) string {
	t.Helper()
	return strings.TrimSpace(w.must(t, "netsky", "ask", "agent1", text))
}

// within runs a command in the world with an environment of its own and a limit,
// and returns its exit status and what it said.
func (w *world) within(t testing.TB, env []string, stdin string, name string, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := w.command(ctx, name, args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(stdin)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

// words are what is the same in what the model said and in the answer.
func words(said string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(said, "&lt;", "<")), " ")
}

// other writes to them beside the owner. It is a mailbox, and nobody's.
const other agent.ID = "agent3"
