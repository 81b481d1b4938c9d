// Package quiet keeps the owner's quiet hours, in which nobody is paged about hangs. It
// holds back neither approvals nor dialogs.
//
// state/watchdog/quiet.json lists them, with what set each; of several the latest end
// counts, and what has passed is dropped with the next change. It is replaced as a whole
// under the lock "quiet". A damaged file means that nothing is quiet.
package quiet

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"netsky/home"
)

const (
	file = "state/watchdog/quiet.json"
	most = 100 // hours kept at once
)

// Longest is the longest time for which the owner can ask for quiet at once.
const Longest = 7 * 24 * time.Hour

// An Hour is one time of quiet.
type Hour struct {
	FromMS  int64  `json:"from_ms"`
	UntilMS int64  `json:"until_ms"`
	By      string `json:"by"`
}

// Until returns the end; zero for the zero Hour.
func (h Hour) Until() time.Time {
	if h.UntilMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(h.UntilMS)
}

// Now returns the hour in force that ends last; the zero Hour if there is none. An hour
// that has not begun was set under another clock, and does not count.
func Now(h home.Dir, now time.Time) (last Hour) {
	list, err := home.Load[[]Hour](h, file)
	if err != nil {
		return Hour{}
	}
	for _, q := range list {
		if q.in(now) && q.UntilMS > last.UntilMS {
			last = q
		}
	}
	return last
}

func (h Hour) in(now time.Time) bool {
	return !time.UnixMilli(h.FromMS).After(now.Add(time.Minute)) && now.Before(time.UnixMilli(h.UntilMS)) && h.UntilMS-now.UnixMilli() <= Longest.Milliseconds()
}

// Add keeps quiet for that long from now on, and returns what is in force then.
func Add(ctx context.Context, h home.Dir, d time.Duration, by string, now time.Time) (Hour, error) {
	err := change(ctx, h, func(list []Hour) []Hour {
		list = slices.DeleteFunc(list, func(q Hour) bool { return !q.in(now) })
		list = append(list, Hour{FromMS: now.UnixMilli(), UntilMS: now.Add(d).UnixMilli(), By: by})
		slices.SortFunc(list, func(a, b Hour) int { return cmp.Compare(a.UntilMS, b.UntilMS) })
		return list[max(len(list)-most, 0):]
	})
	return Now(h, now), err
}

// Off ends all quiet, and reports whether any was in force.
func Off(ctx context.Context, h home.Dir, now time.Time) (was bool, err error) {
	was = Now(h, now).UntilMS != 0
	return was, change(ctx, h, func([]Hour) []Hour { return nil })
}

func change(ctx context.Context, h home.Dir, f func([]Hour) []Hour) (err error) {
	l, err := h.WaitLock(ctx, home.QuietLock, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock()) }()
	list, err := home.Load[[]Hour](h, file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		list = nil // damaged
	}
	if list = f(list); len(list) == 0 {
		return h.Remove(file)
	}
	return h.Save(file, list, false)
}
