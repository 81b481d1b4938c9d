package home

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Mark is what a file or directory of the home was like at one moment. A
// directory's changes when an entry comes, goes or is replaced, as all files here
// are; the zero Mark is that of one that is not there.
type Mark struct {
	dev, ino uint64
	mtime    int64 // nanoseconds
	fresh    bool  // a later change might have the same time
}

// markStep is longer than the steps in which file systems tell time. A time in the
// future, as a clock that was set back leaves it, counts as settled.
const markStep = 50 * time.Millisecond

// Mark takes the mark of what is at a path below the home now.
func (h Dir) Mark(rel ...string) Mark {
	var st unix.Stat_t
	if unix.Lstat(h.Path(rel...), &st) != nil {
		return Mark{}
	}
	age := time.Now().UnixNano() - st.Mtim.Nano()
	return Mark{
		dev: uint64(st.Dev), ino: st.Ino, mtime: st.Mtim.Nano(),
		fresh: age > -int64(time.Second) && age < int64(markStep),
	}
}

// Same reports whether nothing has changed between m and now, which was taken
// later. It reports false where that can't be told yet: m was taken so soon after
// a change that the next one may have left no trace.
func (m Mark) Same(now Mark) bool {
	return !m.fresh && m.dev == now.dev && m.ino == now.ino && m.mtime == now.mtime
}

// Exists reports whether there was anything.
func (m Mark) Exists() bool { return m.ino != 0 }

// Settled reports whether any later change will show in a later mark.
func (m Mark) Settled() bool { return !m.fresh }
