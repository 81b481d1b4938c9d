package phone

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"netsky/attention"
	"netsky/internal/proc"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

const (
	sendAgain     = 2 * time.Second
	sendAgainMost = 5 * time.Minute
	giveUpAfter   = 24 * time.Hour
	lookFor       = 20 * time.Minute // how long what was not seen to go out is looked for
	lookEvery     = 15 * time.Second
	mostTries     = 3                // of a text that was handed over and is nowhere to be seen
	repeatAfter   = 10 * time.Second // where nothing can be looked for, a text is sent again so late
	sendPoll      = 2 * time.Second
	recoverWithin = 2 * time.Minute // how long it may take to find out what became of a text
	findWithin    = 2 * time.Second // one look for it: others are waiting to be sent
)

// repeated ends a text that may have been sent before, where that can't be found out.
const repeated = " (perhaps a repeat)"

// A sender sends what is recorded to be sent.
type sender struct {
	loop
	recheck map[int64]time.Time // by Seq, when to look again for what a crash left
	failing bool                // the last text could not be sent for now
}

// send sends what is recorded to be sent, one at a time.
func (b *sender) send(ctx context.Context) error {
	looked, failing := time.Time{}, sendPoll
	for {
		wait, err := b.sendNext(ctx)
		if errors.Is(err, errNotReady) {
			wait, err, failing = failing, nil, min(2*failing, retryMost)
		} else if err == nil {
			failing = sendPoll
		}
		if err == nil && b.o.Now().Sub(looked) > lookEvery {
			looked = b.o.Now()
			err = b.lookAgain(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.o.Log.Warn("send", "error", err)
			if b.o.Records() != b.rec.DB {
				return errNoRecords
			}
			wait = sendPoll
		}
		if wait > 0 {
			if err := proc.SleepUntil(ctx, wait, b.unsent); err != nil {
				return err
			}
		}
	}
}

// sendNext sends the first part that may be sent now. It returns how long to wait before the
// next.
func (b *sender) sendNext(ctx context.Context) (time.Duration, error) {
	list, err := b.rec.Unsent(ctx, b.line.Name)
	if err != nil {
		return 0, err
	}
	now, wait := b.o.Now(), sendPoll
	paced := time.Duration(0)
	defer func() { b.status.paces(now, paced) }()
	blocked := map[string]bool{} // ids of which an earlier part has to go first
	for _, s := range list {
		key := s.Line + s.ID
		due := s.NotBefore.Time()
		if max(s.Created, s.Began).Time().After(now) {
			due = now // the clock was set back since
		}
		switch {
		case blocked[key]:
			continue
		case s.State == record.Sending: // a crash left it so
			if now.Before(b.recheck[s.Seq]) {
				wait, blocked[key] = min(wait, b.recheck[s.Seq].Sub(now)), true
				continue
			}
			return 0, b.recover(ctx, s)
		case due.After(now):
			wait, blocked[key] = min(wait, due.Sub(now)), true
			continue
		}
		if done, err := b.denied(ctx, s); err != nil || done {
			return 0, err
		}
		if why, err := b.superseded(ctx, s); err != nil || why != "" {
			s.State, s.Fact = record.Dropped, why
			if err == nil {
				err = b.rec.End(ctx, s, now)
			}
			return 0, err
		}
		rest, err := b.pace(ctx, s, now)
		if err != nil {
			return 0, err
		}
		if rest > 0 {
			wait, blocked[key], paced = min(wait, rest), true, max(paced, rest)
			continue
		}
		return 0, b.sendOne(ctx, s)
	}
	return wait, nil
}

// denied drops a part for a chat whose other side may not speak any more: a phone that was lost is
// told nothing. What needs the owner is shown in another chat then. While the list of speakers
// cannot be read, nothing is sent.
func (b *sender) denied(ctx context.Context, s record.Said) (bool, error) {
	who, err := b.o.Gate.Speakers()
	if err != nil {
		return false, errNotReady
	}
	if who.OwnerChat(chatOf(s.Chat)) {
		return false, nil
	}
	s.State, s.Fact = record.Dropped, "who reads that chat may not speak any more"
	if err := b.rec.End(ctx, s, b.o.Now()); err != nil {
		return false, err
	}
	if s.Kind == kindNeed {
		return true, b.rec.Over(ctx, s.Line, s.About)
	}
	return true, nil
}

// superseded returns why a part need not be sent any more.
func (b *sender) superseded(ctx context.Context, s record.Said) (string, error) {
	if s.Part > 1 && s.Tries == 0 {
		if failed, err := b.rec.Before(ctx, s); err != nil || failed {
			return "an earlier part did not go out", err
		}
	}
	switch {
	case s.Kind == kindNeed && s.Part == 1 && s.Tries == 0:
		list, err := b.o.Desk.Needs(ctx)
		n, ok := attention.Find(list, s.About)
		if err == nil && (!ok || s.Digest != "" && n.Digest != s.Digest) {
			return "it was settled before", nil
		}
	case s.Kind == kindList && s.Part == 1 && s.Tries == 0:
		list, err := b.o.Desk.Needs(ctx)
		live := func(code string) bool { _, ok := attention.Find(list, code); return ok }
		if err == nil && !slices.ContainsFunc(strings.Fields(s.About), live) {
			return "all of it was settled before", nil
		}
	case s.Kind == kindMail && s.NotBefore != 0 && s.Part == 1 && s.Tries == 0:
		if seen, err := b.o.Shown(ctx, s.About); err == nil && seen {
			return "it was read elsewhere before", nil
		}
	}
	return "", nil
}

// pace returns how long the chat has to rest before the next text.
func (b *sender) pace(ctx context.Context, s record.Said, now time.Time) (time.Duration, error) {
	said, err := b.rec.SaidSince(ctx, s.Line, s.Chat.Key, now.Add(-time.Hour))
	if err != nil {
		return 0, err
	}
	var began []time.Time
	for i := range said {
		if at := said[i].Began.Time(); !at.After(now) { // else the clock was set back since
			began = append(began, at)
		}
	}
	rest := func(most int, within time.Duration) time.Duration {
		if len(began) < most {
			return 0
		}
		return began[len(began)-most].Add(within).Sub(now)
	}
	p := b.o.Pace
	if s.Kind == kindMail { // the rest is for what needs the owner
		p.Minute -= p.Minute / 4
		p.Hour -= p.Hour / 5
	}
	return max(rest(1, p.Gap), rest(p.Minute, time.Minute), rest(p.Hour, time.Hour)), nil
}

// sendOne sends one part. Once begun, it is finished and recorded, whatever happens to ctx.
func (b *sender) sendOne(ctx context.Context, s record.Said) error {
	mark, err := b.o.Transport.Mark(ctx)
	if err != nil {
		return b.notReady(ctx, s, err)
	}
	if err := b.rec.Begin(ctx, s, mark, b.o.Now()); err != nil {
		return err
	}
	s.Mark, s.Tries, s.Began = mark, s.Tries+1, store.At(b.o.Now())
	b.o.Step("begun")
	ctx = context.WithoutCancel(ctx)
	// Once more, as late as can be: whoever was denied since sendNext looked gets nothing, either.
	if done, err := b.denied(ctx, s); done || err != nil {
		if errors.Is(err, errNotReady) {
			err = errors.Join(err, b.ended(ctx, s, chat.Receipt{State: chat.Failed, Fact: "who may speak is not known", Again: true}))
		}
		return err
	}
	got, err := b.o.Transport.Send(ctx, b.outgoing(ctx, s))
	if err != nil {
		got = chat.Receipt{State: chat.Failed, Fact: err.Error(), Again: true}
	}
	b.o.Step("sent")
	return b.ended(ctx, s, got)
}

// errNotReady ends a round of sending: the transport can't be looked at, which concerns all that
// waits.
var errNotReady = errors.New("the transport cannot be looked at")

// notReady records, once, why nothing is sent for now.
func (b *sender) notReady(ctx context.Context, s record.Said, why error) error {
	if s.Fact == why.Error() && b.o.Now().Sub(s.Created.Time()) < giveUpAfter {
		return errNotReady
	}
	err := b.ended(ctx, s, chat.Receipt{State: chat.Failed, Fact: why.Error(), Again: true})
	return errors.Join(errNotReady, err)
}

// outgoing returns a part as the transport sends it or looks for it.
func (b *sender) outgoing(ctx context.Context, s record.Said) chat.Outgoing {
	out := chat.Outgoing{ID: s.ID + "-" + string(rune('0'+s.Part)), Chat: chatOf(s.Chat), Text: s.Text, File: s.File, Choices: s.Choices, Mark: s.Mark}
	if b.rec.DB != nil {
		out.Taken = func(guid string) bool {
			// If that can't be read, it counts as another's: unconfirmed is better than a wrong sent.
			other, ok, err := b.rec.SaidAs(ctx, s.Line, guid)
			return err != nil || ok && (other.ID != s.ID || other.Part != s.Part)
		}
	}
	return out
}

// ended records what became of a part.
func (b *sender) ended(ctx context.Context, s record.Said, got chat.Receipt) error {
	now := b.o.Now()
	s.State, s.GUID, s.Fact, s.NotBefore = string(got.State), got.GUID, got.Fact, 0
	if got.State == chat.Failed && got.Again && now.Sub(s.Created.Time()) < giveUpAfter {
		wait := max(min(sendAgain<<min(s.Tries, 10), sendAgainMost), got.Wait)
		s.State, s.NotBefore = record.Pending, store.At(now.Add(wait))
	}
	b.o.Log.Info("said", "id", s.ID, "part", s.Part, "state", s.State, "fact", s.Fact)
	if s.State == record.Sent && s.Kind == kindAlert && b.o.Reached != nil {
		b.o.Reached()
	}
	if again := s.State == record.Pending; again != b.failing {
		if b.failing = again; !again {
			defer func() {
				if err := b.rec.Release(ctx, s.Line); err != nil {
					b.o.Log.Warn("send", "error", err)
				}
			}()
		}
	}
	err := b.rec.End(ctx, s, now)
	wake(b.unseen)
	return err
}

// recover finds out what became of a part that was being sent when the program died.
func (b *sender) recover(ctx context.Context, s record.Said) error {
	age := b.o.Now().Sub(s.Began.Time()).Abs() // the clock may have been set back
	b.recheck[s.Seq] = b.o.Now().Add(max(sendPoll, min(age/8, retryMost)))
	got, err := b.find(ctx, s)
	switch {
	case errors.Is(err, chat.ErrCannotLook): // twice, and saying so, is better than not at all
		return b.again(ctx, s)
	case errors.Is(err, context.DeadlineExceeded):
		return nil
	case err != nil:
		b.o.Log.Warn("find", "id", s.ID, "error", err)
		return nil
	case got.State == chat.Unconfirmed && age < recoverWithin:
		return nil // it may be on its way
	case got.State == chat.Failed:
		got.Again = got.Again || got.GUID == "" // what is not there can't arrive twice
	}
	delete(b.recheck, s.Seq)
	return b.ended(ctx, s, got)
}

// find looks for a text, not for long: what the transport has to wait for is seen by a later look.
func (b *sender) find(ctx context.Context, s record.Said) (chat.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, findWithin)
	defer cancel()
	return b.o.Transport.Find(ctx, b.outgoing(ctx, s))
}

