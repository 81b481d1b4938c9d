//go:build live

package chatdb_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// recovered reads until a message has come, through errors.
func (r *reader) recovered(text string) {
	r.Helper()
	var got []chat.Message
	testworld.Wait(r, text, func() bool {
		b, err := r.db.Next(context.Background(), r.cursor)
		if err != nil {
			return false
		}
		r.cursor = b.Cursor
		got = append(got, b.Messages...)
		r.clock.advance(step)
		return len(got) > 0
	})
	r.want(got, text)
}

// Each trouble is reported, and when it ends what came meanwhile is returned.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		begin, end func(*messagesim.Sim)
		want, next string
	}{
		{"a column is missing",
			func(s *messagesim.Sim) { s.Exec("ALTER TABLE message RENAME COLUMN service TO other") },
			func(s *messagesim.Sim) { s.Exec("ALTER TABLE message RENAME COLUMN other TO service") },
			"it has no message.service", "update netsky"},
		{"a page is damaged", (*messagesim.Sim).Damage, (*messagesim.Sim).Mend, "malformed", "integrity_check"},
		{"the file is gone",
			func(s *messagesim.Sim) { rename(s, s.Path, s.Path+".away") },
			func(s *messagesim.Sim) { rename(s, s.Path+".away", s.Path) },
			"there is no such file", "sign in to Messages"},
		{"the file can't be opened",
			func(s *messagesim.Sim) {
				rename(s, s.Path, s.Path+".away")
				l, err := net.Listen("unix", s.Path) // what has the name is no file
				if err != nil {
					t.Error(err)
					return
				}
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				l.Close()
			},
			func(s *messagesim.Sim) { rename(s, s.Path+".away", s.Path) },
			"unable to open database file", "Full Disk Access"},
		{"no database",
			func(s *messagesim.Sim) {
				rename(s, s.Path, s.Path+".away")
				if err := os.WriteFile(s.Path, []byte(strings.Repeat("not a database ", 500)), 0o600); err != nil {
					t.Error(err)
				}
			},
			func(s *messagesim.Sim) { rename(s, s.Path+".away", s.Path) },
			"not a database", "quit Messages"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustReader(t, 15, nil)
			tt.begin(r.sim)
			// A wrong schema is found when the database is opened, at the latest after two minutes.
			r.clock.advance(3 * time.Minute)
			d := r.degraded()
			if !strings.Contains(d.Reason, tt.want) || !strings.Contains(d.Reason, "chat.db") || !strings.Contains(d.Next, tt.next) {
				t.Errorf("degraded: %q, next %q; want %q, %q", d.Reason, d.Next, tt.want, tt.next)
			}
			if f := r.db.Facts(t.Context()); len(f) == 0 || f[len(f)-1].State == chat.OK || !strings.Contains(f[len(f)-1].Detail, tt.want) {
				t.Errorf("facts %+v", f)
			}
			tt.end(r.sim)
			r.sim.Insert(message{From: friend, Text: "meanwhile"})
			r.recovered("meanwhile")
		})
	}
}

func TestLocked(t *testing.T) {
	t.Parallel()
	r := mustReader(t, 15, nil)
	r.sim.Insert(message{From: friend, Text: "behind the lock"})
	r.db.Close()
	r.sim.Lock(time.Second)
	r.open(func(o *chatdb.Options) { o.Busy = time.Millisecond })
	if d := r.degraded(); !strings.Contains(d.Reason, "locked by another process") || d.Next != "" {
		t.Errorf("degraded: %+v", d)
	}
	r.recovered("behind the lock")
}

// The reader keeps no transaction open, so the log can be emptied and replaced while it waits, and
// it hears of what is in the next one.
func TestLogReplacedWhileWaiting(t *testing.T) {
	inEach(t, func(t *testing.T, p messagesim.Profile) {
		r := mustReader(t, p, func(o *chatdb.Options) { o.Wait, o.Now = time.Minute, time.Now })
		for i := range 5 {
			got := make(chan []chat.Message)
			go func() {
				b, err := r.db.Next(t.Context(), r.cursor)
				if err != nil {
					t.Error(err)
				}
				r.cursor = b.Cursor
				got <- b.Messages
			}()
			r.sim.NewLog()
			r.sim.Insert(message{From: friend, Text: fmt.Sprint(i)})
			r.want(<-got, fmt.Sprint(i))
		}
	})
}
