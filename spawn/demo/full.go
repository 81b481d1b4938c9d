package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// How long a step waits for room before it is tried again.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// durable takes a step that must be on disk before the next one. While there is
// no room it waits, and says so once: with mail in hand there is nobody who could
// go on better. A step that is tried again must do no harm.
func (d *demo) durable(ctx context.Context, step func() error) error {
	waited := false
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := step()
		if !noRoom(err) {
			if waited {
				d.pane.note("there is room again")
			}
			return err
		}
		if !waited {
			d.pane.note(fmt.Sprintf("no room: %v; waiting for some", err))
		}
		waited = true
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// noRoom reports whether an error passes when there is room again: on the disk,
// within a quota or a limit of sizes, or among open files.
func noRoom(err error) bool {
	for _, full := range []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}
