//go:build live

package claude_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/internal/testworld"
)

func (l *live) mustPoint(n int) {
	l.Helper()
	if err := l.Point(l.ctx, n); err != nil {
		l.Fatalf("Point(%d) = %v; screen:\n%s", n, err, l.text())
	}
}

// mustNotPoint checks that nothing is typed, and why.
func (l *live) mustNotPoint(why string) {
	l.Helper()
	before := len(l.events(agent.EventPrompt))
	err := l.Point(l.ctx, 2)
	if err == nil || !strings.Contains(err.Error(), why) {
		l.Errorf("Point = %v, want it refused: %s", err, why)
	}
	if got := l.text(); strings.Contains(got, "call the inbox tool") {
		l.Errorf("Point typed all the same:\n%s", got)
	}
	testworld.Equal(l, len(l.events(agent.EventPrompt)), before, "Point gave a prompt")
}

func TestPoint(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	for _, draft := range []struct{ name, text, clear string }{
		{"draft", "half a thought", "C-u"},
		{"blank draft", " ", "BSpace"},
		{"shell", "!", "BSpace"},
		{"one letter, the cursor on it", "x", "C-u"},
	} {
		t.Run(draft.name, func(t *testing.T) {
			l.mustKeys(draft.text)
			why := "the composer holds a draft"
			switch draft.text {
			case "!":
				why = "no composer"
				l.wait("the shell's prompt stands", func() bool { return strings.Contains(l.text(), "\n!\u00a0") })
			case " ":
				l.wait("the blank stands", func() bool { s, _ := l.Screen(l.ctx); return strings.Contains(s, "❯\u00a0 ") })
			default:
				l.wait("it stands", func() bool { return strings.Contains(l.text(), "❯\u00a0"+draft.text) })
			}
			if draft.text == "x" {
				l.mustKeys("Home")
			}
			l.mustNotPoint(why)
			if draft.text == "x" {
				l.mustKeys("End")
			}
			l.mustKeys(draft.clear)
			l.wait("it is gone", func() bool { s, _ := l.Screen(l.ctx); return strings.Contains(s, "❯\u00a0\x1b[7m") })
		})
	}
	t.Run("several lines", func(t *testing.T) {
		l.mustKeys("C-j", "C-j")
		l.wait("they stand", func() bool {
			return strings.Contains(l.text(), "❯\u00a0\n\n") || strings.Contains(l.text(), "❯\u00a0\n  \n")
		})
		l.mustNotPoint("the composer holds a draft")
		l.mustKeys("BSpace", "BSpace")
	})
	t.Run("idle", func(t *testing.T) {
		l.wait("the composer is empty", func() bool { return l.Point(l.ctx, 3) == nil })
		want := "3 messages wait for you: call the inbox tool"
		if got := l.mustStop(1).Text; got != "echo: "+want {
			t.Errorf("the turn's text = %q, want the echo of %q", got, want)
		}
		testworld.Equal(t, l.said(want), 1, "the model was told")
	})
	t.Run("busy", func(t *testing.T) {
		release := l.hold("wait")
		l.mustPush("wait")
		l.mustState(agent.Busy, "")
		l.wait("the registry says so", func() bool { r, _ := claude.FindSession(l.config, l.PID); return r.Status == "busy" })
		err := l.Point(l.ctx, 1)
		testworld.Fails(t, err, "not idle: busy", "it refused")
		release()
		l.mustStop(2)
	})
	t.Run("after a failure", func(t *testing.T) {
		l.mustType("loop: fail 429")
		l.wait("the turn fails", func() bool { return len(l.events(agent.EventStopFailed)) == 1 })
		l.mustState(agent.Idle, "")
		l.mustPoint(1)
		testworld.Equal(t, l.mustStop(3).Text, "echo: 1 message waits for you: call the inbox tool", "the turn's text")
	})
	t.Run("dialog", func(t *testing.T) {
		l.mustPush("loop: shell touch made")
		l.mustState(agent.Waiting, "permission: Bash: touch made")
		l.wait("the dialog is shown", func() bool { return strings.Contains(l.text(), "Do you want to proceed?") })
		l.wait("the registry says so", func() bool { r, _ := claude.FindSession(l.config, l.PID); return r.Status == "waiting" })
		testworld.Fails(t, l.Point(l.ctx, 1), "not idle: waiting", "it refused")
		testworld.Contains(t, l.text(), "Do you want to proceed?", "the dialog is gone")
		l.mustKeys("Escape")
		l.mustState(agent.Idle, "")
		l.mustType("/model")
		l.mustState(agent.Waiting, "model")
		testworld.Fails(t, l.Point(l.ctx, 1), "", "Point into a dialog = nil")
		l.mustKeys("Escape")
	})
}
