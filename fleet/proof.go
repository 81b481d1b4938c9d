package fleet

import (
	"errors"
	"fmt"
	"slices"

	"netsky/agent"
	"netsky/spawn"
)

// verify notes what is left, or that it is proved that nothing is.
func (d *downer) verify() error {
	left, err := d.Launcher.Remnants(d.ctx)
	if err != nil {
		err = fmt.Errorf("verify: %w", err)
	}
	left = d.of(left)
	for _, r := range left {
		d.note("still there: %s", r.What)
	}
	unproved := d.of(d.Launcher.Unproved())
	for _, r := range unproved {
		d.note("not proved: %s", r.What)
	}
	if len(unproved) > 0 {
		d.note("%s", unprovedHint(unproved))
	}
	strangers := 0
	if d.All {
		others, serr := d.Launcher.Strangers(d.ctx)
		for _, r := range others {
			d.note("not proved: %s", r.What)
		}
		strangers, err = len(others), errors.Join(err, serr)
	}
	if now := func(r spawn.Remnant) bool { return !r.Earlier }; err == nil && len(left) == 0 && len(unproved) > 0 && !slices.ContainsFunc(unproved, now) {
		d.note("their last starts are proved to have ended; this is about earlier ones")
	}
	unknown := fmt.Errorf("verify: %w", ErrNotProved)
	switch {
	case len(left) > 0:
		d.failed = true
		err = errors.Join(err, fmt.Errorf("verify: %d still there", len(left)))
	case len(unproved) > 0, strangers > 0:
		err = errors.Join(err, unknown)
	case err != nil:
		d.failed = true
		err = errors.Join(err, unknown)
	default:
		d.note("verified: nothing of them is left")
	}
	return err
}

// of returns those of the list that are of the agents that the down is about.
func (d *downer) of(list []spawn.Remnant) (rest []spawn.Remnant) {
	for _, r := range list {
		if d.All || slices.Contains(d.Agents, r.Agent) || len(d.Agents) == 0 && r.Agent != "" && r.Agent != agent.Infinity {
			rest = append(rest, r)
		}
	}
	return rest
}

// unprovedHint returns what can be done about starts whose end is not proved.
func unprovedHint(list []spawn.Remnant) string {
	command := "netsky forget --unproved"
	for _, id := range AgentsOf(list) {
		command += " " + string(id)
	}
	return "what detached itself may still run: `" + command + "` lists it, and takes your word that nothing is left"
}

// AgentsOf returns the agents that remnants are of, each once.
func AgentsOf(list []spawn.Remnant) (ids []agent.ID) {
	for _, r := range list {
		if r.Agent != "" && !slices.Contains(ids, r.Agent) {
			ids = append(ids, r.Agent)
		}
	}
	return ids
}
