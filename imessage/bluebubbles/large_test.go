package bluebubbles_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/imessage/bluebubbles"
	"netsky/internal/testworld"
)

// What a server makes long does not make the cursor long, and it still knows its table.
func TestLongNames(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.info["computer_id"] = strings.Repeat("c", 100<<10)
	m.add(object{"guid": strings.Repeat("a", 100<<10)})
	cursor := mustBegin(t, m.open(t, nil))
	m.add(object{"guid": strings.Repeat("b", 100<<10), "text": "one"})
	b, texts := mustNext(t, m.open(t, nil), cursor)
	if !slices.Equal(texts, []string{"one"}) {
		t.Fatalf("Next = %q", texts)
	}
	m.add(object{"text": "two"})
	after, texts := mustNext(t, m.open(t, nil), b.Cursor)
	if !slices.Equal(texts, []string{"two"}) || len(after.Notes) > 0 {
		t.Errorf("Next = %q, %q", texts, after.Notes)
	}
	if most := max(len(cursor), len(b.Cursor), len(after.Cursor)); most > 1000 {
		t.Errorf("a cursor has %d bytes", most)
	}
	m.set(func() { m.rows[1]["guid"] = strings.Repeat("b", 100<<10-1) + "c" })
	if lost, texts := mustNext(t, m.open(t, nil), b.Cursor); len(texts) > 0 || len(lost.Notes) != 1 {
		t.Errorf("another table: Next = %q, %q", texts, lost.Notes)
	}
}

// Texts of which a few fill a response: each is returned once, a batch stays bounded, and one that
// is larger than any response is left out with a note. None of them holds back what follows.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	m.add(nil)
	cursor := mustBegin(t, m.open(t, nil))
	long := func(n int, size int) string { return fmt.Sprintf("%d ", n) + strings.Repeat("x", size) }
	for i, size := range []int{5, 9, 5, 0} {
		m.add(object{"text": long(i, size<<20)})
	}
	tr := m.open(t, nil)
	var got, notes []string
	for range 4 {
		b, texts := mustNext(t, tr, cursor)
		size := 0
		for _, s := range texts {
			size += len(s)
			got = append(got, s[:1])
		}
		if size > 12<<20 {
			t.Errorf("a batch has %d bytes of texts", size)
		}
		notes = append(notes, b.Notes...)
		cursor = b.Cursor
	}
	testworld.Equal(t, strings.Join(got, ""), "023", "Next returned")
	if len(notes) != 1 || !strings.Contains(notes[0], "more than 8 MiB") {
		t.Errorf("notes %q", notes)
	}
	// The end of the table, where the newest message is the one that nobody can read.
	m.add(object{"text": long(0, 9<<20)})
	end := mustBegin(t, m.open(t, nil))
	m.add(object{"text": "after"})
	if b, texts := mustNext(t, m.open(t, nil), end); !slices.Equal(texts, []string{"after"}) || len(b.Notes) > 0 {
		t.Errorf("Next = %q, %q", texts, b.Notes)
	}
}

// A socket that never stops saying that something happened does not make a storm of queries.
func TestEventStorm(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	cursor := mustBegin(t, m.open(t, nil))
	tr := m.open(t, func(o *bluebubbles.Options) {
		o.Poll, o.Watch, o.Wait = time.Second, time.Second, 600*time.Millisecond // a twentieth is 50 ms
	})
	mustNext(t, tr, cursor) // joins
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				m.emit("updated-message")
			}
		}
	}()
	before := len(m.get().calls)
	b, _ := mustNext(t, tr, cursor)
	after := len(m.get().calls)
	close(stop)
	<-done
	m.set(func() {
		if m.joined == 0 {
			t.Error("the socket was not joined")
		}
	})
	if n := after - before; n > 25 || len(b.Notes) > 0 {
		t.Errorf("%d queries in 0.6 s", n)
	}
}
