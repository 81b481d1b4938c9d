package spawn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

// A Remnant is something of this home that still runs.
type Remnant struct {
	What  string   // "tmux session agent1", "process 4711 of agent1"
	Agent agent.ID // "" if it belongs to none: the ticker, the hub
	PID   int

	// Set for what is not proved:
	Since   time.Time // when it may have begun
	Start   string    // the start id, "" if unknown
	Earlier bool      // the agent has been started again since then
	start   unprovedStart
}

// Remnants lists the sessions of this home and the processes that any recorded start left
// behind: keepers and programs by their records, others by their parents or their
// environment; this process and the daemon are none. With an error there may be more. Nothing is left if both this list and
// Unproved are empty.
func (l *Ender) Remnants(ctx context.Context) (list []Remnant, err error) {
	seen := make(map[int]bool)
	keep := l.spared()
	for _, pid := range keep {
		seen[pid] = true
	}
	add := func(what string, id agent.ID, pid int) {
		if !seen[pid] {
			seen[pid] = true
			list = append(list, Remnant{What: what, Agent: id, PID: pid})
		}
	}
	for _, server := range l.servers() {
		panes, perr := server.Panes(ctx)
		if perr != nil {
			err = errors.Join(err, fmt.Errorf("cannot list the sessions on tmux socket %s: %w", server.Socket, perr))
		}
		for _, p := range panes {
			if p.Tags[TagHome] == l.Home.Root() {
				id, _ := agent.Parse(p.Session) // "" for the ticker
				add("tmux session "+p.Session, id, p.PID)
			}
		}
		for _, p := range server.Unreachable(ctx) {
			add(fmt.Sprintf("tmux server, process %d, which does not listen at its socket %s", p.PID, server.Socket), "", p.PID)
		}
	}
	if t, terr := l.Home.LoadTicker(); terr == nil && t.Alive() {
		add(fmt.Sprintf("process %d, the ticker", t.PID), "", t.PID)
	}
	ids, ierr := l.ever()
	err = errors.Join(err, ierr)
	for _, id := range ids {
		k := kin{id: id}
		rec, rerr := l.Home.LoadKeeper(id)
		if rerr == nil {
			k.keeper, k.program, k.start = rec.Own, rec.Process, rec.Start
		}
		if la, lerr := l.Home.LoadLaunch(id); lerr == nil {
			k.start = la.Start
		}
		if k.keeper.Alive() {
			add(fmt.Sprintf("process %d, the keeper of %s", k.keeper.PID, id), id, k.keeper.PID)
		}
		procs, perr := below([]kin{k}, keep)
		if perr != nil {
			return list, errors.Join(err, perr)
		}
		for _, p := range procs[0] {
			add(fmt.Sprintf("process %d of %s", p.PID, id), id, p.PID)
		}
	}
	return list, err
}

// Strangers lists the sessions on this home's own tmux server that netsky did not start: whoever runs there can
// have made them, an agent as well. Nothing ends them. A configured server may be anybody's.
func (l *Ender) Strangers(ctx context.Context) (list []Remnant, err error) {
	if l.Tmux.Socket != l.Home.TmuxSocket() {
		return nil, nil
	}
	panes, err := l.Tmux.Panes(ctx)
	for _, p := range panes {
		if p.Tags[TagHome] != l.Home.Root() {
			what := fmt.Sprintf("tmux session %s is on netsky's own server, and netsky did not start it; `tmux -L %s attach -t =%[1]s` shows it", advice.Word(p.Session), l.Tmux.Socket)
			list = append(list, Remnant{What: what, PID: p.PID})
		}
	}
	return list, err
}

// NeverUp reports whether nothing was ever started in this home, nor is being started:
// there is nothing to end, and a down would leave files in it. With any doubt it is false.
func (l *Ender) NeverUp(ctx context.Context) bool {
	absent := func(err error) bool { return errors.Is(err, fs.ErrNotExist) }
	if _, err := home.Desired(l.Home).Load(agent.DaemonName); !absent(err) {
		return false
	}
	if _, err := l.Home.LoadTicker(); !absent(err) {
		return false
	}
	for _, name := range []string{home.UpLock, home.DaemonLock} {
		if _, held := l.Home.LockHolder(name); held {
			return false
		}
	}
	kept, err := l.kept()
	if err != nil || len(kept) > 0 || len(l.Unproved()) > 0 {
		return false
	}
	left, err := l.Remnants(ctx)
	if err != nil || len(left) > 0 {
		return false
	}
	list, err := l.Inspect(ctx)
	return err == nil && !slices.ContainsFunc(list, func(s Status) bool { return !l.settledDown(s) })
}

// booted returns when the machine was started; zero if unknown.
func booted() time.Time {
	t, err := proc.Booted()
	if err != nil {
		return time.Time{}
	}
	return t
}

// beforeBoot reports whether t is before the machine's start, which two clocks report
// slightly differently.
func beforeBoot(t time.Time) bool { return t.Before(booted().Add(-2 * time.Second)) }

// ever returns the kept agents and those with a mailbox, which shows that they exist even if their
// records are lost. With an error there may be more.
func (l *Ender) ever() ([]agent.ID, error) {
	ids, err := l.kept()
	boxes, berr := l.Bus.Mailboxes()
	if errors.Is(berr, fs.ErrNotExist) {
		berr = nil
	}
	for _, id := range boxes {
		if id.IsAgent() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	return ids, errors.Join(err, berr)
}
