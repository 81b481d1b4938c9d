package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus/disk"
	"netsky/bus/envelope"
)

// The brakes on agents' sends. The owner has none, and control mail knows none.
const (
	maxHops    = 16
	maxRate    = 60 // envelopes from one sender to one mailbox
	rateWindow = time.Minute
	maxWaiting = 1000
	tellAgain  = time.Hour // the owner is told once in this time, per sender, mailbox and brake
	brakeDir   = home.RunDir + "/brakes"
)

// A brakeKind is one of the brakes.
type brakeKind int

const (
	brakeHops brakeKind = iota
	brakeRate
	brakeWaiting
	brakeKinds
)

// A brakeError is a refusal by a brake.
type brakeError struct {
	kind brakeKind
	text string
}

func (e brakeError) Error() string { return e.text }
func (e brakeError) Is(target error) bool {
	return target == ErrBrake || target == ErrHops && e.kind == brakeHops
}

// A ring is the file run/brakes/<sender>-<mailbox>, held under its flock:
// when the owner was last told of each brake, then when the last sends were
// made, all in nanoseconds and in no order. It is not fsynced: a crash of the
// machine forgets a minute of counting.
type ring struct {
	bus   *Bus
	file  *disk.Handle
	times [int(brakeKinds) + maxRate]int64

	bounded bool // what is sent now is the first answer to a message
}

