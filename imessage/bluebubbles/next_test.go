package bluebubbles_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/imessage/bluebubbles"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// mustNext returns the texts of a batch and its cursor.
func mustNext(tb testing.TB, t *bluebubbles.Transport, cursor string) (chat.Batch, []string) {
	tb.Helper()
	b := testworld.Got(t.Next(tb.Context(), cursor))(tb)
	var texts []string
	for _, m := range b.Messages {
		texts = append(texts, m.Text)
	}
	return b, texts
}

// mustBegin makes the first run.
func mustBegin(tb testing.TB, t *bluebubbles.Transport) string {
	tb.Helper()
	b, texts := mustNext(tb, t, "")
	if len(texts) != 0 || len(b.Notes) != 0 || b.Cursor == "" {
		tb.Fatalf("the first run returns %q, %q, cursor %q", texts, b.Notes, b.Cursor)
	}
	return b.Cursor
}

func TestReads(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.add(object{"text": "from before"})
	m.add(object{"text": "old by date, new by number", "dateCreated": int64(1)})
	tr := m.open(t, nil)
	cursor := mustBegin(t, tr)
	if b, texts := mustNext(t, tr, cursor); len(texts) != 0 {
		t.Errorf("Next = %q", texts)
	} else if b.Cursor != cursor {
		t.Errorf("the cursor changes for nothing: %s, %s", cursor, b.Cursor)
	}
	for i := range 3 {
		// Three of the same millisecond, and one that says it is old.
		m.add(object{"text": fmt.Sprint("same ", i), "dateCreated": int64(1_700_000_900_000)})
	}
	m.add(object{"text": "delayed", "dateCreated": int64(1_600_000_000_123)})
	b, texts := mustNext(t, tr, cursor)
	if want := []string{"same 0", "same 1", "same 2", "delayed"}; !slices.Equal(texts, want) {
		t.Fatalf("Next = %q, want %q", texts, want)
	}
	testworld.Equal(t, b.Messages[3].At.UnixMilli(), 1_600_000_000_123, "At")
	// The same cursor again, in a new process: the same batch; the new one: nothing.
	again := m.open(t, nil)
	if _, twice := mustNext(t, again, cursor); !slices.Equal(twice, texts) {
		t.Errorf("Next with the earlier cursor = %q, want %q", twice, texts)
	}
	if _, none := mustNext(t, again, b.Cursor); len(none) != 0 {
		t.Errorf("Next = %q, which was returned before", none)
	}
}

// A row whose chat comes later, below rows that were returned, is not lost; nor is anything
// returned twice meanwhile.
func TestLateRows(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, nil)
	cursor := mustBegin(t, tr)
	late := m.add(object{"text": "late", "chats": []object{}})
	m.add(object{"text": "next"})
	b, texts := mustNext(t, tr, cursor)
	if !slices.Equal(texts, []string{"next"}) {
		t.Fatalf("Next = %q", texts)
	}
	b, texts = mustNext(t, tr, b.Cursor)
	if len(texts) != 0 {
		t.Fatalf("Next = %q", texts)
	}
	m.set(func() { late["chats"] = []object{direct("+15550100")} })
	if _, texts = mustNext(t, tr, b.Cursor); !slices.Equal(texts, []string{"late"}) {
		t.Errorf("Next = %q", texts)
	}
}

