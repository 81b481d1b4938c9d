package telegram_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"netsky/phone/chat"
)

// answersWith makes the server answer getUpdates with a list, whatever the offset.
func (a *botAPI) answersWith(list string) {
	a.breaks(func(method string, w http.ResponseWriter, r *http.Request) bool {
		if method != "getUpdates" {
			return false
		}
		fmt.Fprintf(w, `{"ok":true,"result":[%s]}`, list)
		return true
	})
}

// Updates in a wrong order are all returned, and all acknowledged: no lower one at the end brings
// the others again, or hides them.
func TestReordered(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	api.push(text(1, 1_800_000_000, "first"))
	b := next(t, tr, begin(t, bot(t, newAPI(t).URL)))
	if !slices.Equal(texts(b), []string{"first"}) {
		t.Fatalf("%+v", b)
	}
	last := api.last
	update := func(id int64, words string) string {
		return fmt.Sprintf(`{"update_id":%d,%s}`, id, text(int(id), 1_800_000_000, words))
	}
	// The last one of the list is the one that was acknowledged before.
	api.answersWith(update(last+2, "c") + "," + update(last+1, "b") + "," + update(last, "a"))
	after := next(t, tr, b.Cursor)
	if !slices.Equal(texts(after), []string{"c", "b", "a"}) {
		t.Fatalf("%+v", after)
	}
	api.breaks(nil)
	api.mu.Lock()
	api.last = last + 2
	api.mu.Unlock()
	api.push(text(9, 1_800_000_000, "then"))
	if b := next(t, tr, after.Cursor); !slices.Equal(texts(b), []string{"then"}) {
		t.Errorf("then %v, from %s", texts(b), after.Cursor)
	}
}

// A server that sends more than it was asked for does not fill the memory or the log, and what
// was over comes later.
func TestMoreThanAsked(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	tr := bot(t, api.URL)
	cursor := begin(t, tr)
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprintf(`{"update_id":%d,%s}`, 701+i, text(1+i, 1_800_000_000, "w")))
	}
	api.answersWith(strings.Join(list, ","))
	b := next(t, tr, cursor)
	if len(b.Messages) == 0 || len(b.Messages) > chat.MaxBatch {
		t.Errorf("%d messages", len(b.Messages))
	}
	api.breaks(nil)
	for _, u := range list {
		api.mu.Lock()
		api.last++
		api.pushRaw(raw{api.last, u})
		api.mu.Unlock()
	}
	seen := len(b.Messages)
	for b := next(t, tr, b.Cursor); len(b.Messages) > 0; b = next(t, tr, b.Cursor) {
		seen += len(b.Messages)
	}
	if seen != 1000 {
		t.Errorf("%d messages of 1000", seen)
	}

	api.answersWith(strings.Repeat("0,", 3_000_000) + "0")
	if b := next(t, tr, b.Cursor); len(b.Notes) > chat.MaxBatch || len(b.Messages) > 0 {
		t.Errorf("%d notes", len(b.Notes))
	}
}
