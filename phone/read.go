package phone

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netsky/bus/envelope"
	"netsky/internal/proc"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

const (
	liveFence   = 15 * time.Minute // what is older when it arrives is not acted on
	mostAway    = 2 * time.Hour    // after an absence, what was written meanwhile is, up to this age
	awayAfter   = time.Minute      // without a look this long, the bridge was away
	recoverFor  = 15 * time.Minute // how long after it what was missed may arrive
	reportOld   = 24 * time.Hour   // the owner is told of old messages that are not older than this
	retryFirst  = time.Second
	retryMost   = time.Minute
	graceToTell = 5 * time.Minute // a transport that can't be used for longer is reported by another way
	leastBatch  = 250 * time.Millisecond
	mostNotes   = 20 // of one batch, in the log
)

// A reader takes what arrives.
type reader struct {
	loop
	away absence
}

// read takes what arrives.
func (b *reader) read(ctx context.Context) error {
	wake(b.unacted) // what an earlier run left
	if b.line.Cursor != "" {
		b.status.took(b.line.Cursor, nil) // what it reported may have been lost
	}
	replaced, wait := b.rec.DB.Replaced(), retryFirst
	b.away = absence{seen: b.status.seen(), now: b.o.Now}
	for {
		// With a list that can't be read nobody may speak: then nothing is taken, and all waits.
		// Only where reading begins is found out, so that what is written meanwhile is not missed.
		_, err := b.o.Gate.Speakers()
		if err == nil || b.line.Cursor == "" {
			err = errors.Join(err, b.readNext(ctx))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			b.status.reads()
			b.away.look()
			wait = retryFirst
		} else {
			b.status.fails(err)
			if err := proc.Sleep(ctx, wait); err != nil {
				return err
			}
			wait = min(2*wait, retryMost)
		}
		if n := b.rec.DB.Replaced(); n != replaced || b.o.Records() != b.rec.DB {
			return errNoRecords // the next run opens them anew
		}
	}
}

// readNext takes the next batch. A transport that returns nothing without having waited is not
// asked again at once.
func (b *reader) readNext(ctx context.Context) error {
	began, cursor := time.Now(), b.line.Cursor
	batch, err := b.o.Transport.Next(ctx, cursor)
	if err != nil {
		return err
	}
	if err := b.take(ctx, batch, b.away.fence()); err != nil {
		return err
	}
	if len(batch.Messages) == 0 || batch.Cursor == cursor {
		return proc.Sleep(ctx, leastBatch-time.Since(began))
	}
	return nil
}

// An absence is a time in which nobody looked: the program did not run, the machine slept, the
// transport could not be read.
type absence struct {
	seen  time.Time // the last look
	since time.Time // of the last absence: what was written after it is not old
	until time.Time // when the recovery from it ends
	now   func() time.Time
}

// fence returns the time before which messages are old.
func (a *absence) fence() time.Time {
	now := a.now().Round(0) // by the wall clock, which goes on while the machine sleeps
	if !a.seen.IsZero() && now.Sub(a.seen) > awayAfter {
		a.since, a.until = a.seen, now.Add(recoverFor)
	}
	fence := now.Add(-liveFence)
	if missed := a.since.Add(-liveFence); now.Before(a.until) && missed.Before(fence) {
		if earliest := now.Add(-mostAway); missed.Before(earliest) {
			return earliest
		}
		return missed
	}
	return fence
}

func (a *absence) look() { a.seen = a.now().Round(0) }

