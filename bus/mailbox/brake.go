// This file counts what agents send, and refuses what exceeds a limit: too many
// hops, too many messages in a minute, or to a mailbox where too many wait.
//
// Its counts are not fsynced: a crash of the machine forgets a minute of them.

package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
)

// Refusals match Err; one for too many hops, which waiting does not change, matches
// ErrHops too.
var (
	ErrBrake = errors.New("brake")
	ErrHops  = errors.New("too many hops")
)

// The limits for agents' messages.
const (
	MaxHops    = 16
	maxRate    = 60 // envelopes from one sender to one mailbox
	rateWindow = time.Minute
	rateEach   = rateWindow / maxRate
	maxWaiting = 1000
	maxCredit  = maxWaiting // for mail of another host, of which that many may have waited for a connection
	tellAgain  = time.Hour  // the owner is notified once in this time, per sender, mailbox and brake
	dir        = home.RunDir + "/brakes"
)

// A Brake is one of the brakes.
type Brake int

const (
	Hops Brake = iota
	Rate
	Waiting
	kinds
)

// An BrakeError is a refusal by a brake.
type BrakeError struct {
	Kind Brake
	Text string
}

func (e BrakeError) Error() string { return e.Text }
func (e BrakeError) Is(target error) bool {
	return target == ErrBrake || target == ErrHops && e.Kind == Hops
}

// Advice returns what to do next.
func (e BrakeError) Advice() string {
	return "this many messages mean a loop, or a reader that cannot keep up: send it again in a minute, or continue without it"
}

// A Ring is the file run/brakes/<sender>-<mailbox>, held under its flock: when the
// owner was last notified of each brake, then when the last sends were made, all in
// nanoseconds and in no order. It is not fsynced: a crash of the machine forgets a
// minute of counting.
type Ring struct {
	// Bounded is set if the message sent now is the first answer to another one, which
	// does not count.
	Bounded bool

	cache *Cache
	file  *Handle
	far   bool // the sender is on another host, where its mail was counted as it was sent
	times [int(kinds) + maxRate]int64
}

// Excess returns the brake that stops a send with so many hops; the fact is "" if none
// does. waiting counts the waiting messages at the recipient, up to a limit.
func (r *Ring) Excess(hops int, now time.Time, waiting func(limit int) (int, error)) (kind Brake, fact string, err error) {
	if hops > MaxHops {
		return Hops, HopsFact(hops), nil
	}
	if r.far && r.ahead(now) > (maxCredit-1)*rateEach {
		return Rate, fmt.Sprintf("%d messages more than %d a minute", maxCredit, maxRate), nil
	}
	if recent, _ := r.recent(now); !r.far && recent >= maxRate {
		return Rate, fmt.Sprintf("%d messages in the last minute, at most %d", recent, maxRate), nil
	}
	n, err := waiting(maxWaiting)
	if err == nil && n >= maxWaiting {
		return Waiting, fmt.Sprintf("%d messages wait there, at most %d", n, maxWaiting), nil
	}
	return 0, "", err
}

// HopsFact describes too many hops.
func HopsFact(hops int) string { return fmt.Sprintf("%d hops, at most %d", hops, MaxHops) }

// ToldLately reports whether the owner was notified of that brake in the last hour.
func (r *Ring) ToldLately(kind Brake, now time.Time) bool {
	age := now.UnixNano() - r.times[kind]
	return age >= 0 && age < int64(tellAgain)
}

// Tell records that the owner has been notified; if that fails, there is a second
// notification.
func (r *Ring) Tell(kind Brake, now time.Time) { r.set(int(kind), now) }

// After the times, the ring's file records which messages have been answered: a table
// of the first words of their IDs' digests. A later one may overwrite an earlier one, so that at worst
// one more answer to that message passes.
const answerSlots = 4096

