package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
)

func (w *world) mustHome(t testing.TB) home.Dir {
	t.Helper()
	h := testworld.Got(home.At(w.home))(t)
	return h
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
