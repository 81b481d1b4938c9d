package bluebubbles_test

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netsky/imessage/bluebubbles"
	"netsky/internal/testworld"
	"netsky/phone"
)

var _ phone.Transport = (*bluebubbles.Transport)(nil)

const password = "correct horse & battery"

type object = map[string]any

// A mac is a stand-in for a BlueBubbles server, as far as the transport speaks to it: its
// responses have the shape of the server's routers and serializers, its socket that of socket.io
// 5 over engine.io 4. It shows our side only; nothing of it is Apple's.
type mac struct {
	url string

	mu      sync.Mutex
	rows    []object
	oldJoin bool // counts joined rows for a query's limit, as earlier servers do
	info    object
	files   map[string]string
	calls   []string
	deaf    bool // no socket
	sockets []*websocket.Conn
	joined  int // sockets that were joined
	sent    []object
	// fault answers a request instead of the server, if it returns true.
	fault func(http.ResponseWriter, *http.Request) bool
	// onSend says what becomes of a text or file: its row and the response.
	onSend func(sent object) (status int, data any)
	noChat string // what is said of a failed send instead
}

func newMac(tb testing.TB) *mac {
	m := &mac{info: object{
		"computer_id": "owner@mac.local", "os_version": "14.5", "server_version": "1.9.9", "private_api": false,
		"helper_connected": false, "detected_imessage": "owner@example.com", "local_ipv4s": []string{"192.168.0.2"},
	}, files: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/ping", func(w http.ResponseWriter, _ *http.Request) { success(w, "pong") })
	mux.HandleFunc("GET /api/v1/server/info", func(w http.ResponseWriter, _ *http.Request) { success(w, m.get().info) })
	mux.HandleFunc("POST /api/v1/message/query", m.query)
	mux.HandleFunc("POST /api/v1/message/text", m.send)
	mux.HandleFunc("POST /api/v1/message/attachment", m.send)
	mux.HandleFunc("GET /api/v1/attachment/{guid}/download", m.download)
	mux.HandleFunc("GET /socket.io/", m.socket)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.calls = append(m.calls, r.Method+" "+r.URL.Path)
		fault := m.fault
		m.mu.Unlock()
		switch {
		case fault != nil && fault(w, r):
		case r.URL.Path != "/socket.io/" && r.URL.Query().Get("guid") != password:
			failure(w, 401, "Unauthorized", nil)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	tb.Cleanup(server.Close)
	tb.Cleanup(m.cut)
	m.url = server.URL
	return m
}

// get returns what is safe to read without the lock.
func (m *mac) get() *mac {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &mac{info: m.info, sent: slices.Clone(m.sent), calls: slices.Clone(m.calls), joined: m.joined, rows: slices.Clone(m.rows)}
}

func (m *mac) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func respond(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func success(w http.ResponseWriter, data any) {
	respond(w, 200, object{"status": 200, "message": "Success", "data": data})
}

func failure(w http.ResponseWriter, status int, text string, data any) {
	respond(w, status, object{"status": status, "message": "An error", "data": data, "error": object{"type": "iMessage Error", "message": text}})
}

// add inserts a message with the next number, as the sender has changed it.
func (m *mac) add(change object) object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.insert(change)
}

func (m *mac) insert(change object) object {
	id := int64(1)
	for _, r := range m.rows {
		id = max(id, r["originalROWID"].(int64)+1)
	}
	r := object{
		"originalROWID": id, "guid": "GUID-" + time.Duration(id).String(), "text": "hello", "attributedBody": nil,
		"handle":   object{"originalROWID": 1, "address": "+15550100", "service": "iMessage", "country": "us"},
		"handleId": 1, "otherHandle": 0, "attachments": []object{}, "subject": nil, "error": 0,
		"dateCreated": int64(1_700_000_000_000) + id, "dateRead": nil, "isFromMe": false, "itemType": 0,
		"groupActionType": 0, "associatedMessageGuid": nil, "associatedMessageType": nil, "threadOriginatorGuid": nil,
		"isCorrupt": false, "dateRetracted": nil, "hasPayloadData": false,
		"chats": []object{direct("+15550100")},
	}
	maps.Copy(r, change)
	m.rows = append(m.rows, r)
	return r
}

// direct is a conversation with one other.
func direct(handle string) object {
	return object{"originalROWID": 1, "guid": "iMessage;-;" + handle, "style": 45, "chatIdentifier": handle, "isArchived": false, "displayName": ""}
}

func (m *mac) query(w http.ResponseWriter, r *http.Request) {
	var q struct {
		ChatGuid, Sort string
		With           []string
		Limit, Offset  int
		Where          []struct {
			Statement string
			Args      map[string]int64
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Limit < 1 || q.Limit > 1000 {
		failure(w, 400, "validation", nil)
		return
	}
	chats, files := slices.Contains(q.With, "chat"), slices.Contains(q.With, "attachment")
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []object{}
	for _, row := range m.rows {
		id := row["originalROWID"].(int64)
		in, _ := row["chats"].([]object)
		keep := len(in) > 0 || !chats && q.ChatGuid == "" // an inner join
		keep = keep && (q.ChatGuid == "" || slices.ContainsFunc(in, func(c object) bool { return c["guid"] == q.ChatGuid }))
		for _, c := range q.Where {
			switch c.Statement {
			case "message.ROWID > :startRowId":
				keep = keep && id > c.Args["startRowId"]
			case "message.ROWID <= :endRowId":
				keep = keep && id <= c.Args["endRowId"]
			default:
				failure(w, 500, "SQLITE_ERROR", nil)
				return
			}
		}
		if keep {
			list = append(list, row)
		}
	}
	slices.SortStableFunc(list, func(a, b object) int {
		x, _ := a["dateCreated"].(int64)
		y, _ := b["dateCreated"].(int64)
		if q.Sort == "DESC" {
			x, y = y, x
		}
		return cmp.Compare(x, y)
	})
	success(w, m.cutTo(list[min(q.Offset, len(list)):], q.Limit, files))
}

// cutTo applies a query's limit. Earlier servers count the rows of the join, so the last message
// may have only some of its attachments.
func (m *mac) cutTo(list []object, limit int, files bool) []object {
	if !m.oldJoin {
		return list[:min(limit, len(list))]
	}
	for i, row := range list {
		in, _ := row["attachments"].([]object)
		n := 1
		if files {
			n = max(1, len(in))
		}
		if n >= limit {
			if last := maps.Clone(row); files && n > limit {
				last["attachments"] = in[:limit]
				return append(slices.Clone(list[:i]), last)
			}
			return list[:i+1]
		}
		limit -= n
	}
	return list
}

func (m *mac) send(w http.ResponseWriter, r *http.Request) {
	sent := object{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			failure(w, 400, err.Error(), nil)
			return
		}
		for key := range r.MultipartForm.Value {
			sent[key] = r.FormValue(key)
		}
		f, _, err := r.FormFile("attachment")
		if err != nil {
			failure(w, 400, "Attachment not provided or was empty!", nil)
			return
		}
		data, _ := io.ReadAll(f)
		sent["content"] = string(data)
	} else if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		failure(w, 400, err.Error(), nil)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent = append(m.sent, sent)
	status, data := 200, any(nil)
	if m.onSend != nil {
		status, data = m.onSend(sent)
	} else {
		data = m.insert(outgoing(sent))
	}
	if status != 200 {
		failure(w, status, cmp.Or(m.noChat, "Message send timeout"), data)
		return
	}
	success(w, data)
}

// outgoing is the row of a message that was sent.
func outgoing(sent object) object {
	guid, _ := sent["chatGuid"].(string)
	row := object{"isFromMe": true, "text": sent["message"], "handle": nil, "chats": []object{{"guid": guid, "style": 45, "chatIdentifier": "x"}}}
	if name, ok := sent["name"]; ok {
		row["text"] = "\ufffc"
		row["attachments"] = []object{{"guid": "at_1", "transferName": name, "mimeType": "image/png", "totalBytes": 3}}
	}
	return row
}

func (m *mac) download(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	content, ok := m.files[r.PathValue("guid")]
	m.mu.Unlock()
	if !ok || r.URL.Query().Get("original") != "true" || r.URL.Query().Get("force") != "false" {
		failure(w, 404, "Attachment does not exist!", nil)
		return
	}
	_, _ = io.WriteString(w, content)
}

// socket speaks as socket.io does: it opens, joins, and pings.
func (m *mac) socket(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	m.mu.Lock()
	deaf := m.deaf
	m.mu.Unlock()
	if deaf || q.Get("EIO") != "4" || q.Get("transport") != "websocket" {
		http.Error(w, "no socket", http.StatusBadGateway)
		return
	}
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	write := func(s string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		_ = conn.WriteMessage(websocket.TextMessage, []byte(s))
	}
	write(`0{"sid":"a","upgrades":[],"pingInterval":30000,"pingTimeout":120000,"maxPayload":100000000}`)
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		switch string(data) {
		case "40":
			if q.Get("guid") != password {
				write("41")
				continue
			}
			write(`40{"sid":"b"}`)
			write("2")
		case "3": // it answers pings: joined
			m.set(func() { m.sockets, m.joined = append(m.sockets, conn), m.joined+1 })
		}
	}
}

// emit sends an event to all sockets.
func (m *mac) emit(event string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sockets {
		_ = s.WriteMessage(websocket.TextMessage, []byte(`42["`+event+`",{"guid":"x"}]`))
	}
}

// cut ends all sockets without a word.
func (m *mac) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sockets {
		s.UnderlyingConn().Close()
	}
	m.sockets = nil
}

func passwordFile(tb testing.TB, text string, mode os.FileMode) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "password")
	testworld.Must(tb, os.WriteFile(path, []byte(text), mode))
	testworld.Must(tb, os.Chmod(path, mode))
	return path
}

// open opens a transport with times for a test.
func (m *mac) open(tb testing.TB, change func(*bluebubbles.Options)) *bluebubbles.Transport {
	tb.Helper()
	o := bluebubbles.Options{
		URL: m.url + "/", PasswordFile: passwordFile(tb, password+"\n", 0o600),
		Poll: 5 * time.Millisecond, Watch: 5 * time.Millisecond, Wait: 40 * time.Millisecond, Hold: 30 * time.Millisecond,
		Look: 20 * time.Millisecond, Timeout: 10 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	t := testworld.Got(bluebubbles.Open(o))(tb)
	tb.Cleanup(func() { t.Close() })
	return t
}

// leaks reports whether a text has the password in any form.
func leaks(s string) bool {
	return strings.Contains(s, password) || strings.Contains(s, url.QueryEscape(password)) || strings.Contains(s, "battery")
}
