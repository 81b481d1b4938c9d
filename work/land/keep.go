package land

import (
	"context"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
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
