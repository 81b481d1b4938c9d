//go:build live

package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/testworld"
)

// A message whose turn ran into a plan's limit is held, offered once more after the reset
// and answered once; Claude Code does nothing by itself, and no dialog stays in its pane.
func TestClaudeUsageLimit(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.env = append(w.env, model.LoginEnv(filepath.Join(w.dir, "cc"))...)
	w.config(t, freely)
	w.up1(t)
	var (
		mu    sync.Mutex
		reset time.Time
		asked []time.Time
	)
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		asked = append(asked, now)
		if reset.IsZero() {
			reset = now.Add(15 * time.Second).Truncate(time.Second)
		}
		if now.Before(reset) {
			return anthropic.Limit(reset)
		}
		return nil
	})
	first := w.mustSend(t, "agent1", "loop: say the first")
	var held agent.Fault
	testworld.WaitOr(t, func() bool {
		r, err := w.mustHome(t).LoadReport("agent1")
		held = r.Fault
		return err == nil && r.State == agent.Blocked && held.Account != ""
	}, func() string { return "blocked by the account; " + w.must(t, "netsky", "status", "-v") })
	mu.Lock()
	early, end := len(asked), reset
	mu.Unlock()
	if held.Reason != agent.UsageLimit || held.Until().Before(end) || held.Until().After(end.Add(5*time.Second)) || !strings.HasPrefix(held.Account, "claude token ") {
		t.Errorf("the report's fault is %+v, want the usage limit until %v", held, end)
	}
	second := w.mustSend(t, "agent1", "loop: say the second")
	one, two := w.mustOne(t, first), w.mustOne(t, second)
	if one.Kind == "error" || two.Kind == "error" {
		t.Errorf("answers %+v and %+v", one, two)
	}
	mu.Lock()
	defer mu.Unlock()
	if early != 1 {
		t.Errorf("the model was asked %d times before the reset, want once", early)
	}
	for _, at := range asked[1:] {
		if late := at.Sub(end); late < 0 {
			t.Errorf("the model was asked %v before the reset", -late)
		}
	}
	if late := asked[1].Sub(end); late > 10*time.Second {
		t.Errorf("the model was asked again %v after the reset", late)
	}
	mustContain(t, "the pane", w.pane(t, "capture-pane", "-p", "-t", "=agent1:"), "❯")
}

// The same if the receiver is killed as the limit is met, and so can't close the dialog that
// Claude Code opens then: the agent is started again after the reset, and goes on.
func TestClaudeUsageLimitReceiverKilled(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	w.env = append(w.env, model.LoginEnv(filepath.Join(w.dir, "cc"))...)
	w.config(t, freely)
	w.up1(t)
	h := w.mustHome(t)
	reset := time.Now().Add(20 * time.Second).Truncate(time.Second)
	var once sync.Once
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		once.Do(func() {
			if who, ok := h.LockHolder(home.ReceiverLock("agent1")); !ok || who.Signal(syscall.SIGKILL) != nil {
				t.Error("there is no receiver to kill")
			}
		})
		if time.Now().Before(reset) {
			return anthropic.Limit(reset)
		}
		return nil
	})
	if l := w.mustOne(t, w.mustSend(t, "agent1", "loop: say it goes on")); l.Kind != "reply" || l.Text != "it goes on" {
		t.Errorf("the answer is %+v", l)
	}
}

// After a login has expired, a login anywhere is enough: the message that was held is
// answered, and nobody has to act in the pane.
func TestClaudeLoginExpired(t *testing.T) {
	t.Parallel()
	w, model := mustClaude(t)
	config := filepath.Join(w.dir, "cc")
	login := func(token string) {
		t.Helper()
		text := `{"claudeAiOauth":{"accessToken":"` + token + `","expiresAt":4102444800000,"scopes":["user:inference","user:profile"],"subscriptionType":"max"}}`
		testworld.Must(t, os.WriteFile(filepath.Join(config, ".credentials.json"), []byte(text), 0o600))
	}
	login("sk-ant-oat01-old")
	w.env = append(w.env, "ANTHROPIC_API_KEY=")
	w.config(t, freely)
	var well atomic.Bool
	model.Handle(func(anthropic.Request) *anthropic.Reply {
		if well.Load() {
			return nil
		}
		return anthropic.Error(http.StatusUnauthorized, "authentication_error", "OAuth token has expired. Please obtain a new token or refresh your existing token.")
	})
	w.up1(t)
	id := w.mustSend(t, "agent1", "loop: say all is well")
	testworld.WaitOr(t, func() bool {
		r, err := w.mustHome(t).LoadReport("agent1")
		return err == nil && r.State == agent.Blocked && r.Fault.Reason == agent.Login && r.Fault.Account != ""
	}, func() string { return "blocked by the login; " + w.must(t, "netsky", "status", "-v") })
	well.Store(true)
	login("sk-ant-oat01-new")
	if l := w.mustOne(t, id); l.Kind != "reply" || l.Text != "all is well" {
		t.Errorf("the answer after the login is %+v", l)
	}
}