// Rows are looked at again for a time only, so that the cursor stays short.
func TestCursorIsBounded(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	var ahead atomic.Int64
	tr := m.open(t, func(o *bluebubbles.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	first := mustBegin(t, tr)
	for range 700 {
		m.add(nil)
	}
	cursor, longest := first, 0
	for range 3 {
		b, _ := mustNext(t, tr, cursor)
		cursor, longest = b.Cursor, max(longest, len(b.Cursor))
	}
	if longest > 20_000 {
		t.Errorf("a cursor of %d bytes", longest)
	}
	ahead.Store(int64(time.Hour))
	if b, texts := mustNext(t, tr, cursor); len(texts) != 0 || len(b.Cursor) > 100 {
		t.Errorf("after an hour: %d messages, cursor of %d bytes", len(texts), len(b.Cursor))
	}
}

// A backlog comes whole, once and in order, whatever the server counts for a limit: also one
// with gaps, dates in disorder and many attachments.
func TestBacklog(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		m := newMac(t)
		m.oldJoin = old
		tr := m.open(t, nil)
		cursor := mustBegin(t, tr)
		var want, got []string
		for i := range 560 {
			change := object{"text": fmt.Sprint(i), "dateCreated": int64(1_700_000_000_000 + (i*7919)%560)}
			if i%10 == 0 {
				change["attachments"] = []object{{"guid": "a"}, {"guid": "b"}, {"guid": "c"}}
			}
			if i == 300 {
				change["originalROWID"] = int64(50_000) // a gap
			}
			m.add(change)
			want = append(want, fmt.Sprint(i))
		}
		for range 10 {
			b, texts := mustNext(t, tr, cursor)
			if len(texts) > chat.MaxBatch {
				t.Fatalf("a batch of %d", len(texts))
			}
			got, cursor = append(got, texts...), b.Cursor
			if len(texts) == 0 {
				break
			}
		}
		testworld.EqualList(t, got, want, "joined %v: %d messages of %d, or another order", old, len(got), len(want))
	}
}

func TestCursorOfAnotherTable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, note string
		change     func(m *mac)
		cursor     func(string) string
	}{
		{"another Mac", "another Mac or another database", func(m *mac) {
			for _, r := range m.rows {
				r["guid"] = "other " + r["guid"].(string)
			}
		}, nil},
		{"another Mac without the message", "another Mac", func(m *mac) {
			m.rows[4]["originalROWID"] = int64(9)
			m.info["computer_id"] = "owner@other"
		}, nil},
		{"a shorter table", "its database was replaced", func(m *mac) { m.rows = m.rows[:2] }, nil},
		{"no cursor of ours", "cannot be read", func(*mac) {}, func(string) string { return `{"v":7}` }},
		{"no JSON", "cannot be read", func(*mac) {}, func(string) string { return "x" }},
	} {
		m := newMac(t)
		for range 5 {
			m.add(nil)
		}
		cursor := mustBegin(t, m.open(t, nil))
		m.set(func() { tt.change(m) })
		if tt.cursor != nil {
			cursor = tt.cursor(cursor)
		}
		tr := m.open(t, nil)
		b, texts := mustNext(t, tr, cursor)
		if len(texts) != 0 || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], tt.note) {
			t.Errorf("%s: Next = %q, %q, want a note with %q", tt.name, texts, b.Notes, tt.note)
		}
		m.add(object{"text": "new"})
		if _, texts := mustNext(t, tr, b.Cursor); !slices.Equal(texts, []string{"new"}) {
			t.Errorf("%s: then %q", tt.name, texts)
		}
	}
}

// A Mac in another network has another name, and its newest message may be deleted: what comes
// meanwhile is not lost.
func TestSameTable(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *mac){
		"another name":    func(m *mac) { m.info["computer_id"] = "owner@mac.lan" },
		"deleted message": func(m *mac) { m.rows = slices.Delete(m.rows, 4, 5) },
		"no name":         func(m *mac) { delete(m.info, "computer_id") },
	} {
		m := newMac(t)
		for range 5 {
			m.add(nil)
		}
		cursor := mustBegin(t, m.open(t, nil))
		m.add(object{"text": "new"})
		m.set(func() { change(m) })
		b, texts := mustNext(t, m.open(t, nil), cursor)
		if len(b.Notes) != 0 || !slices.Equal(texts, []string{"new"}) {
			t.Errorf("%s: Next = %q, %q", name, texts, b.Notes)
		}
	}
}

