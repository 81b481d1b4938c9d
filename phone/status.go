package phone

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/phone/record"
	"netsky/store"
)

// StatusFile holds what the bridge reports about itself, and what a lost database would take
// with it: the cursor, and the time up to which mail was forwarded.
const StatusFile = "state/phone.json"

// The states of a bridge.
const (
	StateOK       = "ok"
	StateDegraded = "degraded" // it can't read for now; what arrives waits
)

// A Status is what a bridge reports about itself.
type Status struct {
	Transport string     `json:"transport"`
	State     string     `json:"state"`
	Reason    string     `json:"reason,omitempty"`
	Next      string     `json:"next,omitempty"` // what the owner can do about it
	Since     store.Time `json:"since"`
	Seen      store.Time `json:"seen"`           // when it last could read
	Told      bool       `json:"told,omitempty"` // the owner, that it is degraded
	Waiting   int        `json:"waiting"`
	Oldest    store.Time `json:"oldest,omitzero"` // of what waits
	Failed    int        `json:"failed"`          // within a day
	Doubtful  int        `json:"unconfirmed"`     // within a day
	// Facts say why, by state, of the last text in it.
	Facts   map[string]string `json:"facts,omitempty"`
	Rests   store.Time        `json:"rests,omitzero"` // until then, what arrives in the chat that sent too much is not acted on
	Paced   store.Time        `json:"paced,omitzero"` // until then, what waits is not sent, as enough was within the hour
	Ignored map[string]int    `json:"ignored,omitempty"`

	Cursor    string     `json:"cursor"`
	Forwarded store.Time `json:"forwarded"`
}

// Load returns what the bridge of a home last reported. The error matches fs.ErrNotExist if
// there never was one.
func Load(h home.Dir) (Status, error) { return home.Load[Status](h, StatusFile) }

// Lines describe it: what waits or went wrong.
func (s Status) Lines(now time.Time) (lines []string) {
	if s.State == StateDegraded {
		meanwhile := "what you write there waits"
		if s.Cursor == "" { // the first look finds where reading begins
			meanwhile = "what you write there before it can be is never read"
		}
		line := fmt.Sprintf("phone: %s cannot be read since %s: %s; %s", s.Transport, s.Since.Time().Local().Format("15:04"), s.Reason, meanwhile)
		if s.Next != "" {
			line += "; " + s.Next
		}
		lines = append(lines, line)
	}
	if rests := s.Rests.Time(); now.Before(rests) {
		lines = append(lines, fmt.Sprintf("phone: too many messages arrived within a minute; until %s only `stop` and `no` are acted on there", rests.Local().Format("15:04")))
	}
	if paced := s.Paced.Time(); s.Waiting > 0 && now.Before(paced) {
		lines = append(lines, fmt.Sprintf("phone: enough texts went to you within the hour; more are sent from %s on, what needs you first", paced.Local().Format("15:04")))
	}
	var counts []string
	add := func(n int, what, state string) {
		if n == 0 {
			return
		}
		words := fmt.Sprintf("%d %s", n, what)
		if why := s.Facts[state]; why != "" {
			words += " (" + envelope.Line(why, 200) + ")"
		}
		counts = append(counts, words)
	}
	add(s.Failed, "not sent within a day", record.Failed)
	add(s.Doubtful, "sent without a confirmation within a day", record.Unconfirmed)
	if now.Sub(s.Oldest.Time()) > time.Minute {
		add(s.Waiting, "waiting to be sent", record.Pending)
	}
	if len(counts) > 0 {
		lines = append(lines, "phone: texts to you: "+strings.Join(counts, ", "))
	}
	return lines
}

// silentAfter is longer than a look takes, and than what it reports is kept from the disk.
const silentAfter = 3 * time.Minute

// Silent returns since when a bridge that runs has reported nothing, if that is longer than it may
// take: it hangs, or cannot write the report, as on a full disk. Then nothing in the report is true.
func (s Status) Silent(now time.Time) (since time.Time, silent bool) {
	since = max(s.Seen, s.Since).Time()
	return since, s.State == StateOK && now.Sub(since) > silentAfter
}

// A status is the bridge's, with what decides when it is saved.
type status struct {
	home home.Dir
	now  func() time.Time
	warn func(error)

	mu     sync.Mutex // guards the fields below
	s      Status
	before Status // of the run before
	saved  time.Time
	looked time.Time // when the transport last returned; not by the wall clock, which goes on in a sleep
}

func (t *status) init(o Options) {
	t.home, t.now = o.Home, o.Now
	t.warn = func(err error) { o.Log.Warn("status", "error", err) }
	if s, err := Load(o.Home); err == nil && s.Transport == o.Transport.Name() {
		t.before = s
	}
	t.s = Status{Transport: o.Transport.Name(), State: StateOK, Since: store.At(o.Now()), Seen: t.before.Seen, Cursor: t.before.Cursor, Forwarded: t.before.Forwarded}
	if t.s.Forwarded == 0 { // mail from before is for the computer
		t.s.Forwarded = store.At(o.Now())
	}
	if b := t.before; b.State == StateDegraded { // it is, until it has read
		t.s.State, t.s.Reason, t.s.Next, t.s.Since, t.s.Told = b.State, b.Reason, b.Next, min(b.Since, t.s.Since), b.Told
	}
	t.looked = o.Now()
}

