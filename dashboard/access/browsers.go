package access

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsky/home"
	"netsky/store"
)

// stateFile holds what outlives a server. It contains no secret: a browser's key is
// derived from its id and the token.
const stateFile = "state/dashboard.json"

const (
	browserDays = 30  // since it was last seen
	maxBrowsers = 100 // a new one replaces the one that was seen longest ago
)

// A Browser is a browser that is signed in.
type Browser struct {
	ID    string     `json:"id"`
	Since store.Time `json:"since"`
	Seen  store.Time `json:"seen"`            // when it last proved that it has its key
	Name  string     `json:"name,omitempty"`  // what it calls itself
	Plain bool       `json:"plain,omitempty"` // it signed in without the script, and has no key
}

// state holds the file's contents and the open streams. Without the file, browsers must
// sign in again, and a page finds no server at its old address.
type state struct {
	home home.Dir
	now  func() time.Time

	mu   sync.Mutex // guards the fields below
	kept kept
	held map[*hold]struct{}
}

type kept struct {
	Port     int       `json:"port,omitempty"`  // the last port chosen for port 0
	Token    string    `json:"token,omitempty"` // of the token under which the browsers signed in
	Browsers []Browser `json:"browsers,omitempty"`
}

// A hold is an open stream and the function that ends it.
type hold struct {
	id  string // of the browser; "" for a bearer of the token
	end func()
}

func loadState(h home.Dir, now func() time.Time, token string) *state {
	s := &state{home: h, now: now, held: map[*hold]struct{}{}}
	if k, err := home.Load[kept](h, stateFile); err == nil {
		s.kept = k
	}
	if s.kept.Token != fingerprint(token) {
		s.kept.Token, s.kept.Browsers = fingerprint(token), nil
	}
	return s
}

// fingerprint identifies a token without revealing it.
func fingerprint(token string) string {
	sum := sha256.Sum256([]byte("netsky dashboard fingerprint\n" + token))
	return hex.EncodeToString(sum[:8])
}

// save writes the file. The caller holds mu.
func (s *state) save() error {
	if err := s.home.Save(stateFile, s.kept, false); err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	return nil
}

func (s *state) lastPort() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.Port < 0 || s.kept.Port > 65535 {
		return 0
	}
	return s.kept.Port
}

func (s *state) keepPort(port int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Port = port
	return s.save()
}

// find returns the browser with the id, if it is signed in.
func (s *state) find(id string) (Browser, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.index(id); i >= 0 {
		return s.kept.Browsers[i], true
	}
	return Browser{}, false
}

func (s *state) index(id string) int {
	oldest := store.At(s.now().AddDate(0, 0, -browserDays))
	return slices.IndexFunc(s.kept.Browsers, func(b Browser) bool { return b.ID == id && b.Seen >= oldest })
}

// add signs a browser in.
func (s *state) add(b Browser) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.Browsers = slices.DeleteFunc(s.kept.Browsers, func(b Browser) bool { return s.index(b.ID) < 0 })
	slices.SortStableFunc(s.kept.Browsers, func(a, b Browser) int { return cmp.Compare(b.Seen, a.Seen) })
	if len(s.kept.Browsers) >= maxBrowsers {
		for _, old := range s.kept.Browsers[maxBrowsers-1:] {
			s.endHeld(old.ID)
		}
		s.kept.Browsers = s.kept.Browsers[:maxBrowsers-1]
	}
	s.kept.Browsers = append(s.kept.Browsers, b)
	return s.save()
}

// seen records that the browser was there.
func (s *state) seen(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.index(id)
	if i < 0 {
		return nil
	}
	now := store.At(s.now())
	if now-s.kept.Browsers[i].Seen < store.Time(time.Minute.Milliseconds()) {
		return nil // at most once a minute
	}
	s.kept.Browsers[i].Seen = now
	return s.save()
}

// browsers returns the browsers that are signed in, the last seen first.
func (s *state) browsers() []Browser {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.kept.Browsers), func(b Browser) bool { return s.index(b.ID) < 0 })
	slices.SortStableFunc(list, func(a, b Browser) int { return cmp.Compare(b.Seen, a.Seen) })
	return list
}

// remove signs one browser out, or all for "", and returns how many there were.
func (s *state) remove(id string) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.kept.Browsers)
	s.kept.Browsers = slices.DeleteFunc(s.kept.Browsers, func(b Browser) bool {
		if id != "" && b.ID != id {
			return false
		}
		s.endHeld(b.ID)
		return true
	})
	if n = before - len(s.kept.Browsers); n == 0 {
		return 0, nil
	}
	return n, s.save()
}

// renew signs all browsers out, for a new token.
func (s *state) renew(token string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h := range s.held {
		h.end()
	}
	s.kept.Token, s.kept.Browsers = fingerprint(token), nil
	return s.save()
}

func (s *state) endHeld(id string) {
	for h := range s.held {
		if h.id == id {
			h.end()
		}
	}
}

// hold keeps the function that ends a stream until its browser is signed out. The
// caller must call the function that it returns.
func (s *state) hold(id string, end func()) func() {
	h := &hold{id, end}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[h] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, h)
	}
}
