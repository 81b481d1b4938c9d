package phone

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// ErrWaits is returned for a text that is recorded and not sent yet.
var ErrWaits = errors.New("it is recorded, and sent when that is possible")

const (
	directLook     = 100 * time.Millisecond
	handOverWithin = 15 * time.Second // for the bridge to send a text
	// MaxText is how many bytes such a text may have.
	MaxText = 3000
)

// A Direct is one text of netsky's own.
type Direct struct {
	To    *chat.Chat // nil is the owner's: where they wrote last
	Text  string
	Alert bool // it is reported until it was sent; of others, the caller is told what became of them
}

// Text sends a text, in whatever process: by the bridge that runs, else itself. It needs neither a
// daemon nor the records; with records, the text is on the ledger before it is sent. The receipt
// says what became of it; the error matches ErrWaits if that is not known when ctx ends, and the
// bridge still has it.
func Text(ctx context.Context, o Options, d Direct) (to chat.Chat, got chat.Receipt, err error) {
	b := New(o)
	lock, err := o.Home.Lock(home.PhoneLock)
	if err != nil && !errors.Is(err, home.ErrLocked) {
		return to, got, err
	}
	if err == nil {
		defer lock.Unlock()
	}
	l, err := b.open(ctx)
	if err == nil {
		if c, ok, err := l.room(ctx); err != nil {
			return to, got, err
		} else if ok && d.To == nil {
			d.To = &c
		}
	}
	if d.To == nil {
		c, err := o.To()
		if err != nil {
			return to, got, err
		}
		d.To = &c
	}
	kind := kindNote
	if d.Alert {
		kind = kindAlert
	}
	said := b.compose(letter{id: "x-" + rand.Text(), chat: *d.To, kind: kind, name: us, text: envelope.Shorten(d.Text, MaxText)})[0]
	if lock == nil {
		got, err = (&sender{loop: l}).handOver(ctx, said)
	} else {
		got, err = (&sender{loop: l}).alone(ctx, said)
	}
	return *d.To, got, err
}

// handOver leaves a text to the bridge that runs, and waits for what becomes of it.
func (b *sender) handOver(ctx context.Context, said record.Said) (chat.Receipt, error) {
	if b.rec.DB == nil {
		return chat.Receipt{}, errNoRecords
	}
	if err := b.rec.Say(ctx, said); err != nil {
		return chat.Receipt{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, handOverWithin)
	defer cancel()
	fact := ""
	for {
		s, ok, err := b.rec.Part(context.WithoutCancel(ctx), said.Line, said.ID)
		if s.Fact != "" {
			fact = ": " + s.Fact
		}
		switch {
		case ctx.Err() != nil && (!ok || s.State == record.Pending || s.State == record.Sending):
			return chat.Receipt{}, fmt.Errorf("not sent yet%s; %w", fact, ErrWaits)
		case err != nil:
			return chat.Receipt{}, err
		case ok && s.State != record.Pending && s.State != record.Sending:
			return chat.Receipt{State: chat.State(s.State), GUID: s.GUID, Fact: s.Fact}, nil
		}
		proc.Sleep(ctx, directLook)
	}
}

// alone sends a text while no bridge runs.
func (b *sender) alone(ctx context.Context, said record.Said) (chat.Receipt, error) {
	mark, err := b.o.Transport.Mark(ctx)
	if err != nil {
		return chat.Receipt{}, err
	}
	said.Mark, said.State, said.Began = mark, record.Sending, store.At(b.o.Now())
	if b.rec.DB != nil {
		if err := b.rec.Say(ctx, said); err != nil {
			b.o.Log.Warn("not on the ledger", "error", err) // its signature keeps it from being an order
		}
	}
	ctx = context.WithoutCancel(ctx)
	got, err := b.o.Transport.Send(ctx, b.outgoing(ctx, said))
	if err != nil {
		got = chat.Receipt{State: chat.Failed, Fact: err.Error()}
	}
	if b.rec.DB == nil {
		return got, nil
	}
	s, ok, err := b.rec.Part(ctx, said.Line, said.ID)
	if err == nil && ok {
		s.State, s.GUID, s.Fact = string(got.State), got.GUID, got.Fact
		err = b.rec.End(ctx, s, b.o.Now())
	}
	if err != nil {
		b.o.Log.Warn("not recorded", "error", err)
	}
	return got, nil
}

// Transcript formats texts as lines: when, who, what. A text can't forge a line.
func Transcript(list []record.Turn) (lines []string) {
	for _, t := range list {
		who, text := t.From, t.Text
		if t.From != "owner" { // signed, as all texts of ours are
			if name, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "] "); ok && Signed(text) {
				who, text = name, rest
			}
		}
		line := t.Time.Time().Local().Format("2006-01-02 15:04") + " " + who
		if t.State != record.Sent && t.State != VerdictOrder {
			state := t.State
			if t.Fact != "" {
				state += ": " + envelope.Line(t.Fact, 200)
			}
			line += " (" + state + ")"
		}
		line += ": " + envelope.Line(text, 1000)
		switch {
		case t.Files == 1:
			line += " [a file]"
		case t.Files > 1:
			line += fmt.Sprintf(" [%d files]", t.Files)
		}
		lines = append(lines, line)
	}
	return lines
}