// kept returns the cursor, and the time up to which mail was forwarded, of the run before.
func (t *status) kept() (cursor string, forwarded store.Time) {
	if forwarded = t.before.Forwarded; forwarded == 0 {
		forwarded = t.before.Seen
	}
	if t.before.Cursor == "" && forwarded == 0 {
		return "", 0
	}
	if t.before.Waiting > 0 { // what waited to be sent was lost with the database, too
		forwarded = min(forwarded, t.before.Oldest-store.Time(time.Minute.Milliseconds()))
	}
	return t.before.Cursor, max(forwarded, 1)
}

func (t *status) seen() time.Time { return t.before.Seen.Time() }

const saveEvery = 30 * time.Second

// change makes a change, and saves what is then reported: at once if another word, else now
// and then.
func (t *status) change(f func(s *Status) (urgent bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f(&t.s) || t.now().Sub(t.saved) >= saveEvery {
		t.write()
	}
}

func (t *status) write() {
	t.saved = t.now()
	if err := t.home.Save(StatusFile, t.s, false); err != nil {
		t.warn(err)
	}
}

func (t *status) save() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write()
}

// reads reports that the transport could be read.
func (t *status) reads() {
	t.change(func(s *Status) bool {
		was := s.State
		t.looked = t.now()
		s.Seen = store.At(t.now())
		if was == StateOK {
			return false
		}
		s.State, s.Reason, s.Next, s.Since, s.Told = StateOK, "", "", s.Seen, false
		return true
	})
}

// fails reports that the transport could not be read.
func (t *status) fails(err error) {
	t.change(func(s *Status) bool {
		t.looked = t.now()
		reason, next := reasonOf(err)
		reason = envelope.Line(reason, 300)
		changed := s.State != StateDegraded || s.Reason != reason
		if s.State != StateDegraded {
			s.Since = store.At(t.now())
		}
		s.State, s.Reason, s.Next = StateDegraded, reason, next
		return changed
	})
}

// rests reports that a chat is at rest, as too many messages came.
func (t *status) rests(until time.Time) {
	t.change(func(s *Status) bool { s.Rests = store.At(until); return true })
}

// paces reports how long what waits to be sent has to wait for the hour's pace.
func (t *status) paces(now time.Time, rest time.Duration) {
	until := store.Time(0)
	if rest > time.Minute {
		until = store.At(now.Add(rest))
	}
	t.change(func(s *Status) bool {
		urgent := (s.Paced == 0) != (until == 0)
		s.Paced = until
		return urgent
	})
}

// took reports what a batch held.
func (t *status) took(cursor string, counts map[string]int) {
	t.change(func(s *Status) bool {
		s.Cursor = cursor
		for verdict, n := range counts {
			if s.Ignored == nil {
				s.Ignored = make(map[string]int)
			}
			s.Ignored[verdict] += n
		}
		return true
	})
}

func (t *status) forwards(list []record.Mail) {
	t.change(func(s *Status) bool {
		for _, m := range list {
			s.Forwarded = max(s.Forwarded, min(m.Time, store.At(t.now()))) // its writer's clock may be wrong
		}
		return len(list) > 0
	})
}

// watch keeps what is reported true, and reaches the owner another way when the phone does not
// work.
func (b *loop) watch(ctx context.Context) error {
	for {
		if tally, err := b.rec.Count(ctx, b.line.Name, b.o.Now()); err == nil {
			b.status.counts(tally)
		}
		if reason, next, ok := b.status.overdue(); ok {
			text := "phone: messages cannot be read: " + reason
			if next != "" {
				text += "; " + next
			}
			b.mail(ctx, "phone-degraded-"+short(reason+b.o.Now().Format("2006-01-02 15")), text)
			if b.o.Alert != nil {
				b.o.Alert(ctx, "netsky can't read your phone's messages", text)
			}
		}
		if err := proc.SleepUntil(ctx, watchEvery, b.unseen); err != nil {
			return err
		}
	}
}

const watchEvery = 10 * time.Second

func (t *status) counts(tally record.Tally) {
	t.change(func(s *Status) bool {
		urgent := s.Failed != tally.Failed || s.Doubtful != tally.Unconfirmed || !maps.Equal(s.Facts, tally.Facts) || (s.Waiting == 0) != (tally.Waiting == 0)
		s.Waiting, s.Failed, s.Doubtful, s.Facts, s.Oldest = tally.Waiting, tally.Failed, tally.Unconfirmed, tally.Facts, tally.Oldest
		return urgent
	})
}

// overdue reports, once, that the transport can't be read for longer than it may take.
func (t *status) overdue() (reason, next string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.s.State == StateOK && t.now().Sub(t.looked) > graceToTell {
		t.s.State, t.s.Since = StateDegraded, store.At(t.looked)
		t.s.Reason = "the last look at it has not come to an end"
	}
	if t.s.State != StateDegraded || t.s.Told || t.now().Sub(t.s.Since.Time()) < graceToTell {
		return "", "", false
	}
	t.s.Told = true
	t.write()
	return t.s.Reason, t.s.Next, true
}
