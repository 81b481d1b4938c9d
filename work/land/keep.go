package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/work/record"
	"netsky/work/tree"
)

const (
	cutOffEvery = 2 * time.Second // between looks whether a landing was cut off
	cutOffAgain = time.Minute     // until one that could not be settled is tried again
	tidyEvery   = time.Hour       // between looks at what else was left
)

// Keep settles, until ctx ends, what a netsky has left that was killed while it landed or checked work. A
// landing is settled within seconds, since its files may be where the owner works; the owner is told, once for each
// reason, of one that can't be. What happens is said once. It returns nil.
func (d Desk) Keep(ctx context.Context) error {
	var said []string
	report := d.Say
	d.Say = func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	tick := time.NewTicker(cutOffEvery)
	defer tick.Stop()
	var next, tidy time.Time
	last := ""
	for {
		_, cut := CutOff(d.Home)
		if now := time.Now(); cut && now.After(next) || now.After(tidy) {
			said = nil
			d.Recover(ctx)
			tidy = time.Now().Add(tidyEvery)
			text := strings.Join(said, "\n")
			if text != "" && text != last && report != nil {
				report("%s", text)
			}
			last = text
			if l, still := CutOff(d.Home); still && text != "" { // otherwise a git of that landing still runs
				next = time.Now().Add(cutOffAgain)
				if err := d.Tell(agent.Owner, "cut-off-"+envelope.Digest(l.ID, text), unsettled+text); err != nil && report != nil {
					report("%v", err)
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

const unsettled = "netsky was killed while it moved a branch, and what that has left can't be settled yet. Nothing lands before it is; netsky tries again each minute.\n"

// Recover finishes what a killed netsky has left: it says of a landing whether the ref has moved,
// removes scratch worktrees, and ends the records of checks that run no more. While another
// netsky lands, that is left to it. What it can't decide yet, it says, and leaves.
func (d Desk) Recover(ctx context.Context) {
	lock, err := d.Home.Lock(home.LandingLock)
	if err == nil {
		j := journal{d, lock}
		err = errors.Join(j.recover(ctx), j.pushes(ctx), lock.Unlock())
	} else if errors.Is(err, home.ErrLocked) {
		err = nil
	}
	if err = errors.Join(err, d.tidy(ctx)); err != nil {
		d.say("%v", err)
	}
}

// tidy removes what killed checks have left.
func (d Desk) tidy(ctx context.Context) error {
	err := tree.Sweep(ctx, d.Home)
	return errors.Join(err, d.records(ctx, func(r record.Records) error {
		list, err := r.Checks(ctx, record.Filter{State: record.Running, Limit: 1000})
		for _, k := range list {
			if _, serr := os.Lstat(d.Home.Path(tree.ScratchDir, k.ID)); errors.Is(serr, fs.ErrNotExist) {
				k.State, k.Reason = record.Broken, "netsky was killed while it ran"
				d.record(ctx, record.SetCheck(k))
			}
		}
		return err
	}))
}
