// This file tests what reads a program's file of a conversation. Only tests import it.

package testworld

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cost"
)

// A Reader takes lines.
type Reader interface {
	Line(line []byte) ([]cost.Turn, []cost.Statement)
	State() string
}

// Rendered is a message as an agent's program is given it.
func Rendered(id string) string {
	return envelope.Render(envelope.Envelope{ID: id, From: agent.Root, To: "agent1", Text: "do it", Time: time.Unix(0, 0)}, time.Unix(0, 0))
}

// Check checks what lines say, in words: the same if each is read by another reader, which goes on from
// the state of the one before.
func Check(t *testing.T, open func(state string) Reader, want string, lines ...string) {
	t.Helper()
	one := open("")
	var whole, parts []string
	state := ""
	for _, l := range lines {
		whole = append(whole, readings(one.Line([]byte(l)))...)
		r := open(state)
		parts = append(parts, readings(r.Line([]byte(l)))...)
		state = r.State()
	}
	if got := strings.Join(whole, " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := strings.Join(parts, " "); got != want {
		t.Errorf("in parts: %s\nwant %s", got, want)
	}
}

func readings(turns []cost.Turn, stated []cost.Statement) (list []string) {
	for _, n := range turns {
		u := n.Usage
		list = append(list, fmt.Sprintf("%s|%s|%s|%s:%d+%d+%d+%d", n.Key, n.Model, n.Prompt, n.Message, u.Input, u.Output, u.CacheRead, u.CacheWrite))
	}
	for _, s := range stated {
		u := s.Usage
		list = append(list, fmt.Sprintf("%s=%d+%d+%d+%d=%d,%v", s.Model, u.Input, u.Output, u.CacheRead, u.CacheWrite, s.Nano, s.Unsure))
		if s.Base {
			list = append(list, "base")
		}
	}
	return list
}

// Fuzz checks that whatever a line says, its ids are bounded and a reader goes on from what it keeps.
func Fuzz(t *testing.T, open func(state string) Reader, line []byte, state string) {
	t.Helper()
	r := open(state)
	turns, _ := r.Line(line)
	for _, n := range turns {
		if n.Key == "" || n.Key == " " || len(n.Key) > 401 || len(n.Model) > 200 || len(n.Prompt) > 200 || len(n.Message) > 200 {
			t.Errorf("%+v", n)
		}
	}
	if again := open(r.State()); again.State() != r.State() {
		t.Errorf("state %q became %q", r.State(), again.State())
	}
}
