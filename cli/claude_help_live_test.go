//go:build live

package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// up1 brings agent1 up on Claude Code, in the world's directory src.
func (w *world) up1(t testing.TB, more ...string) string {
	t.Helper()
	return w.mustUp(t, append([]string{"agent", "1", "--type", "claude", "--dir", filepath.Join(w.dir, "src")}, more...)...)
}

// mustUp runs a verb that brings agents up, and returns what it says. Those that
// a machine with much else to do has not got ready in the verb's own time are
// waited for, and called ready as they are by then.
func (w *world) mustUp(t testing.TB, args ...string) string {
	t.Helper()
	return w.mustUpBy(t, "netsky", args...)
}

// mustUpBy is mustUp for a netsky that is not the one in the PATH.
func (w *world) mustUpBy(t testing.TB, netsky string, args ...string) string {
	t.Helper()
	status, out := w.within(t, nil, "", netsky, args...)
	if status != 0 && (status != 3 || !strings.Contains(out, " starting ")) {
		t.Fatalf("netsky %q: exit status %d\n%s", args, status, out)
	}
	if status == 3 {
		testworld.Wait(t, "all agents up", func() bool { return !strings.Contains(w.must(t, netsky, "status"), " starting ") })
	}
	return strings.ReplaceAll(out, " starting ", " ready    ")
}

// mustSend leaves a message in an agent's mailbox and returns its id.
func (w *world) mustSend(t testing.TB, args ...string) string {
	t.Helper()
	return strings.TrimSpace(w.must(t, "netsky", append([]string{"channel", "send"}, args...)...))
}

// pane asks the tmux server on which the world's agents are.
func (w *world) pane(t testing.TB, args ...string) string {
	t.Helper()
	return w.must(t, "tmux", append([]string{"-S", w.socket()}, args...)...)
}

// mustBe waits until status says that agent1 is so.
func (w *world) mustBe(t testing.TB, state string) {
	t.Helper()
	testworld.Wait(t, "agent1 "+state, func() bool {
		return strings.Contains(w.must(t, "netsky", "status"), "agent1         "+state)
	})
}

// answers are the owner's letters about a message.
func (w *world) answers(t testing.TB, id string) (list []letter) {
	t.Helper()
	var v struct{ Messages []letter }
	testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "inbox", "--all", "--json")), &v))
	for _, m := range v.Messages {
		if m.InReplyTo == id {
			list = append(list, m)
		}
	}
	return list
}

type letter struct {
	Kind      string
	Text      string
	InReplyTo string `json:"in_reply_to"`
	Implicit  bool
}

// mustOne waits for a message's answer, which must be the only one.
func (w *world) mustOne(t testing.TB, id string) (l letter) {
	t.Helper()
	testworld.Wait(t, "an answer to "+id, func() bool { return len(w.answers(t, id)) > 0 })
	list := w.answers(t, id)
	if len(list) != 1 {
		t.Errorf("%s has %d answers, want one: %+v", id, len(list), list)
	}
	return list[0]
}