// again records that a part is to be sent once more, as a repeat.
func (b *sender) again(ctx context.Context, s record.Said) error {
	if err := b.rec.Repeat(ctx, s, repeated); err != nil {
		return err
	}
	s.State, s.Fact = record.Pending, "it is not known whether it went out, and it is sent once more"
	return b.rec.End(ctx, s, b.o.Now())
}

// lookAgain looks for what was handed over and not seen to go out.
func (b *sender) lookAgain(ctx context.Context) error {
	list, err := b.rec.Doubtful(ctx, b.line.Name, b.o.Now().Add(-lookFor))
	if err != nil {
		return err
	}
	for _, s := range list {
		got, err := b.find(ctx, s)
		since := b.o.Now().Sub(s.Began.Time())
		switch late := since > recoverWithin; {
		case errors.Is(err, chat.ErrCannotLook) && since > repeatAfter && s.Tries < mostTries:
			// An owner who is asked twice is better off than one who is not asked at all.
			if err := b.again(ctx, s); err != nil {
				return err
			}
			continue
		case err != nil, got.State == chat.Unconfirmed:
			continue
		case got.State == chat.Failed && got.GUID == "" && got.Again && late && s.Tries < mostTries:
			// Handed over, and not there minutes later.
			if err := b.again(ctx, s); err != nil {
				return err
			}
			continue
		case got.State == chat.Failed && got.GUID == "":
			continue // so soon that proves nothing
		}
		s.State, s.GUID, s.Fact = string(got.State), got.GUID, got.Fact
		if err := b.rec.End(ctx, s, b.o.Now()); err != nil {
			return err
		}
	}
	return nil
}
