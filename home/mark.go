package home

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Mark is the state of a file or directory of the home at one moment. A directory's
// changes when an entry is added, removed or replaced, as all files here are; the zero
// Mark means that it does not exist.
type Mark struct {
	dev, ino uint64
	mtime    int64 // nanoseconds
	fresh    bool  // a later change might have the same time
}

// markStep exceeds the resolution of file systems' timestamps, 10 ms at most.
const markStep = 20 * time.Millisecond

// Mark returns the mark of a path below the home.
func (h Dir) Mark(rel ...string) Mark {
	asked := time.Now() // first: a delay here must not make a fresh mark look old
	var st unix.Stat_t
	if unix.Lstat(h.Path(rel...), &st) != nil {
		return Mark{}
	}
	return Mark{
		dev: uint64(st.Dev), ino: st.Ino, mtime: st.Mtim.Nano(),
		fresh: asked.UnixNano()-st.Mtim.Nano() < int64(markStep), // also for a time in the future
	}
}

// Same reports whether nothing has changed between m and now, which was taken later. It
// returns false if that is uncertain: m was taken so soon after a change that another one
// may have left no trace.
func (m Mark) Same(now Mark) bool {
	return !m.fresh && m.dev == now.dev && m.ino == now.ino && m.mtime == now.mtime
}

// Exists reports whether the file existed.
func (m Mark) Exists() bool { return m.ino != 0 }

// Settled reports whether any later change will show in a later mark.
func (m Mark) Settled() bool { return !m.fresh }
