package team

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"netsky/home"
	"netsky/internal/advice"
)

// JoinDir holds the requests to join, one file a key, on the owner's host.
const JoinDir = "state/link/join"

// A State is what became of a request to join.
type State string

const (
	Pending  State = "pending"
	Approved State = "approved"
	Rejected State = "rejected" // by the owner
	Refused  State = "refused"  // by netsky, for a reason
	Removed  State = "removed"  // its key was in the team, and counts no longer
	Unknown  State = "unknown"  // there is no such request, or none any more
)

const (
	maxRequests = 20
	// keepApproved is how long a host that was approved may take to hear of it.
	keepApproved = 7 * 24 * time.Hour
)

// A Request is a host that asks to join.
type Request struct {
	ID     string    `json:"request"`
	Code   string    `json:"code"` // which both hosts show: 1234-5678
	Name   string    `json:"name"`
	Key    string    `json:"key"`
	At     time.Time `json:"at"`
	State  State     `json:"state"`
	Reason string    `json:"reason,omitzero"` // why it was refused
	Role   Role      `json:"role,omitzero"`   // with which it was approved
	Like   string    `json:"-"`               // the host of the team whose name its own can be mistaken for
}

func requestFile(key string) string { return JoinDir + "/" + key + ".json" }

// over reports whether the request counts no longer.
func (r Request) over(now time.Time) bool {
	age := now.Sub(r.At)
	return age > keepApproved || age > JoinWithin && r.State != Approved || age < -JoinWithin
}

// Until is when a request that waits is over.
func (r Request) Until() time.Time { return r.At.Add(JoinWithin) }

// Requests returns the requests to join that are not over, the oldest first. With an error
// there may be more.
func Requests(h home.Dir) (list []Request, err error) {
	keys, err := home.Records(h, JoinDir)
	errs := []error{err}
	for _, key := range keys {
		r, err := loadRequest(h, key)
		if err == nil && r.State != Unknown {
			list = append(list, r)
		}
		errs = append(errs, err)
	}
	t, _ := Load(h) // Approve says what is wrong with it
	for i := range list {
		list[i].Like = t.like(list[i].Name)
	}
	slices.SortStableFunc(list, func(a, b Request) int { return a.At.Compare(b.At) })
	return list, errors.Join(errs...)
}

// loadRequest returns the request of a key; its State is Unknown if there is none.
func loadRequest(h home.Dir, key string) (r Request, err error) {
	r, err = home.Load[Request](h, requestFile(key))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && r.over(time.Now()):
		return Request{State: Unknown}, nil
	case err == nil && r.Key != key:
		err = fmt.Errorf("%s: is of key %.60q", h.Path(requestFile(key)), r.Key)
	}
	if err != nil {
		return Request{State: Unknown}, advice.With(err, "remove the file; the host can ask again")
	}
	return r, nil
}

// sweep removes the requests that are over.
func sweep(h home.Dir) error {
	keys, err := home.Records(h, JoinDir)
	for _, key := range keys {
		if r, lerr := loadRequest(h, key); lerr == nil && r.State == Unknown {
			err = errors.Join(err, h.Remove(requestFile(key)))
		}
	}
	return err
}

// Approve lets the host in that shows a code, which hears of it by itself. Only the owner's
// host can. After a crash it can be repeated.
func Approve(h home.Dir, code string, role Role) (Request, error) {
	return decide(h, code, func(r *Request) error {
		t, err := Load(h)
		if err != nil {
			return err
		}
		if _, in := t.Holder(r.Key); in && r.State == Approved {
			return nil
		}
		if _, err := admit(h, Host{Name: r.Name, Key: r.Key, Role: role}); err != nil {
			return err
		}
		r.State, r.Role = Approved, role
		return nil
	})
}

// Reject keeps the host out that shows a code. It can't ask again before its request is over.
func Reject(h home.Dir, code string) (Request, error) {
	return decide(h, code, func(r *Request) error {
		if r.State == Approved {
			return advice.With(fmt.Errorf("%s: was approved already", r.Code), "`netsky link remove %s` removes %[1]s", r.Name)
		}
		r.State = Rejected
		return nil
	})
}

// Drop forgets a request, so that its host may ask again at once.
func Drop(h home.Dir, r Request) error {
	return locked(h, func() error { return h.Remove(requestFile(r.Key)) })
}

// decide answers the request of a code.
func decide(h home.Dir, code string, do func(*Request) error) (r Request, err error) {
	if code, err = ParseCode(code); err != nil {
		return r, err
	}
	err = locked(h, func() error {
		if _, err := LoadOwner(h); err != nil {
			return err
		}
		list, err := Requests(h)
		list = slices.DeleteFunc(list, func(r Request) bool { return r.Code != code || r.State == Refused })
		switch {
		case len(list) == 0 && err != nil:
			return err
		case len(list) == 0:
			return advice.With(fmt.Errorf("%s: no host with that code asks to join", code), "compare it with what that host shows, as somebody between you could have swapped its key; `netsky link` lists who asks")
		case len(list) > 1:
			return advice.With(fmt.Errorf("%s: %d hosts have that code", code, len(list)), "wait until they are over, and join again")
		}
		r = list[0]
		if err := do(&r); err != nil {
			return err
		}
		return h.Save(requestFile(r.Key), r, true)
	})
	return r, err
}

// Caution is what whoever lets the host in has to know of its name, "" if nothing.
func (r Request) Caution() string {
	if r.Like == "" {
		return ""
	}
	return fmt.Sprintf("; its name looks like that of %s, which is another host", r.Like)
}

// alike makes names equal that a reader may take for one another.
var alike = strings.NewReplacer("0", "o", "1", "l", "i", "l", "rn", "m", "vv", "w", "5", "s", "-", "")

// like returns the host whose name can be mistaken for another.
func (t Team) like(name string) string {
	i := slices.IndexFunc(t.Hosts, func(h Host) bool { return h.Name != name && alike.Replace(h.Name) == alike.Replace(name) })
	if i < 0 {
		return ""
	}
	return t.Hosts[i].Name
}