// take judges a batch and records it with its cursor.
func (b *reader) take(ctx context.Context, batch chat.Batch, fence time.Time) error {
	for i, note := range batch.Notes {
		if i == mostNotes {
			b.o.Log.Info("transport", "name", b.line.Name, "note", fmt.Sprintf("%d more notes", len(batch.Notes)-i))
			break
		}
		b.o.Log.Info("transport", "name", b.line.Name, "note", envelope.Line(note, 500))
	}
	if len(batch.Messages) == 0 && batch.Cursor == b.line.Cursor {
		return nil
	}
	var who Speakers
	if len(batch.Messages) > 0 {
		var err error
		if who, err = b.o.Gate.Speakers(); err != nil {
			return err
		}
	}
	t := taking{b: b.Bridge, rec: b.rec, line: b.line.Name, scenes: make(map[string]*scene), fence: fence, who: who, now: b.o.Now()}
	for _, m := range batch.Messages {
		if err := t.add(ctx, bounded(m)); err != nil {
			return err
		}
	}
	fresh, err := b.rec.Hear(ctx, b.line.Name, batch.Cursor, t.heard, t.echoes, t.say())
	if err != nil {
		return err
	}
	b.line.Cursor = batch.Cursor
	b.status.took(b.line.Cursor, t.counts)
	for _, h := range fresh {
		b.o.Log.Info("heard", "verdict", h.Verdict, "guid", h.GUID)
	}
	for _, m := range t.strangers {
		if err := b.o.Gate.Offer(ctx, m); err != nil {
			b.o.Log.Warn("pairing", "error", err)
		}
	}
	wake(b.unacted)
	if len(t.old) > 0 {
		wake(b.unsent)
	}
	return nil
}

// A taking is a batch on its way into the records.
type taking struct {
	b      *Bridge
	rec    record.Records
	line   string
	who    Speakers
	fence  time.Time
	now    time.Time
	scenes map[string]*scene // by chat, or one for all

	guids     map[string]bool
	heard     []record.Heard
	echoes    []record.Absorbed
	counts    map[string]int // by verdict, of what is not recorded
	strangers []chat.Message
	old       []record.Heard // the owner's, not acted on, and not long ago
}

func (t *taking) add(ctx context.Context, m chat.Message) error {
	verdict := foreign(t.who, m)
	if verdict == "" {
		s, err := t.scene(ctx, m)
		if err != nil {
			return err
		}
		said := int64(0)
		if has, err := t.has(ctx, m.GUID); has || err != nil {
			return err // the transport has returned it before: it is not judged by what it caused
		}
		if err := t.full(ctx, s, m); err != nil {
			return err
		}
		verdict, said = s.judge(m)
		if said != 0 {
			t.echoes = append(t.echoes, record.Absorbed{Said: said, FromMe: m.FromMe, GUID: m.GUID})
		}
		h := s.record(t.line, m, verdict)
		t.heard, s.heard = append(t.heard, h), append(s.heard, h)
		if verdict == VerdictBrake {
			s.brakes[m.Chat.Key] = h
		}
		if verdict == VerdictOld && m.Kind == chat.Text && t.now.Sub(s.when(m)) < reportOld && !Signed(m.Text) && h.Note == "" {
			t.old = append(t.old, h)
		}
		return nil
	}
	if t.counts == nil {
		t.counts = make(map[string]int)
	}
	t.counts[verdict]++
	if verdict == VerdictStranger && m.Chat.Direct && !m.FromMe && m.Kind == chat.Text {
		t.strangers = append(t.strangers, m)
	}
	return nil
}

// full finds out what the brake needs to know about a message.
func (t *taking) full(ctx context.Context, s *scene, m chat.Message) error {
	key, at := m.Chat.Key, s.when(m)
	if _, ok := s.brakes[key]; !ok {
		last, ok, err := t.rec.LastIn(ctx, t.line, key, VerdictBrake)
		if err != nil {
			return err
		}
		if ok {
			s.brakes[key] = last
		}
	}
	s.taken = nil
	if m.Kind != chat.Text || s.rests(key) {
		return nil
	}
	var err error
	s.taken, err = t.rec.Around(ctx, t.line, key, []string{VerdictOrder, VerdictUnreadable}, at, brakeWithin, brakeAll)
	for _, h := range t.heard {
		if h.Chat.Key == key && (h.Verdict == VerdictOrder || h.Verdict == VerdictUnreadable) && at.Sub(h.At.Time()).Abs() < brakeWithin {
			s.taken = append(s.taken, h)
		}
	}
	return err
}

