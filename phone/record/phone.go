// Package record keeps the records of the phone bridge: where a transport's reading continues,
// what arrived in the owner's chats, and what is sent there.
//
// What was read and the place from which reading continues are recorded in one transaction,
// so each message is taken once, wherever a process is killed. A message that arrived is in
// state New until it has taken effect; whoever finds it so after a crash does it again, by the
// same ids. A message to be sent is recorded before the transport is called, in state Sending,
// and afterwards with what became of it: one that a crash left in that state may or may not
// have gone out.
//
// The package decides nothing. Its tables are in the database of package store, which also
// removes old rows.
package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"netsky/agent"
	"netsky/store"
)

// A Chat is a conversation: what compares it with others, and the transport's own name of it.
type Chat struct{ Key, GUID string }

// A File is one that came with a message. Its name is the sender's, not to be trusted as a path.
type File struct {
	GUID    string
	Name    string
	MIME    string
	Bytes   int64  // -1 is unknown
	Missing string // why it cannot be had, if so
}

// A Line is one transport, as it is set up.
type Line struct {
	Name   string
	Cursor string
	// Forwarded is the number of the last record of mail to the owner that was looked at.
	Forwarded int64
	// Fence is the time up to which mail was forwarded, by records that were lost; zero if none
	// were.
	Fence store.Time
	Since store.Time
}

// The states of what arrived.
const (
	New  = "new"  // not certain to have taken effect
	Done = "done" // it has, or is none that takes effect
)

// A Heard is a message that arrived in one of the owner's chats.
type Heard struct {
	Seq     int64
	Line    string
	GUID    string
	Chat    Chat
	Handle  string
	FromMe  bool
	At      store.Time
	Time    store.Time // when it was heard
	Kind    string
	Text    string // of a reaction, what it is
	About   string
	Files   []File
	Verdict string
	State   string
	Tries   int
	Target  agent.ID
	Message string
	Note    string
	// Alone, if not nil, is recorded in its place if the message that Note names was tried already:
	// what would have been a part of that takes effect by itself.
	Alone *Heard
}

// The states of what is sent.
const (
	Pending     = "pending"
	Sending     = "sending"
	Sent        = "sent"
	Unconfirmed = "unconfirmed"
	Failed      = "failed"
	Dropped     = "dropped" // no longer needed when its turn came
)

// A Said is one part of a message to one of the owner's chats.
type Said struct {
	Seq       int64
	Line      string
	ID        string
	Part      int // from 1
	Parts     int
	Chat      Chat
	Kind      string
	Rank      int // the lower are sent first
	About     string
	Digest    string
	Text      string
	File      string
	Choices   []string
	State     string
	Mark      string
	GUID      string
	Fact      string
	Tries     int
	NotBefore store.Time
	Created   store.Time
	Began     store.Time
	Ended     store.Time
	EchoMe    int
	EchoOther int
}

// Records are the bridge's records in an open database.
type Records struct{ DB *store.DB }

// Open returns the line's record, and makes it at its first use. Mail recorded before that is
// not forwarded. If there was an earlier record, which was lost with its database, cursor and
// forwarded are what is known of it: then mail that is recorded anew is forwarded if it is
// later than that.
func (r Records) Open(ctx context.Context, name, cursor string, forwarded store.Time, now time.Time) (l Line, err error) {
	err = r.DB.Do(ctx, "phone line", func(c *sql.Conn) error {
		_, err := c.ExecContext(context.Background(), `INSERT INTO phone_lines (line, cursor, forwarded, fence, since)
			VALUES (?1, ?2, iif(?3 > 0, 0, (SELECT coalesce(max(seq), 0) FROM messages)), ?3, ?4) ON CONFLICT DO NOTHING`,
			name, cursor, forwarded, store.At(now))
		if err != nil {
			return err
		}
		l = Line{Name: name}
		return c.QueryRowContext(context.Background(), "SELECT cursor, forwarded, fence, since FROM phone_lines WHERE line = ?", name).
			Scan(&l.Cursor, &l.Forwarded, &l.Fence, &l.Since)
	})
	return l, err
}

