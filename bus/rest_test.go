package bus_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
)

// skewed is a clock that a test sets ahead.
type skewed struct{ ahead atomic.Int64 }

func (s *skewed) now() time.Time      { return time.Now().Add(time.Duration(s.ahead.Load())) }
func (s *skewed) add(d time.Duration) { s.ahead.Add(int64(d)) }

// said collects what a receiver or router reports.
type said struct {
	mu   sync.Mutex
	text []string
}

func (s *said) report(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, what)
}

func (s *said) has(word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.text, "\n"), word)
}

// TestUnfinished: what may be the beginning of an envelope is left alone for
// 10 s, and however long somebody has it open for writing; another fault is
// judged after 1 s.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		whole      bool // no more writing mends it
	}{
		{"empty", "", false},
		{"blank", " \n", false},
		{"brace", "{", false},
		{"half a key", `{"fr`, false},
		{"half a text", `{"from":"agent0","text":"h`, false},
		{"half a word", `{"from":"agent0","x":tr`, false},
		{"half a letter", "{\"from\":\"agent0\",\"text\":\"\xc3", false},
		{"no end", strings.TrimSuffix(handmade, "}"), false},
		{"half, with a fault", `{"from":"nobody","te`, false},
		{"prose", "hello", true},
		{"a fault", `{"from":"nobody","text":"hi","ts":"2026-11-20T12:00:00Z"}`, true},
		{"more behind it", handmade + "x", true},
		{"not UTF-8", "{\"from\":\"\xff\"}", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var clock skewed
			b, home := mustBus(t, bus.Options{Now: clock.now}, agent.Root, a1)
			mustDrop(t, home, a1, bus.Inbox, "x.json", tt.text)
			look := func() int {
				t.Helper()
				testworld.Got(b.Drain(t.Context(), a1, 0, nil))(t)
				return testworld.Got(b.Count(a1, bus.Poison))(t)
			}
			testworld.Equal(t, look(), 0, "judged at once")
			clock.add(5 * time.Second)
			testworld.Equal(t, look() == 1, tt.whole, "judged after 5 s")
			clock.add(6 * time.Second)
			testworld.Equal(t, look(), 1, "not judged after 11 s")
		})
	}
}

// atLast is what a slow writer writes in the end.
var atLast = map[bus.Place]string{bus.Inbox: handmade, bus.Outbox: `{"to":"agent0","text":"at last"}`}

func TestHeldOpen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Log("only Linux tells who has a file open; TestMended covers the rest")
		return
	}
	for _, place := range []bus.Place{bus.Inbox, bus.Outbox} {
		t.Run(string(place), func(t *testing.T) {
			t.Parallel()
			var clock skewed
			b, home := mustBus(t, bus.Options{Now: clock.now}, agent.Root, a1)
			look := func() {
				t.Helper()
				if place == bus.Outbox {
					testworld.Must(t, b.Route(t.Context()))
					return
				}
				testworld.Got(b.Drain(t.Context(), a1, 0, func(envelope.Envelope) error { return nil }))(t)
			}
			f := testworld.Got(os.Create(box(home, place, "hello.json")))(t)
			other := testworld.Got(os.Create(box(home, place, "other.json")))(t)
			testworld.Must(t, other.Close())
			for range 3 {
				clock.add(time.Hour)
				look()
			}
			mustCount(t, b, a1, bus.Poison, 1) // the one that nobody has open
			mustCount(t, b, a1, place, 1)
			testworld.Got(f.WriteString(atLast[place]))(t)
			testworld.Must(t, f.Close())
			look()
			mustCount(t, b, a1, place, 0)
			mustCount(t, b, a1, bus.Poison, 1)
		})
	}
}

// TestMended: a poisoned file that changes into a valid one goes back where it
// was found, whoever had poisoned it, and it is reported; one that only changes,
// or was refused for another reason, stays.
func TestMended(t *testing.T) {
	t.Parallel()
	for _, place := range []bus.Place{bus.Inbox, bus.Outbox} {
		for _, restart := range []bool{false, true} {
			t.Run(string(place), func(t *testing.T) {
				t.Parallel()
				var told said
				b, home := mustBus(t, bus.Options{}, agent.Root, a1)
				late := box(home, place, "late.json")
				f := testworld.Got(os.Create(late))(t)
				testworld.Must(t, f.Close())
				age(t, late)
				age(t, mustDrop(t, home, a1, place, "never.json", "{"))
				start := func() (stop func()) {
					if place == bus.Inbox {
						r := mustReceive(t, b, a1, bus.ReceiveOptions{Report: told.report})
						return func() { testworld.Must(t, r.Close()) }
					}
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan struct{})
					go func() { b.RunRouter(ctx, told.report); close(done) }()
					stop = func() { cancel(); <-done }
					t.Cleanup(stop)
					return stop
				}
				stop := start()
				testworld.Wait(t, "poison", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 2 })
				if restart {
					stop()
					b = bus.New(home, bus.Options{})
					start()
				}
				// The writer had it open all the time, as far as the system knew.
				testworld.Must(t, os.WriteFile(box(home, bus.Poison, "never.json"), []byte(`{"from":`), 0o600))
				testworld.Must(t, os.WriteFile(box(home, bus.Poison, "late.json"), []byte(newEnvelope(`"text":"at last","to":"` + map[bus.Place]string{
					bus.Inbox: "agent1", bus.Outbox: "agent0"}[place] + `"`)[:]), 0o600))
				if place == bus.Outbox {
					testworld.Must(t, os.WriteFile(box(home, bus.Poison, "late.json"), []byte(`{"to":"agent0","text":"at last"}`), 0o600))
				}
				testworld.Wait(t, "moved back", func() bool { n, _ := b.Count(a1, bus.Poison); return n == 1 })
				testworld.Wait(t, "told", func() bool { return told.has("late.json is now a valid envelope: moved back to the " + string(place)) })
				if _, err := os.Stat(box(home, bus.Poison, "late.json.why")); !os.IsNotExist(err) {
					t.Errorf("late.json.why: %v", err)
				}
				to := agent.Root
				if place == bus.Inbox {
					to = a1
				}
				testworld.Wait(t, "delivered", func() bool {
					n, _ := b.Count(to, bus.Inbox)
					m, _ := b.Count(to, bus.Claimed)
					return n+m == 1
				})
			})
		}
	}
}
