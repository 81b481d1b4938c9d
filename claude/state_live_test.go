//go:build live

package claude_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/claude"
	"netsky/home"
	"netsky/internal/testworld"
)

func TestInterrupt(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	testworld.ErrorIs(t, l.Interrupt(l.ctx), claude.ErrIdle, "Interrupt of an idle session")
	for _, pushed := range []bool{true, false} {
		text := map[bool]string{true: "pushed", false: "typed"}[pushed]
		release := l.hold(text)
		if pushed {
			l.mustPush(text)
		} else {
			l.mustType(text)
		}
		l.wait("the model is asked", func() bool { return l.said(text) > 0 })
		testworld.Must(t, l.Interrupt(l.ctx), "Interrupt")
		l.mustState(agent.Idle, "")
		release()
		if !pushed { // what was typed is a draft again
			l.wait("the draft is back", func() bool { return strings.Contains(l.text(), "❯\u00a0"+text+"\n──") })
		} else if strings.Contains(l.text(), "❯\u00a0"+text) {
			t.Errorf("what was pushed is a draft:\n%s", l.text())
		}
	}
	l.mustNotPoint("the composer holds a draft")
	l.mustKeys("C-u")
	l.mustPush("loop: shell touch made")
	l.mustState(agent.Waiting, "permission: Bash: touch made")
	l.wait("the dialog is shown", func() bool { return strings.Contains(l.text(), "Do you want to proceed?") })
	testworld.Fails(t, l.Interrupt(l.ctx), "waiting for an answer", "it refused")
	testworld.Contains(t, l.text(), "Do you want to proceed?", "the dialog is gone")
	l.mustKeys("Escape")
	l.mustState(agent.Idle, "")
	l.mustPush("after it all")
	testworld.Equal(t, l.mustStop(1).Text, "echo: after it all", "the next turn's text")
}

func TestInterruptTool(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions")
	l.mustPush("loop: shell until test -e never; do sleep 0.05; done")
	r := l.mustState(agent.Busy, "Bash: until test -e never")
	if want := "claude's session registry, hook"; r.Evidence != want {
		t.Errorf("Evidence = %q, want %q", r.Evidence, want)
	}
	testworld.Must(t, l.Interrupt(l.ctx), "Interrupt")
	l.mustState(agent.Idle, "")
	l.mustPush("next")
	l.wait("the next turn's end", func() bool { return len(l.events(agent.EventStop)) == 1 })
}

// TestInterruptKeys: a turn ends also where Escape does not end it, and what is in the
// composer stays, unless Ctrl+C is all that is left without vim's modes. Where no key does, that
// is said with its cause.
func TestInterruptKeys(t *testing.T) {
	t.Parallel()
	chat := func(bindings string) map[string]string {
		return map[string]string{"keybindings.json": `{"bindings": [{"context": "Chat", "bindings": {` + bindings + `}}, {"context": "Global", "bindings": {"ctrl+c": null}}]}`}
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		lost  bool   // the draft
		want  string // in the error
	}{
		{name: "vim", files: map[string]string{"settings.json": `{"editorMode": "vim"}`}},
		{name: "another key", files: chat(`"escape": null, "ctrl+q": "chat:cancel"`)},
		{name: "Escape is none", files: map[string]string{"keybindings.json": `{"bindings": [{"context": "Chat", "bindings": {"escape": null}}]}`}, lost: true},
		{name: "no key", files: chat(`"escape": null`), want: "keybindings.json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := mustLiveWith(t, tt.files, "bypassPermissions")
			l.mustPush("loop: shell until test -e never; do sleep 0.05; done")
			l.mustState(agent.Busy, "Bash: until test -e never")
			l.mustKeys("draft")
			l.wait("the draft stands", func() bool { return strings.Contains(l.text(), "❯\u00a0draft") })
			err := l.Interrupt(l.ctx)
			switch {
			case tt.want != "":
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Interrupt = %v, want %q in it", err, tt.want)
				}
				l.mustState(agent.Busy, "")
				return
			case err != nil:
				t.Fatalf("Interrupt = %v\n%s", err, l.text())
			}
			l.mustState(agent.Idle, "")
			l.wait("it is interrupted, and the draft is there", func() bool {
				text := l.text()
				return strings.Contains(text, "Interrupted ") && (tt.lost || strings.Contains(text, "❯\u00a0draft"))
			})
		})
	}
}