// A body that follows is waited for; one that does not is said to be missing. What comes
// meanwhile is not held up.
func TestLateBody(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	var ahead atomic.Int64
	tr := m.open(t, func(o *bluebubbles.Options) {
		o.Hold = time.Minute
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	cursor := mustBegin(t, tr)
	follows := m.add(object{"text": nil})
	m.add(object{"text": "meanwhile"})
	m.add(object{"text": " \ufffc"})
	b, texts := mustNext(t, tr, cursor)
	if !slices.Equal(texts, []string{"meanwhile"}) {
		t.Fatalf("Next = %q", texts)
	}
	m.set(func() { follows["text"] = "body" })
	b, texts = mustNext(t, tr, b.Cursor)
	if !slices.Equal(texts, []string{"body"}) {
		t.Fatalf("Next = %q", texts)
	}
	ahead.Store(int64(2 * time.Minute))
	b, _ = mustNext(t, tr, b.Cursor)
	if len(b.Messages) != 1 || b.Messages[0].Unreadable == "" || b.Messages[0].Kind != chat.Text {
		t.Errorf("Next = %+v", b.Messages)
	}
}

// A message that is not what the API says is left out, with a note; the others are not.
func TestUnreadableRow(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, nil)
	cursor := mustBegin(t, tr)
	m.add(object{"text": 7})
	m.add(object{"text": "fine"})
	b, texts := mustNext(t, tr, cursor)
	if !slices.Equal(texts, []string{"fine"}) || len(b.Notes) != 1 || !strings.Contains(b.Notes[0], "text") {
		t.Errorf("Next = %q, %q", texts, b.Notes)
	}
	if b, texts = mustNext(t, tr, b.Cursor); len(texts)+len(b.Notes) != 0 {
		t.Errorf("then %q, %q", texts, b.Notes)
	}
}

// The socket only wakes: without it messages come by the next query.
func TestSocket(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, func(o *bluebubbles.Options) { o.Watch, o.Wait = time.Hour, time.Hour })
	cursor := mustBegin(t, tr)
	for round := 1; round <= 3; round++ {
		testworld.Wait(t, "the socket to be joined", func() bool { return m.get().joined >= round })
		got := make(chan chat.Batch, 1)
		go func() {
			b, err := tr.Next(t.Context(), cursor)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		m.add(object{"text": fmt.Sprint("round ", round)})
		m.emit("typing-indicator")
		m.emit("new-message")
		b := <-got
		if len(b.Messages) != 1 || b.Messages[0].Text != fmt.Sprint("round ", round) {
			t.Fatalf("round %d: Next = %+v", round, b.Messages)
		}
		cursor = b.Cursor
		m.cut() // it connects again
	}
}

// What came while the socket was away is found when it is back, without an event.
func TestSocketCut(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, func(o *bluebubbles.Options) { o.Watch, o.Wait = time.Hour, time.Hour })
	cursor := mustBegin(t, tr)
	queries := func() int {
		n := 0
		for _, call := range m.get().calls {
			if strings.HasSuffix(call, "/query") {
				n++
			}
		}
		return n
	}
	testworld.Wait(t, "the socket to be joined", func() bool { return m.get().joined >= 1 })
	before := queries()
	got := make(chan chat.Batch, 1)
	go func() {
		b, err := tr.Next(t.Context(), cursor)
		if err != nil {
			t.Error(err)
		}
		got <- b
	}()
	// One query at once, one for the socket's first word.
	testworld.Wait(t, "Next to have looked", func() bool { return queries() >= before+2 })
	m.add(object{"text": "unannounced"})
	m.cut()
	if b := <-got; len(b.Messages) != 1 || b.Messages[0].Text != "unannounced" {
		t.Errorf("Next = %+v", b.Messages)
	}
}

// A message whose body is awaited is not passed by, however many come after it.
func TestLateBodyBeforeMany(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	tr := m.open(t, func(o *bluebubbles.Options) { o.Hold = time.Hour })
	cursor := mustBegin(t, tr)
	late := m.add(object{"text": ""})
	for range 400 {
		m.add(nil)
	}
	b, texts := mustNext(t, tr, cursor)
	if len(texts) != 400 {
		t.Fatalf("Next has %d messages", len(texts))
	}
	m.set(func() { late["text"] = "body" })
	if _, texts = mustNext(t, tr, b.Cursor); !slices.Equal(texts, []string{"body"}) {
		t.Errorf("Next = %.100q", texts)
	}
}

func TestWithoutSocket(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.deaf = true
	tr := m.open(t, func(o *bluebubbles.Options) { o.Watch, o.Wait = time.Hour, time.Hour })
	cursor := mustBegin(t, tr)
	time.AfterFunc(20*time.Millisecond, func() { m.add(object{"text": "polled"}) })
	if _, texts := mustNext(t, tr, cursor); !slices.Equal(texts, []string{"polled"}) {
		t.Errorf("Next = %q", texts)
	}
}

// Next ends with its context, and with Close.
func TestNextEnds(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	for _, end := range []func(context.CancelFunc, *bluebubbles.Transport){
		func(cancel context.CancelFunc, _ *bluebubbles.Transport) { cancel() },
		func(_ context.CancelFunc, tr *bluebubbles.Transport) { tr.Close() },
	} {
		tr := m.open(t, func(o *bluebubbles.Options) { o.Poll, o.Watch, o.Wait = time.Hour, time.Hour, time.Hour })
		cursor := mustBegin(t, tr)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { end(cancel, tr) })
		testworld.Fails(t, testworld.Err(tr.Next(ctx, cursor)), "", "Next ends without an error")
		cancel()
	}
}
