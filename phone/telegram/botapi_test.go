package telegram_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone/telegram"
)

// botAPI is our own stand-in for a Bot API server, made from the published description of
// the API and the source of the public server. It shows what we do with such answers, not
// what Telegram does. emulator_test.go has one that is not ours.
//
// As there: getUpdates with an offset forgets all updates below it, and an offset beyond the
// last one gives what there is from the beginning; one that waits is ended with 409 by
// another; a webhook lets none through.
type botAPI struct {
	*httptest.Server
	token string

	mu      sync.Mutex
	queue   []raw // guarded by mu, as all below
	last    int64
	poll    chan struct{} // closed to end the one that waits
	news    chan struct{} // closed when something is queued
	webhook string
	asked   map[string]int
	sent    []map[string]any
	answers []string
	edits   []string // chat, message, and what stands below it then
	files   map[string][]byte
	uploads []upload
	// fault, if set, answers a request instead, and reports whether it did.
	fault func(method string, w http.ResponseWriter, r *http.Request) bool
}

type raw struct {
	id   int64
	data string
}

type upload struct {
	chat, name string
	data       []byte
}

const secret = "123456:AAtestTESTtestTESTtestTESTtestTEST-_"

func newAPI(t *testing.T) *botAPI {
	t.Helper()
	a := &botAPI{token: secret, last: 700, news: make(chan struct{}), asked: make(map[string]int), files: make(map[string][]byte)}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// push queues an update; body is what follows its number.
func (a *botAPI) push(body string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	a.pushRaw(raw{a.last, fmt.Sprintf(`{"update_id":%d,%s}`, a.last, body)})
	return a.last
}

func (a *botAPI) pushRaw(r raw) {
	a.queue = append(a.queue, r)
	close(a.news)
	a.news = make(chan struct{})
}

func (a *botAPI) waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue)
}

func (a *botAPI) count(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked[method]
}

func (a *botAPI) breaks(f func(method string, w http.ResponseWriter, r *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = f
}

func say(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func ok(w http.ResponseWriter, result any) { say(w, 200, map[string]any{"ok": true, "result": result}) }

func refuse(w http.ResponseWriter, code int, text string) {
	say(w, code, map[string]any{"ok": false, "error_code": code, "description": text})
}

// hang answers nothing until the other side gives up. A server notices that only once it
// has read the request.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func (a *botAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p, found := strings.CutPrefix(r.URL.Path, "/file/bot"+a.token+"/"); found {
		a.serveFile(w, r, p)
		return
	}
	method, found := strings.CutPrefix(r.URL.Path, "/bot"+a.token+"/")
	if !found {
		refuse(w, 401, "Unauthorized")
		return
	}
	a.mu.Lock()
	a.asked[method]++
	fault := a.fault
	a.mu.Unlock()
	if fault != nil && fault(method, w, r) {
		return
	}
	if method == "sendDocument" {
		a.sendDocument(w, r)
		return
	}
	args := make(map[string]any)
	d := json.NewDecoder(r.Body)
	d.UseNumber()
	if err := d.Decode(&args); err != nil {
		refuse(w, 400, "Bad Request: can't parse JSON")
		return
	}
	switch method {
	case "getUpdates":
		a.getUpdates(w, r, args)
	case "getMe":
		ok(w, map[string]any{"id": 123456, "is_bot": true, "username": "owners_bot", "can_join_groups": true, "can_read_all_group_messages": true})
	case "getWebhookInfo":
		a.mu.Lock()
		defer a.mu.Unlock()
		ok(w, map[string]any{"url": a.webhook, "pending_update_count": len(a.queue)})
	case "answerCallbackQuery":
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answers = append(a.answers, fmt.Sprint(args["callback_query_id"]))
		ok(w, true)
	case "sendMessage":
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sent = append(a.sent, args)
		ok(w, map[string]any{"message_id": 9000 + len(a.sent), "date": 1, "chat": map[string]any{"id": args["chat_id"]}})
	case "editMessageReplyMarkup":
		a.mu.Lock()
		defer a.mu.Unlock()
		a.edits = append(a.edits, fmt.Sprint(args["chat_id"], " ", args["message_id"], " ", args["reply_markup"]))
		if n := len(a.edits); n > 1 && a.edits[n-1] == a.edits[n-2] {
			refuse(w, 400, "Bad Request: message is not modified")
			return
		}
		ok(w, true)
	case "getFile":
		id := fmt.Sprint(args["file_id"])
		a.mu.Lock()
		defer a.mu.Unlock()
		data, have := a.files[id]
		if !have {
			refuse(w, 400, "Bad Request: invalid file_id")
			return
		}
		ok(w, map[string]any{"file_id": id, "file_size": len(data), "file_path": "documents/" + id})
	default:
		refuse(w, 404, "Not Found")
	}
}

