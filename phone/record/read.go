package record

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"netsky/store"
)

const heardColumns = `seq, line, guid, chat, room, handle, from_me, at, heard, kind, text, about, files, verdict, state, tries, target, message, note`

func (r Records) heard(ctx context.Context, rest string, args ...any) ([]Heard, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (h Heard, err error) {
		var files string
		err = rows.Scan(&h.Seq, &h.Line, &h.GUID, &h.Chat.Key, &h.Chat.GUID, &h.Handle, &h.FromMe, &h.At, &h.Time, &h.Kind, &h.Text, &h.About, &files,
			&h.Verdict, &h.State, &h.Tries, &h.Target, &h.Message, &h.Note)
		err = cmp.Or(err, fromJSON(files, &h.Files))
		return h, err
	}, "SELECT "+heardColumns+" FROM phone_heard "+rest, args...)
}

// NewHeard returns what arrived and is not certain to have taken effect, the oldest first.
func (r Records) NewHeard(ctx context.Context, line string) ([]Heard, error) {
	return r.heard(ctx, "WHERE line = ? AND state = 'new' ORDER BY seq LIMIT 1000", line)
}

// HeardSince returns what arrived in a chat since then, the last first; without a key, in any.
func (r Records) HeardSince(ctx context.Context, line, key string, since time.Time) ([]Heard, error) {
	return r.heard(ctx, "WHERE line = ?1 AND "+inChat(key)+" AND heard >= ?3 ORDER BY seq DESC LIMIT 1000", line, key, store.At(since))
}

// inChat is the condition for the chat with a key, the second argument; in two forms, as a query that
// covers both would use no index.
func inChat(key string) string {
	if key == "" {
		return "?2 = ''"
	}
	return "chat = ?2"
}

// Parts returns what was recorded with a verdict as belonging to a message, the oldest first.
func (r Records) Parts(ctx context.Context, line, guid, verdict string) ([]Heard, error) {
	return r.heard(ctx, "WHERE line = ?1 AND verdict = ?2 AND note = ?3 AND seq > (SELECT seq FROM phone_heard WHERE line = ?1 AND guid = ?3) ORDER BY seq LIMIT 200", line, verdict, guid)
}

// LastHeard returns the last message of the owner's that had one of the verdicts, in any chat.
func (r Records) LastHeard(ctx context.Context, line string, verdict string) (h Heard, ok bool, err error) {
	list, err := r.heard(ctx, "WHERE line = ? AND verdict = ? ORDER BY seq DESC LIMIT 1", line, verdict)
	if len(list) > 0 {
		return list[0], true, err
	}
	return h, false, err
}

// LastIn returns the last message in a chat that had the verdict.
func (r Records) LastIn(ctx context.Context, line, key, verdict string) (h Heard, ok bool, err error) {
	list, err := r.heard(ctx, "WHERE line = ? AND chat = ? AND verdict = ? ORDER BY seq DESC LIMIT 1", line, key, verdict)
	if len(list) > 0 {
		return list[0], true, err
	}
	return h, false, err
}

// Around returns messages in a chat with one of the verdicts that were written less than d from a
// time, at most so many of each.
func (r Records) Around(ctx context.Context, line, key string, verdicts []string, at time.Time, d time.Duration, most int) (list []Heard, err error) {
	for _, v := range verdicts {
		of, err := r.heard(ctx, "WHERE line = ? AND chat = ? AND verdict = ? AND at > ? AND at < ? LIMIT ?", line, key, v, store.At(at.Add(-d)), store.At(at.Add(d)), most)
		if err != nil {
			return nil, err
		}
		list = append(list, of...)
	}
	return list, nil
}

// HasHeard reports whether a message with that guid is on record.
func (r Records) HasHeard(ctx context.Context, line, guid string) (has bool, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM phone_heard WHERE line = ? AND guid = ?)", line, guid).Scan(&has)
	return has, err
}

// HeardAs returns the message that was sent on the bus under that id.
func (r Records) HeardAs(ctx context.Context, message string) (h Heard, ok bool, err error) {
	list, err := r.heard(ctx, "WHERE message = ? LIMIT 1", message)
	if len(list) > 0 {
		return list[0], true, err
	}
	return h, false, err
}

const saidColumns = `seq, line, id, part, parts, chat, room, kind, rank, about, digest, text, file, choices, state, mark, guid, fact, tries,
	not_before, created, began, ended, echo_me, echo_other`

func (r Records) said(ctx context.Context, rest string, args ...any) ([]Said, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (s Said, err error) {
		var choices string
		err = rows.Scan(&s.Seq, &s.Line, &s.ID, &s.Part, &s.Parts, &s.Chat.Key, &s.Chat.GUID, &s.Kind, &s.Rank, &s.About, &s.Digest, &s.Text, &s.File, &choices,
			&s.State, &s.Mark, &s.GUID, &s.Fact, &s.Tries, &s.NotBefore, &s.Created, &s.Began, &s.Ended, &s.EchoMe, &s.EchoOther)
		err = cmp.Or(err, fromJSON(choices, &s.Choices))
		return s, err
	}, "SELECT "+saidColumns+" FROM phone_said "+rest, args...)
}

