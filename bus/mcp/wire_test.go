package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"netsky/agent"
	"netsky/bus/mcp"
	"netsky/internal/testworld"
)

func TestNotificationOnTheWire(t *testing.T) {
	t.Parallel()
	var tap safeBuffer
	s := mustStation(t, agent.Clone(1)).serve()
	testworld.ErrorIs(t, s.server.Notify(s.ctx, "too early", nil), mcp.ErrNotReady, "Notify before the handshake")
	c := s.client("", &tap)
	<-s.server.Ready()
	testworld.Must(t, s.server.Notify(s.ctx, "line 1\n\"2\" é", map[string]string{"chat_id": "owner", "from": "owner"}))
	testworld.Fails(t, s.server.Notify(s.ctx, "x", map[string]string{"chat-id": "owner"}), "", "a name that the client drops was taken")
	const want = `{"jsonrpc":"2.0","method":"notifications/claude/channel","params":{"content":"line 1\n\"2\" é","meta":{"chat_id":"owner","from":"owner"}}}` + "\n"
	testworld.Wait(t, "the notification on the wire", func() bool { return strings.HasSuffix(tap.String(), want) })
	if strings.Count(tap.String(), "claude/channel\"") != 2 { // the capability and this
		t.Errorf("on the wire: %s", tap.String())
	}
	// The client minds what it does not know so little that it can still be used.
	s.mustCall(c, "agents", nil)
}

// A client that no longer reads is a broken wire, but only the end of stdin or
// the next message tells.
func TestBrokenWire(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	r := s.serve().raw()
	r.hello()
	s.fromServer.(io.Closer).Close()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	s.toServer.Close()
	s.mustEnd()
	testworld.Wait(t, "no goroutine of ours", func() bool { return len(ours()) == 0 })
}

// What is no message is passed over; what comes after it is dealt with.
func TestGarbage(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	r := s.serve().raw()
	r.hello()
	for i, line := range []string{
		"", "   ", "hello", "{", "[]", "null", "1", `"x"`, "{}", `{"jsonrpc":"2.0"}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"x"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","method":"notifications/unheard"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}`, "\xff\xfe\x00", strings.Repeat("[", 20000),
		`{"jsonrpc":"2.0","method":"notifications/claude/channel/permission_request","params":{"x":1}}`,
		`{"jsonrpc":"2.0","method":"server/discover"}`,
	} {
		r.say(line)
		r.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1000+i))
		if heard, m := r.hear(); m["id"] != float64(1000+i) {
			t.Fatalf("after %.60q: heard %s", line, heard)
		}
	}
	testworld.Contains(t, s.log.String(), "permission request", "log")
}

// Lines may be long: an envelope of the largest size, and longer ones than any.
func TestLongLines(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	r := s.serve().raw()
	r.hello()
	ask := func(id int, text string) map[string]any {
		args := testworld.Got(json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": id, "method": "tools/call",
			"params": map[string]any{"name": "send", "arguments": map[string]string{"to": "agent2", "text": text}},
		}))(t)
		r.say(string(args))
		_, m := r.hear()
		return m["result"].(map[string]any)
	}
	const million = 1 << 20
	if got := ask(1, strings.Repeat("a", million-1000)); got["isError"] == true {
		t.Errorf("1 MiB: %v", got)
	}
	if got := ask(2, strings.Repeat("a", 3*million)); got["isError"] != true || !strings.Contains(fmt.Sprint(got), "write it to a file") {
		t.Errorf("3 MiB: %v", got)
	}
	r.say(`{"jsonrpc":"2.0","id":3,"x":"` + strings.Repeat("a", 17*million) + `"}`)
	r.say(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	if line, m := r.hear(); m["id"] != float64(4) {
		t.Errorf("heard %s", line)
	}
	if len(s.mail(agent.Clone(2))) != 1 || !strings.Contains(s.log.String(), "skipped") {
		t.Errorf("mail = %d, log = %s", len(s.mail(agent.Clone(2))), s.log.String())
	}
}

// The same number as an ID twice, and numbers and strings, are each client's own
// affair: every request has its answer under its own.
func TestIDs(t *testing.T) {
	t.Parallel()
	r := mustStation(t, agent.Clone(1)).serve().raw()
	r.hello()
	for _, id := range []string{`1`, `1`, `"1"`, `"a b"`, `9007199254740991`} {
		r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		if line, _ := r.hear(); !strings.Contains(line, `"id":`+id+`,`) {
			t.Errorf("id %s: heard %s", id, line)
		}
	}
}

// safeBuffer is written by one goroutine and read by another.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