func (a *botAPI) getUpdates(w http.ResponseWriter, r *http.Request, args map[string]any) {
	number := func(name string) int64 {
		n, _ := args[name].(json.Number)
		v, _ := n.Int64()
		return v
	}
	offset, limit := number("offset"), int(number("limit"))
	timer := time.NewTimer(time.Duration(number("timeout")) * time.Second)
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.poll != nil {
		close(a.poll)
	}
	over := make(chan struct{})
	a.poll = over
	for late := number("timeout") == 0; ; {
		if a.webhook != "" {
			refuse(w, 409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
			return
		}
		list := a.from(offset, limit)
		if len(list) > 0 || late {
			a.poll = nil
			ok(w, list)
			return
		}
		news := a.news
		a.mu.Unlock()
		select {
		case <-over:
			a.mu.Lock()
			refuse(w, 409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
			return
		case <-r.Context().Done():
		case <-news:
		case <-timer.C:
			late = true
		}
		a.mu.Lock()
		if r.Context().Err() != nil {
			if a.poll == over {
				a.poll = nil
			}
			return
		}
	}
}

// from forgets what is below the offset. The caller holds mu.
func (a *botAPI) from(offset int64, limit int) []json.RawMessage {
	if offset > 0 && offset <= a.last+1 {
		for len(a.queue) > 0 && a.queue[0].id < offset {
			a.queue = a.queue[1:]
		}
	}
	list := []json.RawMessage{}
	for _, u := range a.queue[:min(limit, len(a.queue))] {
		list = append(list, json.RawMessage(u.data))
	}
	return list
}

func (a *botAPI) sendDocument(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		refuse(w, 400, "Bad Request: "+err.Error())
		return
	}
	f, h, err := r.FormFile("document")
	if err != nil {
		refuse(w, 400, "Bad Request: there is no document in the request")
		return
	}
	data, _ := io.ReadAll(f)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.uploads = append(a.uploads, upload{strings.TrimSuffix(r.FormValue("chat_id")+"/"+r.FormValue("message_thread_id"), "/"), h.Filename, data})
	ok(w, map[string]any{"message_id": 8000 + len(a.uploads)})
}

func (a *botAPI) serveFile(w http.ResponseWriter, r *http.Request, p string) {
	a.mu.Lock()
	fault := a.fault
	data, have := a.files[strings.TrimPrefix(p, "documents/")]
	a.mu.Unlock()
	if fault != nil && fault("file", w, r) {
		return
	}
	if !have {
		http.NotFound(w, r)
		return
	}
	w.Write(data)
}

// bot returns a transport of the stand-in's bot, which waits a second for messages.
func bot(t *testing.T, api string, edit ...func(*telegram.Options)) *telegram.Transport {
	t.Helper()
	o := telegram.Options{TokenFile: tokenFile(t, secret, 0o600), API: api, Poll: time.Second}
	for _, f := range edit {
		f(&o)
	}
	tr := testworld.Got(telegram.New(o))(t)
	t.Cleanup(func() { tr.Close() })
	return tr
}

func tokenFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	testworld.Must(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	testworld.Must(t, os.Chmod(file, mode))
	return file
}
