// Package access decides who may give orders by phone.
//
// Allowed are the owner's handles from the configuration and those of the file
// state/phone-access.json, except what that file denies: a denial counts more than both. A
// handle is a telephone number, a mail address or a Telegram user's id, never a group.
//
// It fails closed. If the file is anything but what this package writes (malformed, with an
// unknown or doubled key, a value of another type, more than 64 KiB, a symbolic link,
// writable by others), nobody may speak, the configured owner neither: a denial may be what
// cannot be read. The error names the file and the key. A damaged file stays where it is,
// and no change replaces it before a person has moved it away.
//
// The file is read at every question. Remembering it by its time would believe whoever can
// set that back; reading costs some 30 µs.
//
// A stranger becomes allowed by a code that the owner has at the terminal: Begin makes it,
// the stranger sends it, Offer recognises it, and Confirm, at the terminal again, allows the
// handle that sent it. Nothing else that arrives changes anything. The code counts once, for
// ten minutes; a handle that has sent five wrong ones is not heard any more, and after five hundred
// nobody is. Only its digest is stored, in state/phone-pairing.json.
//
// Both files are replaced as a whole under the lock "phone-access", so a crash leaves the old or
// the new one. A crash in Confirm can leave a handle allowed and its pairing there, which
// takes no other handle and ends by its time.
//
// The package knows no transport: whether a handle can be forged is a matter of the service
// by which it came, and Offer refuses those by which it can.
package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/phone/chat"
)

// Ways in which a handle was allowed.
const (
	ByConfig   = "configuration"
	ByTerminal = "terminal"
	ByPairing  = "pairing"
)

// An Entry is a handle in the list.
type Entry struct {
	Handle string
	By     string    // who allowed or denied it
	Added  time.Time // zero for those of the configuration
	Denied bool
	// Configured says of a denied one that the configuration allows it.
	Configured bool
}

// A List is who may speak. The zero List allows nobody.
type List struct {
	may     map[string]bool
	entries []Entry
}

// May reports whether who writes from the handle may give orders.
func (l List) May(handle string) bool {
	h, err := normal(handle)
	return err == nil && l.may[h]
}

// OwnerChat reports whether a chat is a direct one with somebody who may speak: the place
// for what is the owner's alone.
func (l List) OwnerChat(c chat.Chat) bool { return c.Direct && l.May(c.Identifier) }

// Entries lists the handles, those of the configuration first, then by their time.
func (l List) Entries() []Entry { return slices.Clone(l.entries) }

// ErrHandle is returned for what is no handle of a person.
var ErrHandle = errors.New("not a handle")

// handleForm has no colon in a mail address: nobody writes from "mailto:me@example.org", so to
// deny that would deny nobody.
var handleForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\+[0-9]{4,15}|[0-9]{3,19}|[^\p{Z}\p{C}@:;,<>()"'\\]+@[^\p{Z}\p{C}@:;,<>()"'\\]+)$`)
})

const maxHandle = 254 // bytes; the limit of mail addresses

// normal returns the handle in the form in which handles are compared.
func normal(s string) (string, error) {
	s = strings.TrimSpace(s)
	fail := func(fact string) (string, error) {
		if len(s) > 60 {
			s = s[:60] + "…"
		}
		return "", fmt.Errorf("%q: %w: %s", s, ErrHandle, fact)
	}
	switch {
	case s == "":
		return fail("it is empty")
	case strings.HasPrefix(strings.ToLower(s), "chat") && !strings.Contains(s, "@"), strings.HasPrefix(s, "-"), strings.Contains(s, ";"):
		return fail("it is a chat's; only persons can be allowed")
	}
	h := chat.Handle(s)
	if len(h) > maxHandle || !handleForm().MatchString(h) {
		return fail("a telephone number with its country (+15550100), a mail address or a Telegram user's id is needed")
	}
	return h, nil
}

// Load returns who may speak: owner are the handles of the configuration. With an error
// nobody may.
func Load(h home.Dir, owner []string) (List, error) {
	f, err := read(h)
	if err != nil {
		return List{}, err
	}
	l := List{may: make(map[string]bool)}
	configured := make(map[string]bool)
	for _, s := range owner {
		handle, err := normal(s)
		if err != nil {
			return List{}, advice.With(fmt.Errorf("the owner's handles in the configuration: %w; nobody may speak", err), "correct them under [owner] in %s", h.Path(home.ConfigFile))
		}
		configured[handle] = true
	}
	denied := make(map[string]bool)
	for _, e := range f.Deny {
		denied[e.Handle] = true
	}
	for _, handle := range slices.Sorted(maps.Keys(configured)) {
		if !denied[handle] {
			l.may[handle] = true
			l.entries = append(l.entries, Entry{Handle: handle, By: ByConfig})
		}
	}
	for _, e := range f.Allow {
		if !denied[e.Handle] && !l.may[e.Handle] {
			l.may[e.Handle] = true
			l.entries = append(l.entries, Entry{Handle: e.Handle, By: e.By, Added: e.Added})
		}
	}
	for _, e := range f.Deny {
		l.entries = append(l.entries, Entry{Handle: e.Handle, By: e.By, Added: e.Added, Denied: true, Configured: configured[e.Handle]})
	}
	return l, nil
}

// Allow adds a handle to those allowed, and ends its denial. It returns the handle in its
// stored form, and whether anything changed.
func Allow(ctx context.Context, h home.Dir, handle string, now time.Time) (stored string, changed bool, err error) {
	return change(ctx, h, handle, func(f *file, handle string) bool {
		return f.allow(record{Handle: handle, Added: stamp(now), By: ByTerminal})
	})
}

// Deny denies a handle, whatever allows it.
func Deny(ctx context.Context, h home.Dir, handle string, now time.Time) (stored string, changed bool, err error) {
	return change(ctx, h, handle, func(f *file, handle string) bool {
		had := f.remove(&f.Allow, handle)
		if f.has(f.Deny, handle) {
			return had
		}
		f.Deny = append(f.Deny, record{Handle: handle, Added: stamp(now), By: ByTerminal})
		return true
	})
}

// Remove forgets what the file says of a handle; the configuration decides alone then.
func Remove(ctx context.Context, h home.Dir, handle string) (stored string, changed bool, err error) {
	return change(ctx, h, handle, func(f *file, handle string) bool {
		allowed, denied := f.remove(&f.Allow, handle), f.remove(&f.Deny, handle)
		return allowed || denied
	})
}

// stamp is a time as it is stored.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// change changes the file under the lock.
func change(ctx context.Context, h home.Dir, handle string, edit func(*file, string) bool) (stored string, changed bool, err error) {
	if stored, err = normal(handle); err != nil {
		return "", false, err
	}
	err = locked(ctx, h, func() error {
		changed, err = store(h, func(f *file) bool { return edit(f, stored) })
		return err
	})
	return stored, changed, err
}

// store changes the file; the caller holds the lock.
func store(h home.Dir, edit func(*file) bool) (changed bool, err error) {
	f, err := read(h)
	if err != nil {
		return false, err
	}
	if !edit(&f) {
		return false, nil
	}
	return true, f.save(h)
}

func locked(ctx context.Context, h home.Dir, do func() error) (err error) {
	l, err := h.WaitLock(ctx, home.AccessLock, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock()) }()
	return do()
}
