package bluebubbles_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/imessage/bluebubbles"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// FuzzResponse gives the transport whatever a server may answer.
func FuzzResponse(f *testing.F) {
	m := newMac(f)
	m.deaf = true
	tr := m.open(f, nil)
	row := testworld.Got(json.Marshal(m.add(object{"attachments": []object{{"guid": "a"}}})))(f)
	for _, seed := range []string{
		`{"status":200,"message":"Success","data":[` + string(row) + `]}`,
		`{"data":[{"originalROWID":1,"guid":"g","associatedMessageType":"-like","chats":[{}],"attachments":[{}]}]}`,
		`{"data":[{"originalROWID":1e3,"guid":"g"}]}`, `{"data":[null]}`, `{"data":null}`, `{"data":[{"originalROWID":-1,"guid":""}]}`,
		`{"data":[{"originalROWID":1,"guid":"g","associatedMessageType":"-","dateCreated":9223372036854775807,"chats":null}]}`,
		`{"data":[{"originalROWID":1,"guid":"g","associatedMessageType":{},"handle":[]}]}`, ``, `[`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m.set(func() {
			m.fault = func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write(body)
				return true
			}
		})
		list, err := tr.History(t.Context(), chat.Chat{GUID: "iMessage;-;+15550100"}, 10)
		var d *chat.Degraded
		if err != nil && (!errors.As(err, &d) || leaks(err.Error())) {
			t.Fatalf("History: %v", err)
		}
		for _, m := range list {
			if m.GUID == "" || m.Kind == "" || m.Kind == chat.Text && m.Unreadable != "" && m.Text != "" {
				t.Fatalf("History has %+v", m)
			}
		}
	})
}

// What a socket may say besides what it should: messages come all the same, and it is never
// taken for connected for nothing.
func TestSocketJunk(t *testing.T) {
	t.Parallel()
	for _, junk := range []string{
		"", "0", "0{", "1", "4", "42", `42["new-message"`, `42[{}]`, "44{}", "41", "6", "9", "\x00", `0{"pingInterval":-1,"pingTimeout":-1}`,
	} {
		m := newMac(t)
		m.set(func() {
			m.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/socket.io/" {
					return false
				}
				conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
				if err != nil {
					return true
				}
				defer conn.Close()
				for _, s := range []string{`0{"pingInterval":1000,"pingTimeout":1000}`, junk, junk} {
					_ = conn.WriteMessage(websocket.TextMessage, []byte(s))
				}
				_, _, _ = conn.ReadMessage()
				m.set(func() { m.joined++ })
				return true
			}
		})
		tr := m.open(t, nil)
		cursor := mustBegin(t, tr)
		testworld.Wait(t, "the socket", func() bool { return m.get().joined > 0 })
		m.add(object{"text": "after junk"})
		if _, texts := mustNext(t, tr, cursor); len(texts) != 1 {
			t.Errorf("after %q: Next = %q", junk, texts)
		}
		testworld.Equal(t, tr.Close(), nil)
	}
}

// A socket that refuses the password is not tried again and again.
func TestSocketRefused(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	dials := 0
	m.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/socket.io/" {
			return false
		}
		m.set(func() { dials++ })
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return true
		}
		defer conn.Close()
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`0{"pingInterval":1000,"pingTimeout":1000}`))
		_, _, _ = conn.ReadMessage()
		_ = conn.WriteMessage(websocket.TextMessage, []byte("41"))
		_, _ = io.Copy(io.Discard, r.Body)
		return true
	}
	tr := m.open(t, func(o *bluebubbles.Options) { o.Timeout = time.Minute })
	cursor := mustBegin(t, tr)
	for range 10 {
		b, _ := mustNext(t, tr, cursor)
		cursor = b.Cursor
	}
	m.set(func() {
		testworld.Equal(t, dials, 1, "sockets were dialed")
	})
}
