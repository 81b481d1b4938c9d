package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
)

// The time a step waits for space before it is retried.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// durable takes a step that must be on disk before the next one. While the system
// refuses it, for lack of space or because a directory can't be used, it waits and
// reports that once: nobody else could finish the message any better. Retrying a step
// must do no harm.
func (d *demo) durable(ctx context.Context, step func() error) error {
	said := "" // what to print when it is over
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := step()
		full := isOneOf(err, noRoom)
		if !full && !(isOneOf(err, refusals) && !isOneOf(err, verdicts)) {
			if said != "" {
				d.pane.note(said)
			}
			return err
		}
		switch {
		case said != "":
		case full:
			d.pane.note(fmt.Sprintf("no room: %v; waiting", err))
			said = "there is room again"
		default:
			d.pane.note(fmt.Sprintf("cannot continue: %v; waiting until that is fixed", err))
			said = "that is fixed"
		}
		if err := proc.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

var (
	// noRoom passes when there is room again: on the disk, within a quota or a size
	// limit, or among open files.
	noRoom = []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EMFILE, unix.ENFILE}
	// refusals pass when somebody has repaired the cause.
	refusals = []error{unix.EACCES, unix.EPERM, unix.EROFS, unix.EIO, unix.ENOTDIR, unix.EISDIR, home.ErrLink}
	// verdicts are the bus's refusals of an envelope.
	verdicts = []error{bus.ErrNoMailbox, bus.ErrNotAllowed, bus.ErrBrake, envelope.ErrInvalid}
)

func isOneOf(err error, list []error) bool {
	return slices.ContainsFunc(list, func(one error) bool { return errors.Is(err, one) })
}
