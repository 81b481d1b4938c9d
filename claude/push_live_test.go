//go:build live

package claude_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

func TestPush(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	t.Run("idle", func(t *testing.T) {
		l.mustPush("hello <one> & \"two\"\nthree")
		stop := l.mustStop(1)
		if want := "echo: hello <one> & \"two\"\nthree"; stop.Text != want {
			t.Errorf("the turn's text = %q, want %q", stop.Text, want)
		}
		if u := l.Usage(l.ctx, stop); u.Requests != 1 || u.Output == 0 || u.ContextNow == 0 {
			t.Errorf("the turn's usage = %+v, want that of one request", u)
		}
	})
	t.Run("busy", func(t *testing.T) {
		release := l.hold("first")
		l.mustPush("first")
		l.wait("the model is asked", func() bool { return l.said("first") > 0 })
		l.mustState(agent.Busy, "")
		l.mustPush("second")
		release()
		testworld.Equal(t, l.mustStop(2).Text, "echo: first", "the first turn's text")
		testworld.Equal(t, l.mustStop(3).Text, "echo: second", "the second turn's text")
	})
	t.Run("draft", func(t *testing.T) {
		l.mustKeys("a draft", "C-j", "of two lines")
		l.wait("the draft stands", func() bool { return strings.Contains(l.text(), "of two lines") })
		l.mustPush("beside a draft")
		testworld.Equal(t, l.mustStop(4).Text, "echo: beside a draft", "the turn's text")
		testworld.Contains(t, l.text(), "❯\u00a0a draft\n  of two lines\n", "the draft is gone")
		l.mustKeys("C-u", "BSpace", "C-u")
	})
	t.Run("dialog", func(t *testing.T) {
		l.mustPush("loop: shell touch made")
		l.mustState(agent.Waiting, "permission: Bash: touch made")
		l.mustPush("behind the dialog")
		if r := l.State(l.ctx); r.State != agent.Waiting {
			t.Errorf("after a push State = %+v, want waiting", r)
		}
		testworld.Fails(t, testworld.Err(os.Stat(filepath.Join(l.work, "made"))), "", "the push answered the dialog")
		l.mustKeys("Escape")
		l.wait("the push is taken", func() bool { return l.said("behind the dialog") > 0 })
	})
}

func TestPushLong(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	text := strings.Repeat("0123456789abcde\n", 200<<10/16) + "the end"
	l.mustPush(text)
	l.mustStop(1)
	if l.said(text) == 0 {
		t.Error("the model was not told all of it")
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	l.mustTmux("kill-server")
	l.wait("Claude Code's end", func() bool { _, err := proc.Find(l.PID); return err != nil })
	err := l.Push(l.ctx, "hello")
	var r interface{ Refused() bool }
	if !errors.As(err, &r) || !r.Refused() {
		t.Errorf("Push to one that is gone = %v, want it refused", err)
	}
	testworld.Equal(t, l.State(l.ctx).State, agent.Unknown, "State")
}
