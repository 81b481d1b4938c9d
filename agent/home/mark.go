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

// markStep is longer than the steps in which file systems tell time, 10 ms at most.
const markStep = 20 * time.Millisecond

// Mark takes the mark of what is at a path below the home now.
func (h Dir) Mark(rel ...string) Mark {
	asked := time.Now() // first: whoever is held up here must not take a fresh mark for an old one
	var st unix.Stat_t
	if unix.Lstat(h.Path(rel...), &st) != nil {
		return Mark{}
	}
	return Mark{
		dev: uint64(st.Dev), ino: st.Ino, mtime: st.Mtim.Nano(),
		fresh: asked.UnixNano()-st.Mtim.Nano() < int64(markStep), // also of a time in the future
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
