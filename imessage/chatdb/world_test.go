package chatdb_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

func TestMain(m *testing.M) {
	if messagesim.Main() {
		return
	}
	os.Exit(m.Run())
}

// A clock stands still until it is advanced, however slow the machine is.
type clock struct {
	mu sync.Mutex // guards at
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// decode is a decoder of bodies that say "body:" and the text.
func decode(b []byte) (string, error) {
	text, ok := strings.CutPrefix(string(b), "body:")
	if !ok {
		return "", errors.New("no body")
	}
	return text, nil
}

// A reader follows a simulated database, as the bridge does.
type reader struct {
	testing.TB
	sim    *messagesim.Sim
	db     *chatdb.DB
	clock  *clock
	cursor string
	notes  []string
}

func mustReader(tb testing.TB, p messagesim.Profile, edit func(*chatdb.Options)) *reader {
	tb.Helper()
	r := &reader{TB: tb, sim: messagesim.Start(tb, p), clock: newClock()}
	r.open(edit)
	r.next()
	if r.cursor == "" {
		tb.Fatal("the first call returned no cursor")
	}
	return r
}

// open makes a new DB, as a new process of netsky does.
func (r *reader) open(edit func(*chatdb.Options)) {
	if r.db != nil {
		r.db.Close()
	}
	o := chatdb.Options{
		Path: r.sim.Path, Decode: decode, Now: r.clock.now,
		Every: time.Millisecond, Wait: 20 * time.Millisecond, Rest: time.Millisecond,
	}
	if edit != nil {
		edit(&o)
	}
	r.db = chatdb.New(o)
	r.Cleanup(func() { r.db.Close() })
}

// next returns what one call does.
func (r *reader) next() []chat.Message {
	r.Helper()
	b := testworld.Got(r.db.Next(context.Background(), r.cursor))(r)
	r.cursor = b.Cursor
	r.notes = append(r.notes, b.Notes...)
	return b.Messages
}

// after returns what is there at the end of a time, in which the reader looks twice.
func (r *reader) after(d time.Duration) []chat.Message {
	r.Helper()
	list := r.next()
	r.clock.advance(d)
	return append(list, r.next()...)
}

// want compares texts.
func (r *reader) want(list []chat.Message, texts ...string) {
	r.Helper()
	if got, want := strings.Join(textsOf(list), "|"), strings.Join(texts, "|"); got != want {
		r.Fatalf("messages %q, want %q (notes %q)", got, want, r.notes)
	}
}

func textsOf(list []chat.Message) (texts []string) {
	for _, m := range list {
		switch {
		case m.Unreadable != "":
			texts = append(texts, "unreadable: "+m.Unreadable)
		case m.Kind != chat.Text:
			texts = append(texts, string(m.Kind)+": "+m.Reaction)
		default:
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// noted returns the only note since the last call.
func (r *reader) noted(part string) {
	r.Helper()
	if len(r.notes) != 1 || !strings.Contains(r.notes[0], part) {
		r.Fatalf("notes %q, want one about %q", r.notes, part)
	}
	r.notes = nil
}

// inEach runs a test with the tables of each release.
func inEach(t *testing.T, f func(*testing.T, messagesim.Profile)) {
	t.Parallel()
	for _, p := range messagesim.Profiles {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			f(t, p)
		})
	}
}

const (
	soon = 600 * time.Millisecond // when a whole row is read
	late = 3 * time.Second        // after the grace
)