// An Absorbed says that a row was the echo of what we said.
type Absorbed struct {
	Said   int64 // its Seq
	FromMe bool
	GUID   string // of the row, if the said one's is not known
}

// Hear records a batch: what arrived, what of it was an echo, what is to be said because of
// it, and the new cursor, in one transaction. Rows that are on record already are left out;
// fresh are the others, with their numbers.
func (r Records) Hear(ctx context.Context, line, cursor string, heard []Heard, echoes []Absorbed, say []Said) (fresh []Heard, err error) {
	err = r.DB.Do(ctx, "phone heard", func(c *sql.Conn) error {
		fresh = nil
		for _, h := range heard {
			ok, err := insertHeard(c, &h)
			if err != nil {
				return err
			}
			if ok {
				fresh = append(fresh, h)
			}
		}
		for _, e := range echoes {
			column := "echo_other"
			if e.FromMe {
				column = "echo_me"
			}
			// The row of our own account shows that the message went out.
			if err := exec(c, `UPDATE phone_said SET `+column+` = `+column+` + 1,
				guid = iif(guid = '' AND ?3, ?2, guid),
				state = iif(state = 'unconfirmed' AND ?3, 'sent', state) WHERE seq = ?1`, e.Said, e.GUID, e.FromMe); err != nil {
				return err
			}
		}
		if err := insertSaid(c, say); err != nil {
			return err
		}
		return exec(c, "UPDATE phone_lines SET cursor = ? WHERE line = ?", cursor, line)
	})
	return fresh, err
}

