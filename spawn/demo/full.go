package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
)

// How long a step waits for room before it is tried again.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// durable takes a step that must be on disk before the next one. While the system
// refuses it, as there is no room or a directory can't be used, it waits, and says
// so once: with mail in hand there is nobody who could go on better. A step that is
// tried again must do no harm.
func (d *demo) durable(ctx context.Context, step func() error) error {
	said := "" // what there is to say when it is over
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
			d.pane.note(fmt.Sprintf("no room: %v; waiting for some", err))
			said = "there is room again"
		default:
			d.pane.note(fmt.Sprintf("can't go on: %v; waiting until that is repaired", err))
			said = "it is repaired"
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

var (
	// noRoom passes when there is room again: on the disk, within a quota or a limit
	// of sizes, or among open files.
	noRoom = []error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG, unix.EMFILE, unix.ENFILE}
	// refusals pass when somebody has repaired what is there.
	refusals = []error{unix.EACCES, unix.EPERM, unix.EROFS, unix.EIO, unix.ENOTDIR, unix.EISDIR, home.ErrLink}
	// verdicts are the bus's word on an envelope.
	verdicts = []error{bus.ErrNoMailbox, bus.ErrNotAllowed, bus.ErrBrake, envelope.ErrInvalid}
)

func isOneOf(err error, list []error) bool {
	return slices.ContainsFunc(list, func(one error) bool { return errors.Is(err, one) })
}
