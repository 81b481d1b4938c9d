package chatdb_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

type message = messagesim.Message

const friend = "+15550100"

func TestNext(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, nil)
		at := time.Unix(1790000000, 123456789)
		r.sim.Insert(message{GUID: "one", From: friend, Text: "hello \ufffc", At: at})
		if list := r.next(); len(list) > 0 {
			t.Fatalf("%v was returned at once", list)
		}
		r.clock.advance(soon)
		list := r.next()
		r.want(list, "hello")
		want := chat.Message{
			GUID: "one", Handle: friend, Service: chat.ServiceIMessage, Kind: chat.Text, At: at, Text: "hello",
			Chat: chat.Chat{Key: "-;" + friend, Identifier: friend, GUID: "iMessage;-;" + friend, Direct: true},
		}
		if got := list[0]; got.At.UnixNano() != at.UnixNano() {
			t.Errorf("At = %v, want %v", got.At, at)
		}
		list[0].At = at
		if got := fmt.Sprintf("%#v", list[0]); got != fmt.Sprintf("%#v", want) {
			t.Errorf("got %s\nwant %#v", got, want)
		}
		r.sim.Insert(message{From: friend, Body: []byte("body:only a body")})
		r.sim.Insert(message{Text: "from me", Chat: "any;+;chat12"})
		list = r.after(soon)
		r.want(list, "only a body", "from me")
		if m := list[1]; !m.FromMe || m.Handle != "" || m.Chat.Direct || m.Chat.Key != "+;chat12" {
			t.Errorf("our own message in a group: %+v", m)
		}
		if list := r.after(late); len(list) > 0 {
			t.Errorf("returned again: %v", textsOf(list))
		}
		testworld.Len(t, r.notes, 0, "notes")
	})
}

// The first run returns nothing that is old, and a cursor survives a restart.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := messagesim.Start(t, 15)
	s.Insert(message{From: friend, Text: "old"})
	r := &reader{TB: t, sim: s, clock: newClock()}
	r.open(nil)
	r.want(r.after(late))
	s.Insert(message{From: friend, Text: "while up"})
	r.want(r.after(soon), "while up")
	s.Insert(message{From: friend, Text: "while down"})
	s.NewLog()
	r.open(nil)
	r.want(r.after(soon), "while down")
	before := r.cursor
	s.Insert(message{From: friend, Text: "not recorded"})
	r.want(r.after(soon), "not recorded")
	r.cursor = before // the caller died before it could record it
	r.open(nil)
	r.want(r.after(soon), "not recorded")
}

func TestJoinLag(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, nil)
		r.sim.Insert(message{From: friend, Text: "right after", Join: 1})
		r.sim.Insert(message{From: friend, Text: "50 ms", Join: 50 * time.Millisecond})
		late := r.sim.Insert(message{From: friend, Text: "late", Join: messagesim.Never})
		r.sim.Insert(message{From: friend, Text: "behind it"})
		waitFor(r, "right after", "50 ms")
		r.clock.advance(time.Second)
		r.want(r.next())
		r.sim.Join(late, messagesim.DefaultChat)
		r.want(r.next(), "late", "behind it")
		testworld.Len(t, r.notes, 0, "notes")
	})
}

// What is planned with Send Later is no message yet: it comes once it is sent, however long that
// takes and whatever restarts meanwhile, and never if it is taken back.
func TestSendLater(t *testing.T) {
	t.Parallel()
	for _, p := range []messagesim.Profile{15, 26} {
		r := mustReader(t, p, nil)
		plan := func(text string) string {
			return r.sim.Insert(message{Text: text, At: time.Now().Add(24 * time.Hour), Columns: columns("schedule_type", 2, "schedule_state", 1)})
		}
		kept, dropped := plan("delete it tomorrow"), plan("never mind")
		r.sim.Insert(message{From: friend, Text: "now"})
		r.want(r.after(late), "now")
		if list, err := r.db.History(t.Context(), chat.Chat{Key: "-;" + friend}, 10); err != nil || len(list) != 1 {
			t.Errorf("history: %q, %v", textsOf(list), err)
		}
		r.open(nil)
		r.want(r.after(24 * time.Hour))
		r.sim.Exec("DELETE FROM message WHERE guid = ?", dropped)
		r.sim.Set(0, kept, columns("schedule_state", 3))
		r.want(r.after(soon), "delete it tomorrow")
		r.want(r.after(late))
		testworld.Len(t, r.notes, 0, "notes")
	}
}

