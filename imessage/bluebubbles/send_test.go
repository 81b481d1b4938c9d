package bluebubbles_test

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/imessage/bluebubbles"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

var peer = chat.Chat{Key: "-;+15550100", Identifier: "+15550100", GUID: "iMessage;-;+15550100", Direct: true}

func text(s string) chat.Outgoing { return chat.Outgoing{ID: "m-1", Chat: peer, Text: s} }

func mustMark(tb testing.TB, t *bluebubbles.Transport) string {
	tb.Helper()
	return testworld.Got(t.Mark(tb.Context()))(tb)
}

func TestSendText(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, nil)
	r, err := tr.Send(t.Context(), text("-x \"quoted\"\x00 👋\n"))
	if err != nil || r.State != chat.Sent || r.GUID == "" {
		t.Fatalf("Send = %+v, %v", r, err)
	}
	want := object{"chatGuid": "iMessage;-;+15550100", "tempGuid": "netsky-m-1", "message": "-x \"quoted\" 👋\n", "method": "apple-script"}
	sent := m.get().sent
	for key, v := range want {
		if len(sent) != 1 || sent[0][key] != v || len(sent[0]) != len(want) {
			t.Fatalf("the server got %v, want %v", sent, want)
		}
	}
}

// What became of a message, by what the server says and by what is in the table.
func TestSendOutcomes(t *testing.T) {
	t.Parallel()
	row := func(m *mac, sent object, change object) object {
		r := outgoing(sent)
		maps.Copy(r, change)
		return m.insert(r)
	}
	for _, tt := range []struct {
		name   string
		onSend func(m *mac, sent object) (int, any)
		state  chat.State
		fact   string
		again  bool
		guid   bool
	}{
		{"sent", func(m *mac, s object) (int, any) { return 200, row(m, s, nil) }, chat.Sent, "", false, true},
		{"sent, but reported with an error", func(m *mac, s object) (int, any) { return 200, row(m, s, object{"error": 22}) }, chat.Failed, "error 22", false, true},
		{"failed, with its row", func(m *mac, s object) (int, any) { return 500, row(m, s, object{"error": 22}) }, chat.Failed, "error 22", false, true},
		{"a timeout, but it is there", func(m *mac, s object) (int, any) { row(m, s, nil); return 500, nil }, chat.Sent, "", false, true},
		{"a timeout, there with an error", func(m *mac, s object) (int, any) { row(m, s, object{"error": 25}); return 500, nil }, chat.Failed, "error 25", false, true},
		{"there with other blanks", func(m *mac, s object) (int, any) { row(m, s, object{"text": " hello\u00a0 there "}); return 500, nil }, chat.Sent, "", false, true},
		{"a timeout, nothing there", func(*mac, object) (int, any) { return 500, nil }, chat.Unconfirmed, "Message send timeout", false, false},
		{"already queued", func(*mac, object) (int, any) { return 400, nil }, chat.Unconfirmed, "HTTP status 400", false, false},
		{"too often", func(*mac, object) (int, any) { return 429, nil }, chat.Failed, "HTTP status 429", true, false},
		{"no row in the response", func(*mac, object) (int, any) { return 200, nil }, chat.Unconfirmed, "which message it sent", false, false},
		{"another text", func(m *mac, s object) (int, any) { row(m, s, object{"text": "other"}); return 500, nil }, chat.Unconfirmed, "", false, false},
		{"another's text", func(m *mac, s object) (int, any) { row(m, s, object{"isFromMe": false}); return 500, nil }, chat.Unconfirmed, "", false, false},
		{"a ghost without a chat", func(m *mac, s object) (int, any) { row(m, s, object{"text": nil, "chats": nil}); return 500, nil }, chat.Unconfirmed, "", false, false},
		{"in another chat", func(m *mac, s object) (int, any) {
			row(m, s, object{"chats": []object{direct("+15550199")}})
			return 500, nil
		}, chat.Unconfirmed, "", false, false},
		{"in the same chat under its other name", func(m *mac, s object) (int, any) {
			row(m, s, object{"chats": []object{{"guid": "any;-;+15550100", "style": 45}}})
			return 500, nil
		}, chat.Sent, "", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMac(t)
			m.add(object{"isFromMe": true, "text": "hello there"}) // from before
			m.onSend = func(s object) (int, any) { return tt.onSend(m, s) }
			tr := m.open(t, nil)
			out := text("hello there")
			out.Mark = mustMark(t, tr)
			r, err := tr.Send(t.Context(), out)
			if err != nil || r.State != tt.state || !strings.Contains(r.Fact, tt.fact) || r.Again != tt.again || (r.GUID != "") != tt.guid {
				t.Errorf("Send = %+v, %v; want %s, %q", r, err, tt.state, tt.fact)
			}
			if n := len(m.get().sent); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

// The connection ends while the server sends: the row decides. And a send goes on if its caller
// does not wait for it.
func TestSendCut(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	ctx, cancel := context.WithCancel(t.Context())
	m.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/message/text") {
			return false
		}
		cancel()
		m.add(object{"isFromMe": true, "text": "hello"})
		panic(http.ErrAbortHandler)
	}
	tr := m.open(t, nil)
	out := text("hello")
	out.Mark = mustMark(t, tr)
	if r, err := tr.Send(ctx, out); err != nil || r.State != chat.Sent {
		t.Errorf("Send = %+v, %v", r, err)
	}
	testworld.ErrorIs(t, testworld.Err(tr.Send(ctx, out)), context.Canceled, "Send with an ended context")
}

func TestSendRefusals(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, nil)
	with := func(change func(*chat.Outgoing)) chat.Outgoing {
		out := text("hello")
		change(&out)
		return out
	}
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	testworld.Must(t, os.WriteFile(empty, nil, 0o600))
	for name, out := range map[string]chat.Outgoing{
		"no chat":        with(func(o *chat.Outgoing) { o.Chat = chat.Chat{} }),
		"a bare group":   with(func(o *chat.Outgoing) { o.Chat = chat.Chat{GUID: "chat77"} }),
		"a handle":       with(func(o *chat.Outgoing) { o.Chat.GUID = "+15550100" }),
		"another's guid": with(func(o *chat.Outgoing) { o.Chat.GUID = "iMessage;-;+15550199" }),
		"no id":          with(func(o *chat.Outgoing) { o.ID = "" }),
		"no text":        with(func(o *chat.Outgoing) { o.Text = " \n\x00" }),
		"no file":        with(func(o *chat.Outgoing) { o.File = filepath.Join(dir, "none") }),
		"a directory":    with(func(o *chat.Outgoing) { o.File = dir }),
		"an empty file":  with(func(o *chat.Outgoing) { o.File = empty }),
	} {
		if r, err := tr.Send(t.Context(), out); err == nil {
			t.Errorf("%s: Send = %+v", name, r)
		}
	}
	testworld.Equal(t, len(m.get().sent), 0, "were sent")
}

