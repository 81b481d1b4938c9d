package phone_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// A transport that can't be looked at is asked once for all that waits, and ever less often.
func TestMarkFails(t *testing.T) {
	var calls atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	s := &strangeWire{mark: func() error {
		calls.Add(1)
		if broken.Load() {
			return errors.New("chat.db: authorization denied")
		}
		return nil
	}}
	w := newWorld(t, strange(s))
	for i := range 10 {
		w.mail(store.Message{ID: fmt.Sprint(i), From: agent.Root, Text: fmt.Sprint("report ", i), Metadata: forPhone})
	}
	testworld.Wait(t, "it is reported", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.Waiting == 10 && strings.Contains(s.Facts[record.Pending], "authorization denied")
	})
	if n := calls.Load(); n > 5 {
		t.Errorf("it was asked %d times for 10 texts", n)
	}
	broken.Store(false)
	w.says("report 3")
}

// What looks for one text holds up no other.
func TestFindIsSlow(t *testing.T) {
	s := &strangeWire{find: func(ctx context.Context, _ chat.Outgoing) (chat.Receipt, error) {
		<-ctx.Done()
		return chat.Receipt{}, ctx.Err()
	}}
	w := newWorld(t, strange(s))
	w.wire.Mu.Lock()
	w.wire.OnSend = func(o chat.Outgoing) chat.Receipt {
		if strings.Contains(o.Text, "doubtful") {
			return chat.Receipt{State: chat.Unconfirmed, Fact: "nothing was found"}
		}
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "doubtful", Metadata: forPhone})
	testworld.Wait(t, "it is doubted", func() bool {
		tally, err := record.Records{DB: w.db}.Count(t.Context(), "test", time.Now())
		return err == nil && tally.Unconfirmed == 1
	})
	w.stop()
	w.start() // looks for it at once
	w.mail(store.Message{ID: "b", From: agent.Root, Text: "certain", Metadata: forPhone})
	w.says("certain")
}

// Mail leaves room within a minute for what the owner has to decide.
func TestMailLeavesRoom(t *testing.T) {
	w := newWorld(t, nil)
	rec := record.Records{DB: w.db}
	for i := range 15 {
		testworld.Must(t, rec.Say(t.Context(), record.Said{Line: "test", ID: fmt.Sprint("s", i), Part: 1, Parts: 1, Chat: record.Chat{Key: mine.Key, GUID: mine.GUID}, Kind: "mail", Rank: 3,
			Text: "[agent0] x", State: record.Sent, Created: store.At(time.Now()), Began: store.At(time.Now().Add(-30 * time.Second))}))
	}
	w.mail(store.Message{ID: "a", From: agent.Root, Text: "one more report", Metadata: forPhone})
	w.desk.asks("kxqvd", "rm -rf build")
	w.says("yes kxqvd or no kxqvd")
	for _, text := range []string{"yes kxqvd", "status"} {
		w.wire.Text(text)
	}
	w.says("kxqvd: done")
	w.says("2 agents up")
	testworld.Equal(t, slices.Contains(w.wire.Texts(), "[agent0] one more report"), false, "mail took what was left for an answer")
}

// With the database, what waited to be sent is lost, too; it is recorded again and sent, whatever
// time an agent's clock gave to something else.
func TestDatabaseRemoved(t *testing.T) {
	w := newWorld(t, nil)
	w.mail(store.Message{ID: "wrong", From: agent.Root, Text: "of another time", Time: store.At(time.Now().AddDate(50, 0, 0)), Metadata: forPhone})
	w.says("of another time")
	w.wire.Mu.Lock()
	w.wire.OnSend = func(chat.Outgoing) chat.Receipt {
		return chat.Receipt{State: chat.Failed, Fact: "Messages is not running", Again: true}
	}
	w.wire.Mu.Unlock()
	waits := store.Message{ID: "waits", From: agent.Root, Text: "report", Time: store.At(time.Now()), Metadata: forPhone}
	w.mail(waits)
	testworld.Wait(t, "it is reported", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.Waiting == 1
	})
	w.loseRecords()
	w.mail(store.Message{ID: "before", From: agent.Root, Text: "of last year", Time: store.At(time.Now().AddDate(-1, 0, 0)), Metadata: forPhone})
	w.mail(waits)
	w.wire.Mu.Lock()
	w.wire.OnSend = nil
	w.wire.Mu.Unlock()
	w.start()
	w.says("[agent0] report")
	if slices.ContainsFunc(w.wire.Texts(), func(s string) bool { return strings.Contains(s, "of last year") }) {
		t.Error("mail from before the phone was texted")
	}
	w.wire.Text("do it")
	w.arrives(agent.Root, "do it")
}

// What hangs in a send is not waited for by who has another way.
func TestTextWhileASendHangs(t *testing.T) {
	w := newWorld(t, nil)
	free := make(chan struct{})
	hangs := make(chan struct{}, 100)
	w.wire.Mu.Lock()
	w.wire.OnSend = func(chat.Outgoing) chat.Receipt {
		hangs <- struct{}{}
		w.wire.Mu.Unlock()
		<-free
		w.wire.Mu.Lock()
		return chat.Receipt{}
	}
	w.wire.Mu.Unlock()
	defer close(free)
	w.wire.Text("status")
	<-hangs
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, got, err := phone.Text(ctx, w.options(), phone.Direct{Text: "alert"}); !errors.Is(err, phone.ErrWaits) {
		t.Errorf("Text = %+v, %v", got, err)
	}
}

// The time that an agent's wrong clock gave to a message keeps no later one from the phone, also
// after the records were lost.
func TestMailOfTheFuture(t *testing.T) {
	w := newWorld(t, nil)
	w.mail(store.Message{ID: "wrong", From: agent.Root, Text: "of another time", Time: store.At(time.Now().AddDate(50, 0, 0)), Metadata: forPhone})
	w.says("of another time")
	testworld.Wait(t, "nothing waits", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && s.Waiting == 0 && s.Forwarded > 0
	})
	w.loseRecords()
	w.mail(store.Message{ID: "later", From: agent.Root, Text: "later", Metadata: forPhone})
	w.start()
	w.says("[agent0] later")
}

// loseRecords ends the bridge, and removes the database.
func (w *world) loseRecords() {
	w.t.Helper()
	w.stop()
	testworld.Must(w.t, w.db.Close())
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(w.home.Path(home.DBFile) + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
	w.open()
}
