package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"

	"netsky/home"
	"netsky/phone/chat"
)

const (
	pairingFile = "state/phone-pairing.json"
	codeLetters = 6
	// After so many wrong codes nobody's counts any more, and after so many of one handle its own
	// don't: else any stranger could end a pairing.
	mostTries = 500
	triesEach = 5
)

// PairingTime is how long a code counts.
const PairingTime = 10 * time.Minute

// A Pairing waits for somebody to send its code.
type Pairing struct {
	Code  string
	Until time.Time

	id string
}

// A Candidate is who sent the code.
type Candidate struct {
	Handle  string    `json:"handle"`
	Service string    `json:"service"`
	At      time.Time `json:"at"`
}

// pairing is what pairingFile holds.
type pairing struct {
	ID        string     `json:"id"`
	Digest    string     `json:"digest"` // of the id and the code
	Began     int64      `json:"began_ms"`
	Candidate *Candidate `json:"candidate,omitempty"`
	// Wrong counts codes that were wrong by a digest of who sent them; LastWrong sent the last one.
	Wrong     map[string]int `json:"wrong,omitempty"`
	LastWrong string         `json:"last_wrong,omitempty"`
}

// A Waiting says how a pairing is that waits for its code.
type Waiting struct {
	Until time.Time
	Wrong int    // codes that came and were not it
	Last  string // the handle that sent the last of these
}

// String describes the wrong codes; empty if there were none.
func (w Waiting) String() string {
	switch w.Wrong {
	case 0:
		return ""
	case 1:
		return "a wrong code came from " + w.Last
	}
	return fmt.Sprintf("%d wrong codes came, the last from %s", w.Wrong, w.Last)
}

// ErrOver is returned for a pairing that has ended: its time is over, it was confirmed or
// ended, too many wrong codes came, or another one has begun.
var ErrOver = errors.New("the pairing is over")

func digest(id, code string) string {
	sum := sha256.Sum256([]byte(id + " " + code))
	return hex.EncodeToString(sum[:])
}

// live reports whether the pairing takes codes. One from the future began under another
// clock.
func (p pairing) live(now time.Time) bool {
	began := time.UnixMilli(p.Began)
	return p.ID != "" && p.waiting().Wrong < mostTries && !began.After(now.Add(time.Minute)) && now.Before(began.Add(PairingTime))
}

func (p pairing) waiting() Waiting {
	w := Waiting{Until: time.UnixMilli(p.Began).Add(PairingTime), Last: p.LastWrong}
	for _, n := range p.Wrong {
		w.Wrong += n
	}
	return w
}

// Look returns the pairing that waits for its code; ok is false if none does.
func Look(h home.Dir, now time.Time) (w Waiting, ok bool, err error) {
	p, err := loadPairing(h)
	return p.waiting(), err == nil && p.live(now) && p.Candidate == nil, err
}