// Words and a link that were sent together are two rows, and each says so; a link that was sent alone,
// follows something else or came later does not.
func TestWordsWithLink(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 26, nil)
	at := time.Now()
	words := func(text string) { r.sim.Insert(message{GUID: text, From: friend, Text: text, At: at}) }
	link := func(text, after string, from string, at time.Time) {
		r.sim.Insert(message{GUID: text, From: from, Text: text, At: at, Columns: columns("balloon_bundle_id", "com.apple.messages.URLBalloonProvider", "reply_to_guid", after)})
	}
	words("words")
	link("https://a.example", "words", friend, at)
	link("https://b.example", "", friend, at)
	words("others")
	link("https://c.example", "words", friend, at)
	link("https://d.example", "others", "", at)
	words("https://f.example")
	r.sim.Insert(message{GUID: "again", From: friend, Text: "https://f.example", At: at, Columns: columns("balloon_bundle_id", "com.apple.messages.URLBalloonProvider", "reply_to_guid", "https://f.example")})
	words("alone")
	link("https://e.example", "alone", friend, at.Add(10*time.Second))
	got := make(map[string]string)
	for _, m := range r.after(soon) {
		got[m.GUID] = fmt.Sprint(m.After, " ", m.More)
	}
	want := map[string]string{"words": " true", "https://a.example": "words false", "https://b.example": " false", "others": " false",
		"https://c.example": " false", "https://d.example": " false", "alone": " false", "https://e.example": " false", "https://f.example": " false"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// step is by how much the clock is advanced between two looks.
const step = 20 * time.Millisecond

// waitFor reads until these texts have come.
func waitFor(r *reader, texts ...string) {
	r.Helper()
	var list []chat.Message
	for end := time.Now().Add(time.Minute); len(list) < len(texts) && time.Now().Before(end); {
		list = append(list, r.next()...)
		r.clock.advance(step)
	}
	r.want(list, texts...)
}

func TestNeverJoined(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 26, nil)
	lost := r.sim.Insert(message{From: friend, Text: "lost", Join: messagesim.Never})
	r.sim.Insert(message{From: friend, Text: "after it"})
	r.want(r.after(2 * time.Second))
	r.want(r.after(soon), "after it")
	r.noted("has no chat yet")

	r.open(nil) // the cursor keeps it
	r.sim.Join(lost, messagesim.DefaultChat)
	r.want(r.next(), "lost")
	r.want(r.after(late))

	r.sim.Insert(message{From: friend, Text: "never", Join: messagesim.Never})
	r.want(r.after(late))
	r.noted("has no chat yet")
	r.want(r.after(9 * time.Minute))
	r.want(r.after(2 * time.Minute))
	r.noted("got no chat within 10m0s")
	r.want(r.after(10 * time.Minute))
	testworld.Len(t, r.notes, 0, "reported again")
}

// What is set aside is bounded.
func TestManyNeverJoined(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 14, nil)
	var rows []message
	for i := range 150 {
		rows = append(rows, message{From: friend, Text: fmt.Sprint(i), Join: messagesim.Never})
	}
	r.sim.InsertAll(rows...)
	r.sim.Insert(message{From: friend, Text: "after them"})
	r.want(r.after(late), "after them")
	if n := len(r.cursor); n > 8<<10 {
		t.Errorf("the cursor has %d bytes", n)
	}
	lost := slices.DeleteFunc(r.notes, func(n string) bool { return !strings.Contains(n, "not delivered") })
	testworld.Equal(t, len(lost), 50, "rows given up")
}

func TestLateBody(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, nil)
		first := r.sim.Insert(message{From: friend})
		r.sim.Insert(message{From: friend, Text: "second"})
		r.want(r.after(soon)) // the order is kept
		r.sim.Set(0, first, map[string]any{"attributedBody": []byte("body:first")})
		r.want(r.next(), "first", "second")

		slow := r.sim.Insert(message{From: friend})
		r.sim.Insert(message{From: friend, Text: "third"})
		r.want(r.after(late), "third")
		r.sim.Set(0, slow, map[string]any{"text": "slow"})
		r.want(r.next(), "slow")

		r.sim.Insert(message{From: friend})
		r.want(r.after(late))
		r.want(r.after(9*time.Second), "unreadable: the message has no text")

		// In a chat with oneself, a row of our own stays empty, and holds nobody.
		r.sim.Insert(message{})
		r.sim.Insert(message{From: friend, Text: "at once"})
		r.want(r.after(soon), "at once")
		testworld.Len(t, r.notes, 0, "notes")
	})
}

// A row that is corrected right after it was stored is read as it is then.
func TestCorrected(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	guid := r.sim.Insert(message{From: friend, Text: "first"})
	r.want(r.next())
	r.sim.Set(0, guid, map[string]any{"is_from_me": 1, "text": "corrected"})
	list := r.after(soon)
	r.want(list, "corrected")
	if !list[0].FromMe {
		t.Error("the correction of is_from_me was missed")
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 13, nil)
	var rows []message
	for i := range 1234 {
		rows = append(rows, message{From: friend, Text: fmt.Sprint(i), At: time.Unix(1600000000+int64(i), 0)})
	}
	r.sim.InsertAll(rows...)
	r.next()
	r.clock.advance(soon)
	var got []chat.Message
	for list := r.next(); len(list) > 0; list = r.next() {
		if len(list) > chat.MaxBatch {
			t.Fatalf("a batch of %d", len(list))
		}
		got = append(got, list...)
	}
	if len(got) != len(rows) {
		t.Fatalf("%d messages, want %d", len(got), len(rows))
	}
	for i, m := range got {
		if m.Text != fmt.Sprint(i) || m.At.Unix() != 1600000000+int64(i) {
			t.Fatalf("message %d is %q of %v", i, m.Text, m.At)
		}
	}
}

