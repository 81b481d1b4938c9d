package dashboard_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"

	"github.com/gorilla/websocket"
)

// An event is one of either stream, as a browser reads it.
type event struct {
	ID   int64           `json:"id"`
	Key  string          `json:"key"`
	Data json.RawMessage `json:"data"`
}

// A stream is one browser that follows.
type stream struct {
	next  func() (event, error)
	ask   func(string) // by websocket only
	close func()
}

// sse follows by server-sent events.
func (w *world) sse(tb testing.TB, path, lastID string) *stream {
	tb.Helper()
	r := w.request(tb, "GET", path, "")
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	resp := testworld.Got(http.DefaultClient.Do(r))(tb)
	tb.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		tb.Fatalf("GET %s: %v", path, resp.Status)
	}
	in := bufio.NewReader(resp.Body)
	next := func() (e event, err error) {
		var id string
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return e, err
			}
			if v, ok := strings.CutPrefix(line, "id: "); ok {
				id = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				err := json.Unmarshal([]byte(v), &e)
				if fmt.Sprint(e.ID) != id {
					return e, fmt.Errorf("id %s on an event with %d", id, e.ID)
				}
				return e, err
			}
		}
	}
	return &stream{next: next, close: func() { resp.Body.Close() }}
}

// ws follows by websocket.
func (w *world) ws(tb testing.TB, path string) *stream {
	tb.Helper()
	c, _, err := websocket.DefaultDialer.DialContext(tb.Context(), "ws://"+w.addr+path, http.Header{"Authorization": {"Bearer " + w.token}})
	testworld.Must(tb, err)
	tb.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(testworld.Patience))
	return &stream{
		next: func() (e event, err error) {
			_, data, err := c.ReadMessage()
			if err != nil {
				return e, err
			}
			dec := json.NewDecoder(bytes.NewReader(data))
			return e, dec.Decode(&e)
		},
		ask:   func(text string) { c.WriteMessage(websocket.TextMessage, []byte(text)) }, // next tells of an error
		close: func() { c.Close() },
	}
}

// until reads until an event is wanted.
func (s *stream) until(tb testing.TB, what string, want func(event) bool) event {
	tb.Helper()
	late := time.AfterFunc(testworld.Patience, s.close)
	defer late.Stop()
	for {
		e, err := s.next()
		testworld.Must(tb, err, "%s", what)
		if want(e) {
			return e
		}
	}
}

func (s *stream) key(tb testing.TB, key string) event {
	tb.Helper()
	return s.until(tb, key, func(e event) bool { return e.Key == key })
}

// mustEvents reads a stream until it has had all keys, and returns those events.
func mustEvents(tb testing.TB, w *world, path string, keys ...string) (got []event) {
	tb.Helper()
	s := w.sse(tb, path, "")
	defer s.close()
	for len(keys) > 0 {
		e := s.until(tb, strings.Join(keys, ", "), func(e event) bool { return slices.Contains(keys, e.Key) })
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == e.Key })
		got = append(got, e)
	}
	return got
}

func mustData[T any](tb testing.TB, e event) (v T) {
	tb.Helper()
	testworld.Must(tb, json.Unmarshal(e.Data, &v))
	return v
}
