package chatdb_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// degraded reads until the transport reports that it can't.
func (r *reader) degraded() *chat.Degraded {
	r.Helper()
	var out *chat.Degraded
	testworld.Wait(r, "a degraded state", func() bool {
		b, err := r.db.Next(context.Background(), r.cursor)
		if err == nil {
			r.want(b.Messages)
			r.cursor = b.Cursor
			return false
		}
		if !errors.As(err, &out) {
			r.Fatalf("Next = %v, want a Degraded", err)
		}
		return true
	})
	return out
}

func rename(s *messagesim.Sim, from, to string) {
	if err := os.Rename(from, to); err != nil {
		panic(fmt.Sprint(s.Path, ": ", err))
	}
}

// A lock that ends within the patience is not reported.
func TestLockedBriefly(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	r.sim.Insert(message{From: friend, Text: "behind the lock"})
	r.db.Close()
	r.sim.Lock(200 * time.Millisecond)
	r.open(func(o *chatdb.Options) { o.Busy = time.Minute })
	r.want(r.after(soon), "behind the lock")
}

// Failures are followed by longer and longer rests.
func TestBackOff(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, func(o *chatdb.Options) { o.Rest = 20 * time.Millisecond })
	rename(r.sim, r.sim.Path, r.sim.Path+".away")
	began := time.Now()
	for range 5 {
		r.degraded()
	}
	if took := time.Since(began); took < (20+40+80+160)*time.Millisecond {
		t.Errorf("five failures took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.ErrorIs(t, testworld.Err(r.db.Next(ctx, r.cursor)), context.Canceled, "Next")
}

func TestKilledInTransaction(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	r.sim.Insert(message{From: friend, Text: "committed"})
	r.sim.Hold(message{GUID: "half", From: friend, Text: "half"})
	r.sim.Kill()
	r.want(r.after(soon), "committed")
	r.sim.Restart()
	r.sim.Insert(message{From: friend, Text: "after it"})
	r.want(r.after(soon), "after it")
	testworld.Len(t, r.notes, 0, "notes")
}

// Where SQLite can't open the file and there is no log, it is read as it is; that is reported, and
// ends when there is a log.
func TestImmutable(t *testing.T) {
	t.Parallel()
	s := messagesim.Start(t, 15)
	s.Insert(message{From: friend, Text: "old"})
	s.Exec("DELETE FROM kvtable")
	s.Kill()
	// What is in the log goes into the file when the last one closes it.
	if list := closeLast(t, s); len(list) > 0 {
		t.Fatalf("left: %v", list)
	}
	if err := os.Symlink("nowhere", s.Path+"-shm"); err != nil { // the index can't be made
		t.Fatal(err)
	}
	r := &reader{TB: t, sim: s, clock: newClock()}
	r.open(nil)
	r.next()
	if f := r.db.Facts(t.Context()); f[1].State != chat.Bad || !strings.Contains(f[1].Detail, "immutable") {
		t.Errorf("facts %+v", f)
	}
	testworld.Must(t, os.Remove(s.Path+"-shm"))
	s.Restart()
	s.Insert(message{From: friend, Text: "new"})
	r.want(r.after(soon), "new")
	if f := r.db.Facts(t.Context()); f[1].State != chat.OK {
		t.Errorf("facts %+v", f)
	}
}

// A file that is read as it is is read again when it has changed.
func TestImmutableChanges(t *testing.T) {
	t.Parallel()
	s := messagesim.Start(t, 15)
	s.Kill()
	var versions [2][]byte
	for i := range versions {
		closeLast(t, s)
		var err error
		if versions[i], err = os.ReadFile(s.Path); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s.Restart()
			s.Insert(message{From: friend, Text: "new"})
			s.NewLog()
			s.Kill()
		}
	}
	write := func(data []byte, at time.Time) {
		testworld.Must(t, errors.Join(os.WriteFile(s.Path, data, 0o600), os.Chtimes(s.Path, at, at)))
	}
	write(versions[0], time.Unix(1790000000, 0))
	// Neither can be made.
	testworld.Must(t, errors.Join(os.Symlink("nowhere/x", s.Path+"-wal"), os.Symlink("nowhere/x", s.Path+"-shm")))
	r := &reader{TB: t, sim: s, clock: newClock()}
	r.open(nil)
	r.want(r.after(soon))
	write(versions[1], time.Unix(1790000001, 0))
	r.want(r.after(soon), "new")
}

// closeLast opens and closes the database as the only one, and returns what is left beside it.
func closeLast(t *testing.T, s *messagesim.Sim) (left []string) {
	t.Helper()
	s.Restart()
	s.NewLog()
	s.Kill()
	for _, end := range []string{"-wal", "-shm"} {
		os.Remove(s.Path + end)
		if _, err := os.Stat(s.Path + end); err == nil {
			left = append(left, end)
		}
	}
	return left
}

func TestFacts(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, nil)
		r.sim.Insert(message{From: friend, Text: "secret", At: time.Now().Add(-time.Hour)})
		var all string
		for _, f := range r.db.Facts(t.Context()) {
			testworld.Equal(t, f.State, chat.OK, "%+v", f)
			all += f.Name + ": " + f.Detail + "\n"
		}
		for _, want := range []string{fmt.Sprintf("as of macOS %d", int(p)), "1 chats", "1h0m", r.sim.Path} {
			testworld.Contains(t, all, want)
		}
		if strings.Contains(all, friend) || strings.Contains(all, "secret") {
			t.Errorf("a handle or a text in\n%s", all)
		}
	})
}

// The reader, its lookups and its end may come at the same time.
func TestTogether(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	mark := testworld.Got(r.db.Mark(t.Context()))(t)
	done := make(chan error, 4)
	for range 4 {
		go func() {
			for range 20 {
				if _, err := r.db.Sent(t.Context(), mark, chatdb.Wanted{Key: "-;" + friend, Text: "x"}); err != nil {
					done <- err
					return
				}
				if _, err := r.db.History(t.Context(), chat.Chat{Key: "-;" + friend}, 5); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for i := range 10 {
		r.sim.NewLog()
		r.sim.Insert(message{From: friend, Text: fmt.Sprint(i)})
		r.want(r.after(soon), fmt.Sprint(i))
	}
	for range 4 {
		testworld.Equal(t, <-done, nil)
	}
}