// Open says how many parts are to be sent at most with one look.
const maxOpen = 200

// Unsent returns what is to be sent, in the order in which it is: by rank, then by age.
func (r Records) Unsent(ctx context.Context, line string) ([]Said, error) {
	return r.said(ctx, "WHERE line = ? AND state IN ('pending', 'sending') ORDER BY state = 'pending', rank, seq LIMIT ?", line, maxOpen)
}

// Doubtful returns what was handed over since then and not seen to go out.
func (r Records) Doubtful(ctx context.Context, line string, since time.Time) ([]Said, error) {
	return r.said(ctx, "WHERE line = ? AND state = 'unconfirmed' AND began >= ? ORDER BY seq LIMIT ?", line, store.At(since), maxOpen)
}

// SaidSince returns what was begun in a chat since then, the oldest first; without a key, in any.
func (r Records) SaidSince(ctx context.Context, line, key string, since time.Time) ([]Said, error) {
	return r.said(ctx, "WHERE line = ?1 AND "+inChat(key)+" AND began >= ?3 ORDER BY began, seq LIMIT 1000", line, key, store.At(since))
}

// SaidAs returns the part with this guid.
func (r Records) SaidAs(ctx context.Context, line, guid string) (s Said, ok bool, err error) {
	list, err := r.said(ctx, "WHERE line = ? AND guid = ? AND guid <> '' LIMIT 1", line, guid)
	if len(list) > 0 {
		return list[0], true, err
	}
	return s, false, err
}

// Sending reports whether a text to the chat is being sent, so that its guid is not known.
func (r Records) Sending(ctx context.Context, line, key string) (is bool, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM phone_said WHERE line = ? AND chat = ? AND state = 'sending')", line, key).Scan(&is)
	return is, err
}

// Asked returns what was said in a chat about an item that needs the owner, the last first.
func (r Records) Asked(ctx context.Context, line, key, about string) ([]Said, error) {
	return r.said(ctx, "WHERE line = ? AND chat = ? AND about = ? AND kind = 'need' ORDER BY seq DESC LIMIT 20", line, key, about)
}

// Offers returns the texts that offer choices for an item that needs the owner.
func (r Records) Offers(ctx context.Context, line, about string) ([]Said, error) {
	return r.said(ctx, "WHERE line = ? AND about = ? AND kind = 'need' AND choices <> '' AND guid <> '' ORDER BY seq DESC LIMIT 20", line, about)
}

// Shown reports whether an item that needs the owner, or the message that asks it, was sent to a
// chat.
func (r Records) Shown(ctx context.Context, line, key, code, message string) (is bool, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM phone_said WHERE line = ? AND chat = ? AND state IN ('sending', 'sent', 'unconfirmed')
		AND (about = ? AND kind = 'need' OR about = ? AND kind = 'mail'))`, line, key, code, message).Scan(&is)
	return is, err
}

// An Item is something that needs the owner, as it was recorded to be shown to them.
type Item struct {
	Code, Digest string
	Created      store.Time // of the last text that shows it
}

// Items returns what was shown of what needs the owner and is not over, by digest.
func (r Records) Items(ctx context.Context, line string) (map[string]Item, error) {
	list, err := store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (i Item, err error) {
		err = rows.Scan(&i.Code, &i.Digest, &i.Created)
		return i, err
	}, "SELECT about, digest, max(created) FROM phone_said WHERE line = ? AND kind = 'need' GROUP BY about, digest", line)
	if err != nil {
		return nil, err
	}
	items := make(map[string]Item)
	for _, i := range list {
		items[i.Digest] = i
	}
	return items, nil
}

// Mailed reports whether a message to the owner is on record as a text.
func (r Records) Mailed(ctx context.Context, line, message string) (has bool, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM phone_said WHERE line = ? AND about = ? AND kind = 'mail')", line, message).Scan(&has)
	return has, err
}

// Before reports whether an earlier part of the same text did not go out and will not.
func (r Records) Before(ctx context.Context, s Said) (failed bool, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM phone_said WHERE line = ? AND id = ? AND part < ? AND state IN ('failed', 'dropped'))`,
		s.Line, s.ID, s.Part).Scan(&failed)
	return failed, err
}

// Waits counts the texts of netsky's own that are not sent yet.
func (r Records) Waits(ctx context.Context, line string) (n int, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT count(*) FROM phone_said WHERE line = ? AND state = 'pending' AND kind IN ('need', 'list', 'alert', 'note')", line).Scan(&n)
	return n, err
}

// A Tally counts what was and is to be sent.
type Tally struct {
	Waiting     int
	Unconfirmed int // within the last day
	Failed      int // within the last day
	Oldest      store.Time
	// Why, by state, of the last text in it; without those that have no reason.
	Facts map[string]string
}

