package bus

import (
	"errors"
	"time"

	"netsky/bus/mailbox"

	"golang.org/x/sys/unix"
)

const (
	restTime       = time.Second      // an invalid file that has not changed for this long is judged
	unfinishedRest = 10 * time.Second // the same for one that may still be growing
)

// early returns for how long an invalid letter is still left alone, 0 if it may be judged.
// The file's time counts; if the clock contradicts it, our own observation does. A file
// that is open for writing is never judged.
func (l *letter) early(dir int, now time.Time) time.Duration {
	rest := restTime
	var odd mailbox.OddError
	var part unfinishedError
	switch {
	case errors.As(l.bad, &odd):
		return 0
	case errors.Is(l.bad, mailbox.ErrGrowing):
		return restTime
	case errors.As(l.bad, &part):
		rest = unfinishedRest
	}
	since := now.Sub(l.since)
	if l.mark.MTime != 0 {
		since = max(since, time.Duration(now.UnixNano()-l.mark.MTime))
	}
	if since < rest {
		return rest - since
	}
	if beingWritten(dir, l.name) {
		return lookAgain
	}
	return 0
}

// beingWritten reports whether a process has the file open for writing, as far as the
// system reveals that.
func beingWritten(dir int, name string) bool {
	fd, err := mailbox.Open(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|mailbox.NoAtime)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return mailbox.HasWriter(fd)
}