// What a tool turn, failures and a dialog look like.
func TestStates(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions")
	gate := filepath.Join(l.work, "gate")
	l.mustPush("loop: shell until test -e gate; do sleep 0.05; done")
	l.mustState(agent.Busy, "Bash: until test -e gate")
	testworld.Must(t, os.WriteFile(gate, nil, 0o600))
	stop := l.mustStop(1)
	l.mustState(agent.Idle, "")
	if u := l.Usage(l.ctx, stop); u.Requests != 2 {
		t.Errorf("usage of a turn with a tool = %+v, want 2 requests", u)
	}
	for _, fail := range []struct {
		status int
		kind   string
	}{{401, "authentication_failed"}, {429, "rate_limit"}, {529, "server_error"}} {
		before := len(l.events(agent.EventStopFailed))
		text := fmt.Sprintf("fail %d", fail.status)
		l.fail(text, fail.status)
		l.mustPush(text)
		l.wait("the turn fails", func() bool { return len(l.events(agent.EventStopFailed)) > before })
		got := l.events(agent.EventStopFailed)[before]
		if got.Error != fail.kind || got.Text == "" {
			t.Errorf("%s: stop_failed = %+v, want %s", text, got, fail.kind)
		}
		l.mustState(agent.Idle, "") // the account's breaker keeps the next message back
		l.mustPush("well again after " + text)
		l.mustStop(before + 2)
		l.mustState(agent.Idle, "")
	}
}

// A conversation that the model refuses for its length.
func TestTooLong(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "bypassPermissions")
	l.fail("much", 400)
	l.mustPush("much")
	l.wait("the turn fails", func() bool { return len(l.events(agent.EventStopFailed)) > 0 })
	e := l.events(agent.EventStopFailed)[0]
	if e.Usage == nil || !e.Usage.ContextFull {
		t.Errorf("stop_failed = %+v, want context_full", e)
	}
	l.mustState(agent.Blocked, "context full: Prompt is too long")
	l.mustPush("short")
	l.mustStop(1)
	l.mustState(agent.Idle, "")
}