// brake refuses an agent's envelope that is one too many. If it does not, the
// caller counts the envelope once it is sent, so that the counting is not part
// of what is fsynced for it, and releases the ring.
//
// The first answer to a message that has come to the sender is bounded by that
// message: neither how many there were lately nor how many wait stops it, only
// the hops. A refused one is told to whoever waits for it.
func (b *Bus) brake(ctx context.Context, e *envelope.Envelope, inbox *disk.Handle) (*ring, error) {
	r, err := b.openRing(ctx, e.From, e.To)
	if err != nil {
		return nil, fmt.Errorf("count the sends of %s to %s: %w", e.From, e.To, err)
	}
	if err := b.check(r, e, inbox); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

func (b *Bus) check(r *ring, e *envelope.Envelope, inbox *disk.Handle) error {
	kind, fact, err := b.excess(r, *e, inbox)
	if fact == "" || err != nil {
		return err
	}
	hops, first := 0, false
	if e.InReplyTo != "" {
		hops, first = b.answers(r, *e)
	}
	if first && kind != brakeHops {
		if e.Hops = max(e.Hops, hops); e.Hops <= maxHops {
			r.bounded = true
			return nil
		}
		kind, fact = brakeHops, hopsFact(*e)
	}
	err = b.refuse(r, *e, kind, fact, b.now())
	// An agent that answers the error is refused again, and then nobody waits.
	if first && (e.To == agent.Owner || e.Hops <= maxHops+1) {
		cause := envelope.Envelope{ID: e.InReplyTo, Thread: e.Thread, Hops: e.Hops - 1}
		told := b.answer(e.From, e.To, envelope.KindError, cause, fmt.Sprintf("netsky refused the answer of %s: %s", e.From, fact))
		if told != nil {
			return fmt.Errorf("%w; and %s was not told: %w", err, e.To, told)
		}
		r.answered(e.InReplyTo)
	}
	return err
}

// excess says which brake an envelope meets; the fact is "" if none.
func (b *Bus) excess(r *ring, e envelope.Envelope, inbox *disk.Handle) (kind brakeKind, fact string, err error) {
	if e.Hops > maxHops {
		return brakeHops, hopsFact(e), nil
	}
	if recent, _ := r.recent(b.now()); recent >= maxRate {
		return brakeRate, fmt.Sprintf("%d messages in the last minute, at most %d", recent, maxRate), nil
	}
	inbox.Lock()
	waiting, err := countMail(inbox.FD, maxWaiting)
	inbox.Unlock()
	if err != nil {
		return 0, "", fmt.Errorf("count what waits for %s: %w", e.To, err)
	}
	if waiting >= maxWaiting {
		return brakeWaiting, fmt.Sprintf("%d messages wait there, at most %d", waiting, maxWaiting), nil
	}
	return 0, "", nil
}

func hopsFact(e envelope.Envelope) string { return fmt.Sprintf("%d hops, at most %d", e.Hops, maxHops) }

// answers reports whether the envelope is the first answer to a message that its
// sender got from whom it goes to, and how many hops it has then.
func (b *Bus) answers(r *ring, e envelope.Envelope) (hops int, first bool) {
	if r.hasAnswered(e.InReplyTo) {
		return 0, false
	}
	cause, ok := b.cause(e.From, e.To, e.InReplyTo)
	return cause.Hops + 1, ok
}

// The ring's file holds, behind the times, which messages have been answered: a
// table of words of their IDs' digests, in which a later one may take the place
// of an earlier, so that at worst another answer to that passes.
const answerSlots = 4096

func (r *ring) answerAt(id string) (offset int64, word [8]byte) {
	sum := sha256.Sum256([]byte(id))
	slot := binary.LittleEndian.Uint64(sum[8:]) % answerSlots
	copy(word[:], sum[:8])
	word[0] |= 1 // never the zero of a slot that is free
	return int64(8*len(r.times)) + 8*int64(slot), word
}

func (r *ring) hasAnswered(id string) bool {
	at, word := r.answerAt(id)
	var have [8]byte
	n, _ := disk.ReaderAt(r.file.FD).ReadAt(have[:], at)
	return n == len(have) && have == word
}

// answered enters an answer that was sent; if that fails, another may pass.
func (r *ring) answered(id string) {
	at, word := r.answerAt(id)
	disk.Pwrite(r.file.FD, word[:], at)
}

// recent counts the sends of the last minute and names a slot for one more.
func (r *ring) recent(now time.Time) (n, slot int) {
	slot = int(brakeKinds)
	for i := slot; i < len(r.times); i++ {
		// A time ahead of us is from before the clock was set back.
		if age := now.UnixNano() - r.times[i]; age >= 0 && age < int64(rateWindow) {
			n++
		} else {
			slot = i
		}
	}
	return n, slot
}

// count enters one send, but no answer that is bounded by what it answers.
func (r *ring) count(now time.Time) {
	if r.bounded {
		return
	}
	_, slot := r.recent(now)
	r.set(slot, now) // if this fails, one send is not counted
}

// release gives the ring to the next sender.
func (r *ring) release() {
	disk.Flock(r.file.FD, unix.LOCK_UN)
	r.file.Unlock()
	r.bus.cache.Put(r.file)
}

// refuse makes the refusal and tells the owner, if that was not done lately.
func (b *Bus) refuse(r *ring, e envelope.Envelope, kind brakeKind, fact string, now time.Time) error {
	var err error = brakeError{kind, fmt.Sprintf("%s to %s: %v: %s", e.From, e.To, ErrBrake, fact)}
	if age := now.UnixNano() - r.times[kind]; age >= 0 && age < int64(tellAgain) {
		return err
	}
	inbox, open := b.inbox(agent.Owner)
	if open != nil {
		return err // nobody to tell yet
	}
	defer b.cache.Put(inbox)
	_, told := b.put(inbox.FD, envelope.Envelope{
		ID: newID(), From: e.From, To: agent.Owner, Kind: envelope.KindError, Time: now, Via: "code", Thread: e.Thread,
		Text: fmt.Sprintf("netsky refused a message of %s to %s: %s. More refusals like it are not reported for an hour.", e.From, e.To, fact),
	})
	if told != nil {
		return fmt.Errorf("%w; and the owner was not told: %w", err, told)
	}
	r.set(int(kind), now) // if this fails, the owner is told twice
	return err
}

func (b *Bus) openRing(ctx context.Context, from, to agent.ID) (*ring, error) {
	name := string(from) + "-" + string(to)
	file, err := b.cache.Get(brakeDir+"/"+name, time.Second, func() (int, error) {
		dir, err := disk.MakeDir(b.home, brakeDir)
		if err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		fd, err := disk.Open(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|disk.NoAtime)
		if err != nil {
			return -1, err
		}
		if err := b.files.EnsureMode(fd); err != nil {
			unix.Close(fd)
			return -1, err
		}
		return fd, nil
	})
	if err != nil {
		return nil, err
	}
	file.Lock()
	r := &ring{bus: b, file: file}
	if err := r.load(ctx); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

// load reads the ring under its lock.
func (r *ring) load(ctx context.Context) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := disk.Flock(r.file.FD, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK || wait > time.Second {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	var buf [8 * len(r.times)]byte
	n, err := disk.ReaderAt(r.file.FD).ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return err
	}
	for i := range n / 8 {
		r.times[i] = int64(binary.LittleEndian.Uint64(buf[8*i:]))
	}
	return nil
}

func (r *ring) set(slot int, t time.Time) error {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(t.UnixNano()))
	return disk.Pwrite(r.file.FD, buf[:], int64(8*slot))
}

// countMail counts the envelopes in an open directory and stops at limit.
func countMail(dir, limit int) (n int, err error) {
	_, err = disk.Dirents(dir, nil, func(name []byte) bool {
		if name[0] != '.' && bytes.HasSuffix(name, []byte(".json")) {
			n++
		}
		return n < limit
	})
	return n, err
}
