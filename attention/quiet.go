// This file keeps the owner's quiet hours, in which nobody is paged about hangs. It
// holds back neither approvals nor dialogs.
//
// state/watchdog/quiet.json lists them, with what set each; of several the latest end
// counts, and what has passed is dropped with the next change. It is replaced as a whole
// under the lock "quiet". A damaged file means that nothing is quiet.

package attention

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
	quietFile = "state/watchdog/quiet.json"
	most      = 100 // hours kept at once
)

// LongestQuiet is the longest time for which the owner can ask for quiet at once.
const LongestQuiet = 7 * 24 * time.Hour

// An QuietHour is one time of quiet.
type QuietHour struct {
	FromMS  int64  `json:"from_ms"`
	UntilMS int64  `json:"until_ms"`
	By      string `json:"by"`
}

// Until returns the end; zero for the zero Hour.
func (h QuietHour) Until() time.Time {
	if h.UntilMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(h.UntilMS)
}

// QuietNow returns the hour in force that ends last; the zero Hour if there is none. An hour
// that has not begun was set under another clock, and does not count.
func QuietNow(h home.Dir, now time.Time) (last QuietHour) {
	list, err := home.Load[[]QuietHour](h, quietFile)
	if err != nil {
		return QuietHour{}
	}
	for _, q := range list {
		if q.in(now) && q.UntilMS > last.UntilMS {
			last = q
		}
	}
	return last
}

func (h QuietHour) in(now time.Time) bool {
	return !time.UnixMilli(h.FromMS).After(now.Add(time.Minute)) && now.Before(time.UnixMilli(h.UntilMS)) && h.UntilMS-now.UnixMilli() <= LongestQuiet.Milliseconds()
}

// Silence keeps quiet for that long from now on, and returns what is in force then.
func Silence(ctx context.Context, h home.Dir, d time.Duration, by string, now time.Time) (QuietHour, error) {
	err := change(ctx, h, func(list []QuietHour) []QuietHour {
		list = slices.DeleteFunc(list, func(q QuietHour) bool { return !q.in(now) })
		list = append(list, QuietHour{FromMS: now.UnixMilli(), UntilMS: now.Add(d).UnixMilli(), By: by})
		slices.SortFunc(list, func(a, b QuietHour) int { return cmp.Compare(a.UntilMS, b.UntilMS) })
		return list[max(len(list)-most, 0):]
	})
	return QuietNow(h, now), err
}

// EndQuiet ends all quiet, and reports whether any was in force.
func EndQuiet(ctx context.Context, h home.Dir, now time.Time) (was bool, err error) {
	was = QuietNow(h, now).UntilMS != 0
	return was, change(ctx, h, func([]QuietHour) []QuietHour { return nil })
}

func change(ctx context.Context, h home.Dir, f func([]QuietHour) []QuietHour) (err error) {
	l, err := h.WaitLock(ctx, home.QuietLock, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock()) }()
	list, err := home.Load[[]QuietHour](h, quietFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		list = nil // damaged
	}
	if list = f(list); len(list) == 0 {
		return h.Remove(quietFile)
	}
	return h.Save(quietFile, list, false)
}