// A prompt that this process has been given is in the conversation's file.
func TestHoldsLive(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	text := `<channel source="agent" chat_id="agent0" from="agent0" ts="2026-11-20T12:00:00Z" id="m-1">` + "\nhello\n</channel>"
	l.mustPush(text)
	l.mustStop(1)
	l.wait("Holds(m-1) after its turn", func() bool { return l.Holds("m-1") })
	if l.Holds("m-2") || l.Holds("m") {
		t.Error("Holds of what was never sent = true")
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	l := mustLive(t, "manual")
	asked := func(n int) agent.Approval {
		t.Helper()
		l.wait("the question", func() bool { return len(l.events(agent.EventPermission)) == n })
		code := l.events(agent.EventPermission)[n-1].ID
		list := testworld.Got(home.Approvals(l.Home).List())(t)
		i := slices.IndexFunc(list, func(a agent.Approval) bool { return a.Code == code })
		if i < 0 {
			t.Fatalf("approvals %+v, want %s", list, code)
		}
		return list[i]
	}
	settled := func(n int, want string) {
		t.Helper()
		l.wait("the answer", func() bool { return len(l.events(agent.EventPermitted)) == n })
		testworld.Equal(t, l.events(agent.EventPermitted)[n-1].Text, want, "the question ended")
		l.wait("its file to go", func() bool { list, err := home.Approvals(l.Home).List(); return err == nil && len(list) == 0 })
	}
	made := func(name string) bool { _, err := os.Stat(filepath.Join(l.work, name)); return err == nil }
	t.Run("allowed", func(t *testing.T) {
		l.mustPush("loop: shell touch one")
		a := asked(1)
		if a.Tool != "Bash" || a.Text != "touch one" || a.Reason != "the test wants it" || a.Dir != l.work {
			t.Errorf("the question is %+v", a)
		}
		l.mustState(agent.Waiting, "permission: Bash: touch one")
		testworld.Got(home.Approvals(l.Home).Answer(a.Code, agent.Answer{Allow: true}))(t)
		l.mustStop(1)
		settled(1, "allowed")
		if !made("one") {
			t.Error("the command did not run")
		}
	})
	t.Run("denied", func(t *testing.T) {
		l.mustPush("loop: shell touch two")
		testworld.Got(home.Approvals(l.Home).Answer(asked(2).Code, agent.Answer{}))(t)
		stop := l.mustStop(2)
		settled(2, "denied")
		if made("two") || !strings.Contains(stop.Text, "the owner said no") {
			t.Errorf("made: %v; the model heard %q", made("two"), stop.Text)
		}
	})
	t.Run("at the pane, yes", func(t *testing.T) {
		l.mustPush("loop: shell touch three")
		asked(3)
		l.mustState(agent.Waiting, "")
		l.wait("the dialog", func() bool { return strings.Contains(l.text(), "Do you want to proceed?") })
		l.mustKeys("Enter")
		l.mustStop(3)
		settled(3, "at the pane")
		if !made("three") {
			t.Error("the command did not run")
		}
	})
	t.Run("at the pane, no", func(t *testing.T) {
		l.mustPush("loop: shell touch four")
		asked(4)
		l.mustState(agent.Waiting, "")
		l.wait("the dialog", func() bool { return strings.Contains(l.text(), "Do you want to proceed?") })
		l.mustKeys("Escape")
		l.mustState(agent.Idle, "")
		if made("four") {
			t.Error("the command ran")
		}
		settled(4, "unanswered") // Claude Code ended the hook with its turn
	})
	// The pane's yes comes first, and the owner's no a moment later: it is reported as what it
	// did.
	desk := approve.Desk{Home: l.Home, Bus: testworld.Bus(t, l.Home, "agent1", "owner"), Warn: func(err error) { t.Error(err) }}
	for i := range 4 {
		name := fmt.Sprint("race", i)
		t.Run(name, func(t *testing.T) {
			stops := len(l.events(agent.EventStop))
			l.mustPush("loop: shell touch " + name)
			q := asked(len(l.events(agent.EventPermission)) + 1)
			l.mustState(agent.Waiting, "")
			l.wait("the dialog", func() bool { return strings.Contains(l.text(), "Do you want to proceed?") })
			if i < 3 {
				l.mustKeys("Enter")
			}
			_, err := desk.Answer(t.Context(), q.Code, agent.Answer{})
			l.mustStop(stops + 1)
			if made(name) != errors.Is(err, agent.ErrNoApproval) {
				t.Errorf("the command ran: %v; the answer: %v", made(name), err)
			}
		})
	}
	t.Run("a subagent's", func(t *testing.T) {
		for i, allow := range []bool{false, true} {
			stops := len(l.events(agent.EventStop))
			name := fmt.Sprint("sub", i)
			l.mustPush(`loop: call Agent {"description":"x","prompt":"loop: shell touch ` + name + `","subagent_type":"general-purpose"}`)
			q := asked(len(l.events(agent.EventPermission)) + 1)
			testworld.Equal(t, testworld.Err(desk.Answer(t.Context(), q.Code, agent.Answer{Allow: allow})), nil, "allow %v", allow)
			l.mustStop(stops + 1)
			l.wait("the end of it", func() bool { return made(name) == allow && l.State(l.ctx).State == agent.Idle })
		}
	})
	t.Run("claude is gone", func(t *testing.T) {
		l.mustPush("loop: shell touch five")
		asked(len(l.events(agent.EventPermission)) + 1)
		l.mustTmux("kill-server")
		l.wait("no question is left", func() bool { list, err := home.Approvals(l.Home).List(); return err == nil && len(list) == 0 })
	})
}