func (r *Ring) answerAt(id string) (offset int64, word [8]byte) {
	sum := sha256.Sum256([]byte(id))
	slot := binary.LittleEndian.Uint64(sum[8:]) % answerSlots
	copy(word[:], sum[:8])
	word[0] |= 1 // never the zero of a free slot
	return int64(8*len(r.times)) + 8*int64(slot), word
}

// Answered reports whether an answer to the message was entered.
func (r *Ring) Answered(id string) bool {
	at, word := r.answerAt(id)
	var have [8]byte
	n, _ := ReaderAt(r.file.FD).ReadAt(have[:], at)
	return n == len(have) && have == word
}

// Answer enters an answer that was sent; if that fails, another may pass.
func (r *Ring) Answer(id string) {
	at, word := r.answerAt(id)
	Pwrite(r.file.FD, word[:], at)
}

// recent counts the sends of the last minute and returns a slot for one more.
func (r *Ring) recent(now time.Time) (n, slot int) {
	slot = int(kinds)
	for i := slot; i < len(r.times); i++ {
		// A future time is from before the clock was set back.
		if age := now.UnixNano() - r.times[i]; age >= 0 && age < int64(rateWindow) {
			n++
		} else {
			slot = i
		}
	}
	return n, slot
}

// ahead is by how much more time than has passed the messages of a sender on another host would
// have taken at the rate: what a host has kept for want of a connection comes all at once.
func (r *Ring) ahead(now time.Time) time.Duration {
	d := time.Duration(r.times[kinds] - now.UnixNano())
	if d > (maxCredit+1)*rateEach { // from before the clock was set back
		return 0
	}
	return max(d, 0)
}

// Count enters one send.
func (r *Ring) Count(now time.Time) {
	switch {
	case r.Bounded:
		return
	case r.far:
		r.set(int(kinds), now.Add(r.ahead(now)+rateEach)) // if this fails, one send is not counted
		return
	}
	_, slot := r.recent(now)
	r.set(slot, now) // if this fails, one send is not counted
}

// Release unlocks the ring for the next sender.
func (r *Ring) Release() {
	Flock(r.file.FD, unix.LOCK_UN)
	r.file.Unlock()
	r.cache.Put(r.file)
}

// OpenRing opens the ring of a sender and a mailbox under its lock, for which it waits a
// second or two. The caller must release it.
func OpenRing(ctx context.Context, h home.Dir, cache *Cache, files *Maker, from, to agent.ID) (*Ring, error) {
	name := string(from) + "-" + string(to)
	file, err := cache.Get(dir+"/"+name, time.Second, func() (int, error) {
		dir, err := MakeDir(h, dir)
		if err != nil {
			return -1, err
		}
		defer unix.Close(dir)
		fd, err := Open(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|NoAtime)
		if err != nil {
			return -1, err
		}
		if err := files.EnsureMode(fd); err != nil {
			unix.Close(fd)
			return -1, err
		}
		return fd, nil
	})
	if err != nil {
		return nil, err
	}
	file.Lock()
	r := &Ring{cache: cache, file: file, far: from.Host() != ""}
	if err := r.load(ctx); err != nil {
		r.Release()
		return nil, err
	}
	return r, nil
}

// load reads the ring under its lock.
func (r *Ring) load(ctx context.Context) error {
	for wait := time.Millisecond; ; wait *= 2 {
		err := Flock(r.file.FD, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if err != unix.EWOULDBLOCK || wait > time.Second {
			return err
		}
		if err := proc.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	var buf [8 * len(r.times)]byte
	n, err := ReaderAt(r.file.FD).ReadAt(buf[:], 0)
	if err != nil && err != io.EOF {
		return err
	}
	for i := range n / 8 {
		r.times[i] = int64(binary.LittleEndian.Uint64(buf[8*i:]))
	}
	return nil
}

func (r *Ring) set(slot int, t time.Time) error {
	var buf [8]byte
	binary.LittleEndian.PutUint64(buf[:], uint64(t.UnixNano()))
	return Pwrite(r.file.FD, buf[:], int64(8*slot))
}