// has reports whether a message is on record, or in this batch already.
func (t *taking) has(ctx context.Context, guid string) (bool, error) {
	if t.guids[guid] {
		return true, nil
	}
	if t.guids == nil {
		t.guids = make(map[string]bool)
	}
	t.guids[guid] = true
	return t.rec.HasHeard(ctx, t.line, guid)
}

// What somebody else can make long, and is no text, is recorded up to this.
const (
	longestName   = 500 // bytes of an id or a file's name
	mostFilesKept = 32
)

// bounded returns a message with names of a bounded length. An id that is longer is replaced by
// one made of all of it.
func bounded(m chat.Message) chat.Message {
	id := func(s string) string {
		if len(s) <= longestName {
			return s
		}
		return "long-" + short(s)
	}
	m.GUID, m.About, m.Reaction, m.Unreadable = id(m.GUID), id(m.About), id(m.Reaction), envelope.Line(m.Unreadable, 300)
	files := m.Attachments
	m.Attachments = nil
	for i, f := range files {
		if i == mostFilesKept {
			m.Attachments = append(m.Attachments, chat.Attachment{Name: "more", Bytes: -1, Missing: fmt.Sprintf("%d more files", len(files)-i)})
			break
		}
		if len(f.Name) > longestName { // its end tells the type
			f.Name = strings.ToValidUTF8(f.Name[len(f.Name)-longestName:], "")
		}
		f.MIME, f.Missing = envelope.Line(f.MIME, 100), envelope.Line(f.Missing, 300)
		if len(f.GUID) > longestName {
			f.GUID, f.Missing = id(f.GUID), "its id is too long"
		}
		m.Attachments = append(m.Attachments, f)
	}
	return m
}

// scene returns what the verdicts in a chat depend on.
func (t *taking) scene(ctx context.Context, m chat.Message) (*scene, error) {
	key := m.Chat.Key
	if t.b.o.SelfChat {
		key = "" // what is sent to an address of one's own may arrive in the chat with another one
	}
	if s, ok := t.scenes[key]; ok {
		return s, nil
	}
	said, err := t.rec.SaidSince(ctx, t.line, key, t.now.Add(-mostAway-liveFence))
	if err != nil {
		return nil, err
	}
	heard, err := t.rec.HeardSince(ctx, t.line, key, t.now.Add(-brakeRest))
	if err != nil {
		return nil, err
	}
	s := &scene{now: t.now, fence: t.fence, self: t.b.o.SelfChat, said: said, heard: heard, brakes: make(map[string]record.Heard), sent: func(guid string) bool {
		_, ok, err := t.rec.SaidAs(ctx, t.line, guid)
		return ok && err == nil
	}}
	t.scenes[key] = s
	return s, nil
}

// say returns what the owner is told about messages that came too late.
func (t *taking) say() []record.Said {
	if len(t.old) == 0 {
		return nil
	}
	first, last := t.old[0], t.old[len(t.old)-1]
	text := fmt.Sprintf("A message of yours from %s arrived only now, too late to act on. Send it again if it still matters.", clock(first.At, t.now))
	if len(t.old) > 1 {
		text = fmt.Sprintf("%d messages of yours from %s to %s arrived only now, too late to act on. Send again what still matters.",
			len(t.old), clock(first.At, t.now), clock(last.At, t.now))
	}
	return t.b.compose(letter{id: "old-" + short(first.GUID+strconv.Itoa(len(t.old))), chat: chatOf(last.Chat), kind: kindAnswer, name: us, text: text})
}

func clock(t store.Time, now time.Time) string {
	layout := "15:04"
	if at := t.Time().Local(); at.Format("2006-01-02") != now.Local().Format("2006-01-02") {
		layout = "Monday 15:04"
	}
	return t.Time().Local().Format(layout)
}

// reasonOf returns why a transport can't be read, and what to do.
func reasonOf(err error) (reason, next string) {
	var d *chat.Degraded
	if errors.As(err, &d) {
		return d.Reason, d.Next
	}
	return err.Error(), ""
}
