package home_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

const worker = agent.ID("agent1")

func mustAppend(tb testing.TB, h home.Dir, events ...agent.Event) {
	tb.Helper()
	for _, e := range events {
		testworld.Must(tb, home.Events(h).Append(worker, e))
	}
}

// mustRead reads what has come and says it in a word each: the ID, or the text.
func mustRead(tb testing.TB, tail *home.EventTail) string {
	tb.Helper()
	var got []string
	testworld.Must(tb, tail.Read(func(e agent.Event) { got = append(got, e.ID+e.Text) }))
	return strings.Join(got, " ")
}

func mustTail(tb testing.TB, tail *home.EventTail) *home.EventTail {
	tb.Cleanup(func() { tail.Close() })
	return tail
}

// mustPut writes bytes at the end of the file of events.
func mustPut(tb testing.TB, h home.Dir, bytes string) {
	tb.Helper()
	f, err := h.OpenAppend(home.EventsFile(worker))
	if err == nil {
		_, err = f.WriteString(bytes)
		err = errors.Join(err, f.Close())
	}
	testworld.Must(tb, err)
}

func seen(id string) agent.Event { return agent.Event{Event: agent.EventSeen, ID: id} }

func TestEvents(t *testing.T) {
	h := testworld.Home(t)
	tail := mustTail(t, home.Events(h).Tail(worker))
	if got := mustRead(t, tail); got != "" {
		t.Errorf("read %q before there was a file", got)
	}
	before := time.Now().UnixMilli()
	mustAppend(t, h, seen("a"), agent.Event{MS: 7, Event: agent.EventStop, Text: "done", Usage: &agent.Usage{Input: 3, Output: 4}})
	var list []agent.Event
	testworld.Must(t, tail.Read(func(e agent.Event) { list = append(list, e) }))
	if len(list) != 2 || list[0].MS < before || list[1].MS != 7 || list[1].Text != "done" || list[1].Usage.Output != 4 {
		t.Fatalf("read %+v", list)
	}
	mustAppend(t, h, seen("b"))
	testworld.Equal(t, mustRead(t, tail), "b", "only what has come since")
	testworld.Equal(t, mustRead(t, mustTail(t, home.Events(h).Tail(worker))), "a done b", "a new tail read")
}

func TestEventsOddLines(t *testing.T) {
	h := testworld.Home(t)
	tail := mustTail(t, home.Events(h).Tail(worker))
	huge := `{"ms":1,"event":"seen","id":"` + strings.Repeat("x", 1<<20) + `"}`
	mustPut(t, h, "no JSON\n\n{}\nnull\n[1]\n{\"ms\":1,\"event\":\"\",\"id\":\"none\"}\n"+huge+"\n")
	mustAppend(t, h, seen("a"))
	mustPut(t, h, `{"ms":1,"event":"seen","id":"hal`)
	testworld.Equal(t, mustRead(t, tail), "a", "a: half a line is not read yet")
	mustPut(t, h, "f\"}\n")
	testworld.Equal(t, mustRead(t, tail), "half", "the line that is whole now")
	// A full disk cut a line short; the next one stands behind it.
	mustPut(t, h, `{"ms":1,"event":"stop","text":"{\"ms\":1,\"event\":\"seen\",\"id\":\"forged\"}`)
	mustAppend(t, h, seen("b"))
	testworld.Equal(t, mustRead(t, tail), "b", "read")
	long := agent.Event{MS: 1, Event: agent.EventStop, Text: strings.Repeat("y", 1<<20-100)}
	mustAppend(t, h, long)
	if got := mustRead(t, tail); got != long.Text {
		t.Errorf("read %d bytes of a text of %d", len(got), len(long.Text))
	}
	long.Text += strings.Repeat("y", 100)
	testworld.Fails(t, home.Events(h).Append(worker, long), "", "a line was appended that no reader takes")
	testworld.Must(t, os.Truncate(h.Path(home.EventsFile(worker)), 0))
	mustAppend(t, h, seen("after"))
	if got := mustRead(t, tail); got != "after" {
		t.Errorf("read %q after a cut by hand", got)
	}
}

func TestEventsRotate(t *testing.T) {
	h := testworld.Home(t)
	testworld.Must(t, home.Events(h).Rotate(worker), "without a file")
	tail := mustTail(t, home.Events(h).Tail(worker))
	mustAppend(t, h, seen("a"))
	if got := mustRead(t, tail); got != "a" {
		t.Fatalf("read %q", got)
	}
	rotate := func() {
		t.Helper()
		path := h.Path(home.EventsFile(worker))
		testworld.Must(t, home.Events(h).Rotate(worker))
		testworld.Must(t, testworld.Err(os.Stat(path)), "a small file was moved aside")
		mustPut(t, h, strings.Repeat("x", 4<<20)+"\n") // a line that nobody takes
		testworld.Must(t, home.Events(h).Rotate(worker))
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Fatalf("a file of 4 MiB was not moved aside: %v", err)
		}
	}
	mustAppend(t, h, seen("b"))
	// Somebody has the file open already when it is moved aside.
	f := testworld.Got(h.OpenAppend(home.EventsFile(worker)))(t)
	defer f.Close()
	rotate()
	testworld.Equal(t, mustRead(t, tail), "b", "what came before the rotation")
	mustAppend(t, h, seen("c"))
	testworld.Equal(t, mustRead(t, tail), "c", "what came after the rotation")
	testworld.Got(fmt.Fprintln(f, `{"ms":1,"event":"seen","id":"late"}`))(t)
	testworld.Equal(t, mustRead(t, tail), "late", "what was written to the file moved aside")
	testworld.Equal(t, mustRead(t, mustTail(t, home.Events(h).Tail(worker))), "c", "the present file")
	all := mustTail(t, home.Events(h).TailAll(worker))
	testworld.Equal(t, mustRead(t, all), "a b late c", "TailAll reads")
	mustAppend(t, h, seen("d"))
	testworld.Equal(t, mustRead(t, all), "d", "TailAll reads on with")
}