func loadPairing(h home.Dir) (p pairing, err error) {
	data, err := contents(h, pairingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return pairing{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return pairing{}, fmt.Errorf("%s: %w", h.Path(pairingFile), err)
	}
	return p, nil
}

// Begin makes a code. A pairing that is there ends: the last one counts.
func Begin(ctx context.Context, h home.Dir, now time.Time) (Pairing, error) {
	p := Pairing{Code: home.NewCode(codeLetters), Until: now.Add(PairingTime), id: rand.Text()}
	return p, locked(ctx, h, func() error {
		return h.Save(pairingFile, pairing{ID: p.id, Digest: digest(p.id, p.Code), Began: now.UnixMilli()}, false)
	})
}

// codeForm is what counts as a try. Other texts of strangers do not end a pairing.
var codeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]{6}$`) })

// Offer looks whether a stranger's message is the code and nothing else, and reports whether
// it was taken: its handle is the candidate then. It takes direct messages of services whose
// senders cannot be forged, from a handle that is not denied; the first one with the code
// counts.
func Offer(ctx context.Context, h home.Dir, m chat.Message, now time.Time) (taken bool, err error) {
	code := strings.ToLower(strings.TrimSpace(m.Text))
	service := chat.ServiceName(m.Service)
	handle, herr := normal(m.Handle)
	switch {
	case !h.Mark(pairingFile).Exists(), !codeForm().MatchString(code), herr != nil:
		return false, nil
	case m.Kind != chat.Text, m.FromMe, !m.Chat.Direct:
		return false, nil
	case service != chat.ServiceIMessage && service != chat.ServiceTelegram:
		return false, nil
	}
	f, err := read(h)
	if err != nil {
		return false, err
	}
	if f.has(f.Deny, handle) {
		return false, nil
	}
	err = locked(ctx, h, func() error {
		p, err := loadPairing(h)
		who := digest(p.ID, handle)[:16]
		if err != nil || !p.live(now) || p.Candidate != nil || p.Wrong[who] >= triesEach {
			return err
		}
		if subtle.ConstantTimeCompare([]byte(digest(p.ID, code)), []byte(p.Digest)) == 1 {
			p.Candidate = &Candidate{Handle: handle, Service: service, At: now.UTC()}
		} else {
			if p.Wrong == nil {
				p.Wrong = make(map[string]int)
			}
			p.Wrong[who]++
			p.LastWrong = handle
		}
		if err := h.Save(pairingFile, p, false); err != nil {
			return err
		}
		taken = p.Candidate != nil
		return nil
	})
	return taken, err
}

// Pending returns who has sent the code; ok is false as long as nobody has. The error is
// ErrOver once nobody can.
func (p Pairing) Pending(h home.Dir, now time.Time) (c Candidate, ok bool, err error) {
	stored, err := loadPairing(h)
	switch {
	case err != nil:
		return c, false, err
	case stored.ID != p.id:
		return c, false, fmt.Errorf("%w: it was ended, or another one has begun", ErrOver)
	case !stored.live(now):
		w := stored.waiting()
		if words := w.String(); w.Wrong >= mostTries {
			return c, false, fmt.Errorf("%w: %s", ErrOver, words)
		} else if stored.Candidate == nil && words != "" {
			return c, false, fmt.Errorf("%w: nobody sent the code in time; %s", ErrOver, words)
		}
		return c, false, fmt.Errorf("%w: its time has passed", ErrOver)
	case stored.Candidate == nil:
		return c, false, nil
	}
	return *stored.Candidate, true, nil
}

// Wait waits for a candidate. The error is ErrOver once there can be none, or that of ctx. It calls
// wrong when more codes have come that are not the pairing's.
func (p Pairing) Wait(ctx context.Context, h home.Dir, wrong func(Waiting)) (Candidate, error) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	last := 0
	for {
		if w, ok, err := Look(h, time.Now()); ok && err == nil && w.Wrong > last {
			last = w.Wrong
			wrong(w)
		}
		if c, ok, err := p.Pending(h, time.Now()); ok || err != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
			return Candidate{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// Confirm allows the candidate, whom the owner has seen, and ends the pairing.
func (p Pairing) Confirm(ctx context.Context, h home.Dir, c Candidate, now time.Time) error {
	return locked(ctx, h, func() error {
		seen, ok, err := p.Pending(h, now)
		if err != nil {
			return err
		}
		if !ok || seen.Handle != c.Handle {
			return ErrOver
		}
		handle, err := normal(seen.Handle) // the file may have been written by another hand
		if err != nil {
			return err
		}
		if _, err := store(h, func(f *file) bool {
			return f.allow(record{Handle: handle, Added: stamp(now), By: ByPairing})
		}); err != nil {
			return err
		}
		return h.Remove(pairingFile)
	})
}

// End ends the pairing, if it is still there.
func (p Pairing) End(ctx context.Context, h home.Dir) error {
	return locked(ctx, h, func() error {
		stored, err := loadPairing(h)
		if err == nil && stored.ID != p.id {
			return nil
		}
		return h.Remove(pairingFile) // also a damaged one
	})
}
