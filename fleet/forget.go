package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/words"
	"netsky/spawn"
)

// A ForgetRequest asks for agents that are down to be removed from status, with the notes that something
// of them may still run.
type ForgetRequest struct {
	Agents   []agent.ID `json:"agents,omitempty"`
	Unproved bool       `json:"unproved,omitempty"` // only the notes, of all agents if none is named
	All      bool       `json:"all,omitempty"`      // list also the processes that show no sign of netsky
	Yes      bool       `json:"yes,omitempty"`      // the owner has looked, and nothing of it is left
}

// A ForgetResult is what a Forget did.
type ForgetResult struct {
	Forgotten []agent.ID `json:"forgotten"` // that are not in status any more
	Cleared   []agent.ID `json:"cleared"`   // whose notes are removed
}

// A forgetter carries out one Forget.
type forgetter struct {
	*Fleet
	ForgetRequest
	ctx    context.Context
	result ForgetResult
}

// Forget removes agents from status, and nothing else of them. Only the owner's word removes a note.
func (f *Fleet) Forget(ctx context.Context, r ForgetRequest) (ForgetResult, error) {
	g := &forgetter{Fleet: f, ForgetRequest: r, ctx: ctx}
	err := g.run()
	return g.result, err
}

func (f *forgetter) run() error {
	if err := f.May("forget"); err != nil {
		return err
	}
	if len(f.Agents) == 0 && !f.Unproved {
		return usagef("forget: needs an agent that is down; `netsky status` lists them")
	}
	if f.Unproved {
		if err := f.May("forget --unproved"); err != nil {
			return err
		}
	}
	notes, err := f.unproved()
	if err != nil {
		return err
	}
	if !proc.Reaps && !f.Unproved { // on this system every ended agent has such a note
		notes = nil
	}
	switch {
	case len(notes) > 0 && f.Actor == agent.Owner:
		if err := f.takeWord(notes); err != nil {
			return err
		}
	case len(notes) > 0:
		for _, r := range notes {
			f.warn("not proved: %s", r.What)
		}
		f.warn("the note stays: only the owner can remove it")
	case f.Unproved:
		f.say("nothing to forget: there is no such note")
	}
	if f.Unproved {
		return nil
	}
	return f.offStatus(notes)
}

// unproved returns the notes about these agents, or about all if none are named,
// after checking whether they still apply.
func (f *forgetter) unproved() ([]spawn.Remnant, error) {
	of := func() []spawn.Remnant {
		return slices.DeleteFunc(f.Launcher.Unproved(), func(r spawn.Remnant) bool { return len(f.Agents) > 0 && !slices.Contains(f.Agents, r.Agent) })
	}
	before := of()
	if len(before) == 0 { // and nothing is created in a home that does not exist
		return nil, nil
	}
	if err := f.Launcher.Prove(f.ctx); err != nil {
		return nil, err
	}
	rest := of()
	if len(rest) < len(before) {
		f.say("%d of %d unproved ends are proved now: no process is left that could belong to them", len(before)-len(rest), len(before))
	}
	return rest, nil
}

// offStatus removes the agents from status that are down. One that is not is an
// error, unless a note about it was removed.
func (f *forgetter) offStatus(removed []spawn.Remnant) error {
	list, err := f.Launcher.Inspect(f.ctx)
	if err != nil { // an agent may run unseen
		return err
	}
	var errs []error
	done := 0
	for _, id := range f.Agents {
		st := list.Find(id)
		switch {
		case !f.Launcher.Bus.Exists(id):
			errs = append(errs, fmt.Errorf("%s: was never started", id))
			continue
		case st.State != agent.Down || st.Wanted:
			if f.Actor == agent.Owner && slices.ContainsFunc(removed, func(r spawn.Remnant) bool { return r.Agent == id }) {
				f.say("%s: stays in status, because it is %s; `netsky down %s` ends it", id, st.State, id)
				done++
				continue
			}
			errs = append(errs, fmt.Errorf("%s: is %s; `netsky down %s` ends it", id, st.State, id))
			continue
		}
		if err := home.Desired(f.Home).Forget(id, string(f.Actor), st.Waiting()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
			continue
		}
		done++
		f.result.Forgotten = append(f.result.Forgotten, id)
		kept := "its mail stays in " + f.tilde(f.Home.Path(home.Mailbox(id)))
		if n := st.Waiting(); n > 0 {
			kept += fmt.Sprintf(" (%d unread)", n)
		}
		work := f.Home.Path(home.Workspace(id))
		if _, err := os.Lstat(work); err == nil {
			kept += ", its work in " + f.tilde(work)
		}
		f.say("%s: forgotten; %s; `netsky up %s` brings it back", id, kept, id)
	}
	err = errors.Join(errs...)
	if err != nil && done > 0 {
		return partly(err)
	}
	return err
}

// takeWord prints what is not proved and the processes that could be left, and
// removes the notes if the owner confirms that none is.
func (f *forgetter) takeWord(notes []spawn.Remnant) error {
	for _, r := range notes {
		f.say("not proved: %s", r.What)
	}
	list, err := f.Launcher.Suspects(notes)
	switch {
	case err != nil:
		f.warn("can't list the processes that could be left: %v", err)
	case len(list) == 0:
		f.say("no process is left that could belong to it")
	default:
		f.listSuspects(notes, list)
	}
	if !f.Yes {
		answer, err := f.ask("Have you looked, and is nothing of it left? [y/N] ", usagef("forget: not a terminal; use --yes to confirm"), errors.New("forget: nothing was done"))
		if err == nil && !yes(answer) {
			err = errors.New("forget: nothing was done")
		}
		if err != nil {
			return err
		}
	}
	if err := f.Launcher.TakeWord(f.ctx, notes, agent.Owner); err != nil {
		return err
	}
	for _, id := range AgentsOf(notes) {
		f.result.Cleared = append(f.result.Cleared, id)
		f.say("%s: recorded that nothing of it is left, as you confirmed; `netsky log` shows it", id)
	}
	return nil
}

// listSuspects lists the processes that could be of unproved starts, and counts those that show no sign of it.
func (f *forgetter) listSuspects(notes []spawn.Remnant, list []proc.Process) {
	var rest []proc.Process
	if !f.All {
		list, rest = f.Launcher.Likely(notes, list)
	}
	var lines []string
	others := 0
	for _, p := range list {
		if home, ok := p.Env("NETSKY_HOME"); ok && f.Home.IsOther(home) {
			others++
			continue
		}
		began, err := p.Began()
		command := p.Command()
		if err != nil || command == "" { // gone meanwhile
			continue
		}
		lines = append(lines, fmt.Sprintf("  %7d  %s  %s", p.PID, began.Format(time.DateTime), words.Brief(command, 100)))
	}
	if len(lines) > 0 {
		f.say("these processes started since then and could belong to it:")
	} else {
		f.say("no process that started since then shows a sign of it")
	}
	for _, line := range words.First(lines) {
		f.say("%s", line)
	}
	if others > 0 {
		f.say("  and %d that belong to another netsky home, by the NETSKY_HOME in their environment", others)
	}
	if len(rest) > 0 {
		f.say("  and %d that show no sign of it, by their environment or control group; --all lists them", len(rest))
	}
}