// TestEventsRotateUnderWriters: what several write while the file is moved aside
// again and again is read once each, in each writer's order.
func TestEventsRotateUnderWriters(t *testing.T) {
	const writers, rotations, each = 4, 12, 60 // lines of each, for every rotation
	h := testworld.Home(t)
	tail := mustTail(t, home.Events(h).Tail(worker))
	mustPut(t, h, "\n") // there is a file to begin with
	if got := mustRead(t, tail); got != "" {
		t.Fatalf("read %q", got)
	}
	var wg sync.WaitGroup
	var stop atomic.Bool
	var may atomic.Int64
	var wrote [writers]atomic.Int64
	for w := range writers {
		wg.Go(func() {
			for i := 0; !stop.Load(); {
				if int64(i) >= may.Load() {
					runtime.Gosched()
					continue
				}
				if err := home.Events(h).Append(worker, seen(fmt.Sprintf("%d %d", w, i))); err != nil {
					t.Error(err)
				}
				i++
				wrote[w].Store(int64(i))
			}
		})
	}
	defer wg.Wait()
	defer stop.Store(true)
	var next [writers]int
	read := func() {
		t.Helper()
		err := tail.Read(func(e agent.Event) {
			var w, i int
			if _, err := fmt.Sscanf(e.ID, "%d %d", &w, &i); err != nil || i != next[w] {
				t.Errorf("read %q, want %d of this writer", e.ID, next[w])
				stop.Store(true)
				return
			}
			next[w]++
		})
		if err != nil {
			t.Error(err)
		}
	}
	fill := strings.Repeat("x", 4<<20) + "\n"
	var before [writers]int64
	for n := 0; n < rotations && !t.Failed(); n++ {
		mustPut(t, h, fill)
		may.Add(each)
		for w := range writers { // no line is under way over two rotations
			for wrote[w].Load() < before[w]+2 && !t.Failed() {
				runtime.Gosched()
			}
			before[w] = wrote[w].Load()
		}
		testworld.Equal(t, home.Events(h).Rotate(worker), nil)
		read()
	}
	stop.Store(true)
	wg.Wait()
	read()
	for w, n := range next {
		if int64(n) != wrote[w].Load() {
			t.Errorf("%d of %d of writer %d read", n, wrote[w].Load(), w)
		}
	}
}

// TestEventsRotateTwice: a file that comes and is moved aside between two looks,
// of which the first found none under the name, is read all the same.
func TestEventsRotateTwice(t *testing.T) {
	h := testworld.Home(t)
	full := strings.Repeat("x", 4<<20) + "\n"
	rotate := func() {
		t.Helper()
		mustPut(t, h, full)
		testworld.Must(t, home.Events(h).Rotate(worker))
	}
	mustAppend(t, h, seen("long ago"))
	rotate()
	mustAppend(t, h, seen("a"))
	tail := mustTail(t, home.Events(h).Tail(worker))
	testworld.Equal(t, mustRead(t, tail), "a", "read")
	rotate()
	if got := mustRead(t, tail); got != "" {
		t.Errorf("read %q when nothing had come", got)
	}
	for _, id := range []string{"b", "d"} {
		mustAppend(t, h, seen(id))
		rotate()
		mustAppend(t, h, seen(id+" next"))
		if got := mustRead(t, tail); got != id+" "+id+" next" {
			t.Errorf("read %q, want what was moved aside meanwhile, too", got)
		}
		rotate()
		if got := mustRead(t, tail); got != "" {
			t.Errorf("read %q when nothing had come", got)
		}
	}
	mustAppend(t, h, seen("e"))
	rotate()
	if got := mustRead(t, tail); got != "e" {
		t.Errorf("read %q while there is none under the name", got)
	}
}

func TestEventsFollowNoLink(t *testing.T) {
	h := testworld.Home(t)
	tail := mustTail(t, home.Events(h).Tail(worker))
	path := h.Path(home.EventsFile(worker))
	other := h.Path("other")
	testworld.Must(t, os.WriteFile(other, []byte("{\"ms\":1,\"event\":\"seen\",\"id\":\"forged\"}\n"), 0o600))
	testworld.Must(t, os.Symlink(other, path))
	testworld.ErrorIs(t, home.Events(h).Append(worker, seen("a")), home.ErrLink, "Append through a link")
	testworld.ErrorIs(t, tail.Read(func(e agent.Event) { t.Errorf("read %+v", e) }), home.ErrLink, "Read through a link")
	testworld.Must(t, os.Remove(path))
	mustAppend(t, h, seen("b"))
	if got := mustRead(t, tail); got != "b" {
		t.Errorf("read %q when the link had gone", got)
	}
}
