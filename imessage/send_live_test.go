//go:build live

package imessage_test

import (
	"strings"
	"testing"
	"time"

	"netsky/imessage"
	"netsky/internal/messagesim"
	"netsky/phone/chat"
)

func TestSend(t *testing.T) {
	t.Parallel()
	const (
		sent, unconfirmed, failed = chat.Sent, chat.Unconfirmed, chat.Failed
	)
	for _, tt := range []struct {
		modes string // of the calls
		want  chat.State
		fact  string
		again bool
		calls int
	}{
		{"row", sent, "", false, 1},
		{"self=1ms", sent, "", false, 1},
		{"ok", unconfirmed, "no such message was found", false, 1},
		{"ghost", failed, "an empty row without a chat", false, 1},
		{"failed", failed, "error 22", false, 1},
		{"-1743", failed, "(-1743)", true, 1},
		{"-1743=de", failed, "does not let netsky control Messages (-1743)", true, 1},
		{"-600", failed, "(-600)", true, 1},
		{"-600=de", failed, "is not running (-600)", true, 1},
		{"-1712", unconfirmed, "(-1712)", false, 1},
		{"-1712=de", unconfirmed, "did not answer in time (-1712)", false, 1},
		{"row+-1712", sent, "", false, 1},
		{"-1728", failed, "(-1728)", false, 3},
		{"-1728=de", failed, "knows no such chat or person (-1728)", false, 3},
		{"-1728 row", sent, "", false, 2},
		{"-1728 -1728 row", sent, "", false, 3},
		{"-1719 row", sent, "", false, 2},
		{"-1700 -1743", failed, "(-1743)", true, 2},
		{"row+-1728", sent, "", false, 1}, // never twice
		{"-10004", failed, "(-10004)", true, 1},
		{"-2700", unconfirmed, "(-2700)", false, 1},
		{"killed", unconfirmed, "killed", false, 1},
		{"row+killed", sent, "", false, 1},
		{"noisy+-1743", failed, "(-1743)", true, 1},
		{"noisy+row", sent, "", false, 1},
		{"slow+row", sent, "", false, 1},
	} {
		t.Run(tt.modes, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t, nil)
			w.script.Mode(strings.Fields(tt.modes)...)
			r := w.send(chat.Outgoing{ID: "1", Chat: direct, Text: "Done."})
			if r.State != tt.want || !strings.Contains(r.Fact, tt.fact) || r.Again != tt.again || r.State == sent && r.GUID == "" {
				t.Errorf("receipt %+v, want %s, %q, again %v", r, tt.want, tt.fact, tt.again)
			}
			if tt.fact == "" && r.Fact != "" || len(r.Fact) > 400 || strings.Contains(r.Fact, "\n") {
				t.Errorf("fact %q", r.Fact)
			}
			calls := w.script.Calls()
			if len(calls) != tt.calls {
				t.Fatalf("%d calls, want %d", len(calls), tt.calls)
			}
			for _, c := range calls {
				if !c.Known {
					t.Errorf("an unknown script in %q", c.Args)
				}
			}
		})
	}
}

// The row is found in the tables of each release.
func TestSendInEach(t *testing.T) {
	t.Parallel()
	for _, p := range messagesim.Profiles {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t, nil)
			w.sim.Replace(p)
			w.script.Mode("row", "ghost", "ok", "failed")
			for _, want := range []chat.State{chat.Sent, chat.Failed, chat.Unconfirmed, chat.Failed} {
				if r := w.send(chat.Outgoing{Chat: direct, Text: "Done."}); r.State != want {
					t.Errorf("receipt %+v, want %s", r, want)
				}
			}
		})
	}
}

// An osascript that hangs is ended with what it started, and the message is looked for.
func TestHang(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]chat.State{"hang": chat.Unconfirmed, "row+hang": chat.Sent} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := mustWorld(t, func(o *imessage.Options) { o.Timeout = 5 * time.Second })
			w.script.Mode(mode)
			if r := w.send(chat.Outgoing{Chat: direct, Text: "Done."}); r.State != want || want == chat.Unconfirmed && !strings.Contains(r.Fact, "did not end in time") {
				t.Errorf("receipt %+v, want %s", r, want)
			}
			calls := w.script.Calls()
			if len(calls) != 1 || calls[0].Child == 0 {
				t.Fatalf("calls %+v", calls)
			}
			if messagesim.Runs(calls[0].PID) || messagesim.Runs(calls[0].Child) {
				t.Error("it still runs, or its child does")
			}
		})
	}
}