func TestTwoChats(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 14, nil)
	guid := r.sim.Insert(message{From: friend, Text: "once"})
	r.sim.Join(guid, "SMS;-;"+friend)
	list := r.after(soon)
	r.want(list, "once")
	testworld.Equal(t, list[0].Chat.GUID, messagesim.DefaultChat, "the older one")
	guid = r.sim.Insert(message{From: friend, Text: "also in a group"})
	r.sim.Join(guid, "iMessage;+;chat7")
	list = r.after(soon)
	r.want(list, "also in a group")
	if list[0].Chat.Direct {
		t.Error("a message that is in a group too is returned as a direct one")
	}
}

func TestSelfChat(t *testing.T) {
	t.Parallel()
	for _, order := range []bool{true, false} {
		r := mustReader(t, 15, nil)
		mine, theirs := message{GUID: "mine", Text: "note"}, message{GUID: "theirs", From: friend, Text: "note"}
		if order {
			mine, theirs = theirs, mine
		}
		r.sim.Insert(mine)
		r.want(r.after(soon), "note")
		r.sim.Insert(theirs)
		r.want(r.after(soon), "note")
	}
}

// Where nothing is stored that names the database, its rows do.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const unnamed = "DELETE FROM _SqliteDatabaseProperties"
	for _, tt := range []struct {
		name string
		do   func(*messagesim.Sim)
		note string
	}{
		{"the newest message is deleted", func(s *messagesim.Sim) { s.Exec("DELETE FROM message WHERE text = 'a'") }, ""},
		{"the last row gets another guid, in one without a name", func(s *messagesim.Sim) { s.Exec("UPDATE message SET guid = 'x'") }, ""},
		{"the last row gets another guid and date", func(s *messagesim.Sim) { s.Exec("UPDATE message SET guid = 'x', date = 5") }, ""},
		{"the log is replaced", func(s *messagesim.Sim) { s.NewLog() }, ""},
		{"another database", func(s *messagesim.Sim) { s.Replace(15) }, "its identifier is another"},
		{"another database without a name", func(s *messagesim.Sim) {
			s.Replace(14)
			s.Exec(unnamed)
			s.Insert(message{From: friend, Text: "x"})
		}, "its row 1 is another message"},
		{"an empty one without a name", func(s *messagesim.Sim) { s.Replace(13); s.Exec(unnamed) }, "ends at row 0, before row 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustReader(t, 15, nil)
			if strings.Contains(tt.name, "without a name") {
				r.sim.Exec(unnamed)
			}
			r.sim.Insert(message{From: friend, Text: "a"})
			r.want(r.after(soon), "a")
			tt.do(r.sim)
			if tt.note != "" {
				r.want(r.next())
				r.noted(tt.note)
			} else {
				r.want(r.next())
				r.sim.Insert(message{From: friend, Text: "b"})
				r.want(r.after(soon), "b")
			}
			r.sim.Insert(message{From: friend, Text: "c"})
			r.want(r.after(soon), "c")
			testworld.Len(t, r.notes, 0, "notes")
		})
	}
}

func TestForeignCursors(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	good := r.cursor
	r.sim.Insert(message{From: friend, Text: "old"})
	for _, cursor := range []string{
		"x", "{}", "[]", `{"path":"/elsewhere/chat.db","row":1}`, `{"path":"a","row":-1}`, strings.Repeat(" ", 1<<20),
		strings.Replace(good, `"row":0`, `"row":9223372036854775807`, 1),
	} {
		r.cursor = cursor
		r.want(r.next())
		if len(r.notes) != 1 || r.cursor == cursor {
			t.Errorf("cursor %.60q: notes %q, then %q", cursor, r.notes, r.cursor)
		}
		r.notes = nil
	}
}

func TestCloseEndsNext(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 12, func(o *chatdb.Options) { o.Wait = time.Hour })
	done := make(chan error)
	go func() {
		_, err := r.db.Next(t.Context(), r.cursor)
		done <- err
	}()
	r.db.Close()
	testworld.Fails(t, <-done, "", "Next returned without an error after Close")
}

// A guid of any length, which is its writer's, makes no cursor longer, and belongs to its row.
func TestLongGuid(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, nil)
		long := strings.Repeat("g", 1<<20)
		for i := range 3 {
			r.sim.Insert(message{GUID: fmt.Sprint(long, i), From: friend, Text: fmt.Sprint("text ", i)})
		}
		list := r.after(soon)
		r.want(list, "text 0", "text 1", "text 2")
		if list[0].GUID == list[1].GUID || len(list[0].GUID) > 1000 || len(r.cursor) > 2000 {
			t.Errorf("guids of %d bytes, equal: %v; a cursor of %d", len(list[0].GUID), list[0].GUID == list[1].GUID, len(r.cursor))
		}
		r.open(nil)
		r.sim.Insert(message{From: friend, Text: "after"})
		r.want(r.after(soon), "after")
	})
}
