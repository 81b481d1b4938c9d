package proc

import "time"

// SetBack reports whether the clock was set back between two readings of time.Now in this
// process, by a tenth of a second or more.
func SetBack(from, to time.Time) bool {
	return to.Round(0).Sub(from.Round(0)) < to.Sub(from)-100*time.Millisecond // Round strips the monotonic reading
}