func TestSendFile(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, nil)
	path := filepath.Join(t.TempDir(), "a \"b\" é.png")
	testworld.Must(t, os.WriteFile(path, []byte("\x89PNG\r\n--x"), 0o600))
	out := chat.Outgoing{ID: "f-1", Chat: peer, File: path, Mark: mustMark(t, tr)}
	if r, err := tr.Send(t.Context(), out); err != nil || r.State != chat.Sent {
		t.Fatalf("Send = %+v, %v", r, err)
	}
	sent := m.get().sent[0]
	for key, want := range map[string]string{
		"chatGuid": peer.GUID, "tempGuid": "netsky-f-1", "name": filepath.Base(path), "method": "apple-script", "content": "\x89PNG\r\n--x",
	} {
		if sent[key] != want {
			t.Errorf("%s = %q, want %q", key, sent[key], want)
		}
	}
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Sent {
		t.Errorf("Find = %+v, %v", r, err)
	}
	out.File = filepath.Join(filepath.Dir(path), "other.png")
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Unconfirmed {
		t.Errorf("Find of another file = %+v, %v", r, err)
	}
}

// A message that is not there is unconfirmed at first, and certainly not sent later.
func TestFind(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	var ahead atomic.Int64
	tr := m.open(t, func(o *bluebubbles.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	out := text("hello")
	testworld.ErrorIs(t, testworld.Err(tr.Find(t.Context(), out)), chat.ErrCannotLook, "Find without a mark")
	out.Mark = mustMark(t, tr)
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Unconfirmed {
		t.Errorf("Find = %+v, %v", r, err)
	}
	ahead.Store(int64(11 * time.Minute))
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Failed || !r.Again {
		t.Errorf("Find = %+v, %v", r, err)
	}
	for i := range 450 { // behind others
		m.add(object{"text": "other", "dateCreated": int64(1_700_000_000_000 - i)})
	}
	guid := m.add(object{"isFromMe": true, "text": "hello", "error": 22})["guid"]
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Failed || r.Again || r.GUID != guid {
		t.Errorf("Find = %+v, %v", r, err)
	}
	guid = m.add(object{"isFromMe": true, "text": "hello"})["guid"]
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Sent || r.GUID != guid {
		t.Errorf("Find = %+v, %v", r, err)
	}
	out.Taken = func(taken string) bool { return taken == guid }
	if r, err := tr.Find(t.Context(), out); err != nil || r.State != chat.Failed || r.GUID == guid {
		t.Errorf("Find = %+v, %v of a row that is another text's", r, err)
	}
	m.set(func() { m.fault = answer(500, "{}") })
	if r, err := tr.Find(t.Context(), out); err == nil {
		t.Errorf("Find = %+v where the server does not answer", r)
	}
	testworld.Fails(t, testworld.Err(tr.Mark(t.Context())), "", "Mark where the server does not answer")
	if calls := m.get().calls; slices.Contains(calls, "POST /api/v1/message/text") {
		t.Errorf("Find sent something: %q", calls)
	}
}