// Count counts what is to be sent, and what of the last day's was not seen to go out; without
// notes, whose sender was told so at once.
func (r Records) Count(ctx context.Context, line string, now time.Time) (t Tally, err error) {
	db := r.DB.Pool()
	err = db.QueryRowContext(ctx, `SELECT count(*), coalesce(min(created), 0) FROM phone_said WHERE line = ? AND state IN ('pending', 'sending')`, line).
		Scan(&t.Waiting, &t.Oldest)
	if err == nil {
		err = db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE state = 'unconfirmed'), count(*) FILTER (WHERE state = 'failed')
			FROM phone_said WHERE line = ? AND created >= ? AND kind <> 'note'`, line, store.At(now.Add(-24*time.Hour))).Scan(&t.Unconfirmed, &t.Failed)
	}
	if err != nil {
		return t, err
	}
	// With max, SQLite takes the other columns from the row that has it.
	rows, err := db.QueryContext(ctx, `SELECT state, fact, max(seq) FROM phone_said WHERE line = ? AND state IN ('pending', 'unconfirmed', 'failed')
		AND fact <> '' AND created >= ? AND (state = 'pending' OR kind <> 'note') GROUP BY state`, line, store.At(now.Add(-24*time.Hour)))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	t.Facts = make(map[string]string)
	for rows.Next() {
		var state, fact string
		var seq int64
		if err := rows.Scan(&state, &fact, &seq); err != nil {
			return t, err
		}
		t.Facts[state] = fact
	}
	return t, rows.Err()
}

// A Mail is a message to the owner, with its number among the records.
type Mail struct {
	Seq int64
	store.Message
}

// MailAfter returns messages to the owner that were recorded after the one with that number,
// the oldest first, and the number up to which it has looked. That is less than seq where the
// last records were removed as too old: their numbers are then given again, and the line's record
// says from which on.
func (r Records) MailAfter(ctx context.Context, seq int64, limit int) (list []Mail, upTo int64, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM messages").Scan(&upTo)
	if err != nil || upTo <= seq {
		return nil, upTo, err
	}
	list, err = store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (m Mail, err error) {
		m.To = "owner"
		var attachments, metadata string
		err = rows.Scan(&m.Seq, &m.ID, &m.From, &m.Kind, &m.Text, &m.Time, &m.InReplyTo, &m.Via, &m.RequiresAck, &attachments, &metadata)
		err = cmp.Or(err, fromJSON(attachments, &m.Attachments), fromJSON(metadata, &m.Metadata))
		return m, err
	}, `SELECT seq, id, sender, kind, text, time, in_reply_to, via, requires_ack, attachments, metadata FROM messages
		WHERE seq > ? AND seq <= ? AND target = 'owner' ORDER BY seq LIMIT ?`, seq, upTo, limit)
	if err != nil {
		return nil, seq, err
	}
	if len(list) == limit {
		upTo = list[limit-1].Seq
	}
	return list, upTo, nil
}

// fromJSON reads what toJSON returned.
func fromJSON(text string, to any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), to)
}

// A Turn is one text of the conversation with the owner, in either direction.
type Turn struct {
	Time    store.Time `json:"time"`
	From    string     `json:"from"` // owner, or netsky
	Text    string     `json:"text"`
	State   string     `json:"state"` // what became of it
	Message string     `json:"message,omitempty"`
	Files   int        `json:"files,omitempty"`
	Fact    string     `json:"fact,omitempty"` // why it was not sent, or is not known to be
}

// Talk returns the last texts from and to the owner's chats, the oldest first, without echoes.
func (r Records) Talk(ctx context.Context, limit int) ([]Turn, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (t Turn, err error) {
		err = rows.Scan(&t.Time, &t.From, &t.Text, &t.State, &t.Message, &t.Files, &t.Fact)
		return t, err
	}, `SELECT time, who, text, state, message, files, fact FROM (
			SELECT heard AS time, 0 AS said, seq, 'owner' AS who, text, verdict AS state, message, iif(files = '', 0, json_array_length(files)) AS files, '' AS fact
			FROM phone_heard WHERE verdict NOT IN ('echo', 'ours', 'pair', 'own', 'event', 'empty')
			UNION ALL
			SELECT iif(began = 0, created, began), 1, seq, 'netsky', text, state, about, file <> '', iif(state = 'sent', '', fact) FROM phone_said WHERE state <> 'dropped'
			ORDER BY time DESC, said DESC, seq DESC LIMIT ?) ORDER BY time, said, seq`, limit)
}

// LastSent returns when the last text that went out was sent, 0 if none did.
func (r Records) LastSent(ctx context.Context, line string) (at store.Time, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT coalesce(max(began), 0) FROM phone_said WHERE line = ? AND state = 'sent'", line).Scan(&at)
	return at, err
}

// Part returns the first part of a text, as it stands.
func (r Records) Part(ctx context.Context, line, id string) (s Said, ok bool, err error) {
	list, err := r.said(ctx, "WHERE line = ? AND id = ? ORDER BY part LIMIT 1", line, id)
	if len(list) > 0 {
		return list[0], true, err
	}
	return s, false, err
}
