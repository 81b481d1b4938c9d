package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
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

// A limit is what a vendor's limit would be: while it lasts no demo of this home answers.
// It is in state/demo/limit.json, so that it outlives the program, as a vendor's does.
type limit struct {
	Fault   agent.Fault `json:"fault"`
	SinceMS int64       `json:"since_ms"`
	EndMS   int64       `json:"end_ms"`
	Message string      `json:"message,omitempty"` // the one that asked for it
}

const limitFile = "state/demo/limit.json"

// account is the account of all demos.
const account = "demo"

// untold are the reasons whose end a vendor does not state.
const untold = "overloaded rate_limit network billing"

// limit makes a limit that ends after a time, and reports how it is now: a message that is
// handled once more after the end is answered.
func (d *demo) limit(q request, arg string) outcome {
	length, reason := split(arg)
	span, err := time.ParseDuration(length)
	f := agent.Fault{Reason: agent.Reason(strings.ReplaceAll(reason, " ", "_")), Account: account, Text: "the limit of /limit " + shorten(arg, 40)}
	if f.Reason == "" {
		f.Reason = agent.UsageLimit
	}
	stated := f.Reason == agent.UsageLimit
	if err != nil || span <= 0 || span > longest || !stated && !strings.Contains(untold, reason) {
		return outcome{failed: true, text: fmt.Sprintf("%s: not a time up to %s, then perhaps one of usage_limit %s", strings.TrimSpace("/limit "+shorten(arg, 40)), longest, untold)}
	}
	if l, err := home.Load[limit](d.Home, limitFile); err == nil && l.Message != "" && l.Message == q.mail.ID {
		return outcome{text: fmt.Sprintf("%s (demo): the limit of %s has passed", d.Agent, span)}
	}
	now := time.Now()
	end := now.Add(span).UnixMilli()
	if stated {
		f.UntilMS = end
	}
	if err := d.Home.Save(limitFile, limit{f, now.UnixMilli(), end, q.mail.ID}, true); err != nil {
		return outcome{failed: true, text: "/limit: " + err.Error()}
	}
	return outcome{fault: &f, text: f.String()}
}

// limited returns the limit that keeps messages from being answered now, or nil.
func (d *demo) limited() *agent.Fault {
	l, err := home.Load[limit](d.Home, limitFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil: // damaged: nobody is limited by it
		d.trouble("the limit", err)
		return nil
	}
	// One that has not begun is of another clock, which has been set back.
	if now := time.Now().UnixMilli(); l.EndMS <= now || l.SinceMS > now {
		return nil
	}
	return &l.Fault
}