func insertHeard(c *sql.Conn, h *Heard) (fresh bool, err error) {
	files, err := toJSON(h.Files)
	if err != nil {
		return false, err
	}
	if h.Alone != nil {
		waits := false
		err := c.QueryRowContext(context.Background(), "SELECT EXISTS (SELECT 1 FROM phone_heard WHERE line = ? AND guid = ? AND state = 'new' AND tries = 0)", h.Line, h.Note).Scan(&waits)
		if err != nil {
			return false, err
		}
		if !waits {
			*h = *h.Alone
		}
	}
	err = c.QueryRowContext(context.Background(), `INSERT INTO phone_heard (line, guid, chat, room, handle, from_me, at, heard, kind, text, about, files,
			verdict, state, target, message, note)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq`,
		h.Line, h.GUID, h.Chat.Key, h.Chat.GUID, h.Handle, h.FromMe, h.At, h.Time, h.Kind, h.Text, h.About, files,
		h.Verdict, h.State, h.Target, h.Message, h.Note).Scan(&h.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Try counts an attempt to let a message take effect, before it is made. It returns how many
// there were before; ok is false if none is to be made, as the message has taken effect.
func (r Records) Try(ctx context.Context, h Heard) (tries int, ok bool, err error) {
	err = r.DB.Do(ctx, "phone try", func(c *sql.Conn) error {
		ok = false
		err := c.QueryRowContext(context.Background(), `UPDATE phone_heard SET tries = tries + 1
			WHERE seq = ? AND line = ? AND guid = ? AND state = 'new' RETURNING tries - 1`, h.Seq, h.Line, h.GUID).Scan(&tries)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		ok = err == nil
		return err
	})
	return tries, ok, err
}

// Did records that a message has taken effect, and what is to be said about that.
func (r Records) Did(ctx context.Context, h Heard, say ...Said) error {
	return r.DB.Do(ctx, "phone done", func(c *sql.Conn) error {
		if err := insertSaid(c, say); err != nil {
			return err
		}
		return exec(c, "UPDATE phone_heard SET state = 'done', target = ?, message = ?, note = ? WHERE seq = ? AND guid = ?",
			h.Target, h.Message, h.Note, h.Seq, h.GUID)
	})
}

// Forward moves the place up to which the owner's mail was looked at, and records what is to
// be said of it.
func (r Records) Forward(ctx context.Context, line string, to int64, say []Said) error {
	return r.DB.Do(ctx, "phone forward", func(c *sql.Conn) error {
		if err := insertSaid(c, say); err != nil {
			return err
		}
		return exec(c, "UPDATE phone_lines SET forwarded = max(forwarded, ?) WHERE line = ?", to, line)
	})
}

// Say records messages to be sent. One whose id is on record is left out.
func (r Records) Say(ctx context.Context, say ...Said) error {
	return r.DB.Do(ctx, "phone say", func(c *sql.Conn) error { return insertSaid(c, say) })
}

// Over records that what needed the owner under that code does no more: another item of the
// same words is another matter. What is about to be sent stays as it is until it was sent.
func (r Records) Over(ctx context.Context, line, code string) error {
	return r.DB.Do(ctx, "phone over", func(c *sql.Conn) error {
		return exec(c, `UPDATE phone_said SET kind = 'past' WHERE line = ? AND about = ? AND kind = 'need' AND state NOT IN ('pending', 'sending')`, line, code)
	})
}

func insertSaid(c *sql.Conn, say []Said) error {
	for _, s := range say {
		choices, err := toJSON(s.Choices)
		if err != nil {
			return err
		}
		if s.State == "" {
			s.State = Pending
		}
		if err := exec(c, `INSERT INTO phone_said (line, id, part, parts, chat, room, kind, rank, about, digest, text, file, choices, state, mark, not_before, created, began)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			s.Line, s.ID, s.Part, s.Parts, s.Chat.Key, s.Chat.GUID, s.Kind, s.Rank, s.About, s.Digest, s.Text, s.File, choices,
			s.State, s.Mark, s.NotBefore, s.Created, s.Began); err != nil {
			return err
		}
	}
	return nil
}

// Begin records that a part is about to be sent, from the mark on.
func (r Records) Begin(ctx context.Context, s Said, mark string, now time.Time) error {
	return r.DB.Do(ctx, "phone begin", func(c *sql.Conn) error {
		return exec(c, "UPDATE phone_said SET state = 'sending', mark = ?, began = ?, tries = tries + 1 WHERE seq = ? AND id = ? AND part = ?",
			mark, store.At(now), s.Seq, s.ID, s.Part)
	})
}

// End records what became of a part: its State, GUID, Fact, NotBefore, and when it ended. What an
// echo has shown to be sent meanwhile stays sent.
func (r Records) End(ctx context.Context, s Said, now time.Time) error {
	ended := store.At(now)
	if s.State == Pending {
		ended = 0
	}
	return r.DB.Do(ctx, "phone end", func(c *sql.Conn) error {
		return exec(c, `UPDATE phone_said SET guid = iif(?2 <> '', ?2, guid), fact = ?3, not_before = ?4, ended = ?5,
			state = iif(?1 = 'unconfirmed' AND echo_me > 0, 'sent', ?1) WHERE seq = ?6 AND id = ?7 AND part = ?8`,
			s.State, s.GUID, s.Fact, s.NotBefore, ended, s.Seq, s.ID, s.Part)
	})
}

// Repeat adds words to a part's text, once: it may arrive a second time.
func (r Records) Repeat(ctx context.Context, s Said, words string) error {
	return r.DB.Do(ctx, "phone repeat", func(c *sql.Conn) error {
		return exec(c, "UPDATE phone_said SET text = text || ?1 WHERE seq = ?2 AND text <> '' AND substr(text, -length(?1)) <> ?1", words, s.Seq)
	})
}

// Release lets what waits after failures be tried at once: the transport works again.
func (r Records) Release(ctx context.Context, line string) error {
	return r.DB.Do(ctx, "phone release", func(c *sql.Conn) error {
		return exec(c, "UPDATE phone_said SET not_before = 0 WHERE line = ? AND state = 'pending' AND tries > 0 AND not_before > 0", line)
	})
}

func exec(c *sql.Conn, query string, args ...any) error {
	_, err := c.ExecContext(context.Background(), query, args...)
	return err
}

// toJSON returns a list as JSON, "" for none.
func toJSON[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	data, err := json.Marshal(list)
	return string(data), err
}
