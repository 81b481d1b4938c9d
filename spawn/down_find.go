package spawn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/tmux"
)

// A target is an agent that is being ended, or the ticker.
type target struct {
	name string
	id   agent.ID   // "" for the ticker
	pane *tmux.Pane // nil: its session is gone, but processes of it remain
	kin  kin
	dead bool  // nothing in it can answer, so it is not asked
	deaf error // why no request can reach it; nil: one may
	req  string
	step DownStep
}

func (l *Ender) target(st Status) *target {
	start := st.Start
	if st.pane != nil {
		start = st.pane.Tags[TagStart]
	}
	return &target{name: string(st.Agent), id: st.Agent, pane: st.pane, kin: l.kinOf(st.Agent, st.pane, start), dead: !st.Alive(), deaf: l.deaf(st)}
}

// find lists what to end, in display order. If tmux can't show its sessions, keepers and
// programs are found by their records and ended as processes; tmux's error is still
// reported.
func (d *down) find(ctx context.Context) error {
	v, err := d.l.view(ctx)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		d.hidden = true
		d.errs = append(d.errs, fmt.Errorf("cannot list the tmux sessions: %w", err))
	}
	// Mailboxes that can't be listed must not keep agents running.
	states, ierr := d.l.inspect(v, err)
	if ierr != nil && err == nil {
		d.warn("", ierr)
	}
	pick := func(id agent.ID) bool {
		if len(d.o.Agents) > 0 {
			return slices.Contains(d.o.Agents, id)
		}
		return id != agent.Infinity || d.o.All
	}
	for _, id := range d.o.Agents {
		if other := v.foreign[string(id)]; other != nil {
			d.errs = append(d.errs, fmt.Errorf("%w; not ended", other))
		}
	}
	var dead Statuses
	var lost []*target // without a session; processes may remain
	for _, st := range states {
		if !pick(st.Agent) {
			continue
		}
		if st.Died() && !d.o.Restart { // of a restart, it has ended as it was asked to
			if d.locked && st.Lost {
				_, err := d.l.noteLost(st.Agent, st.Start)
				d.warn(st.Agent, err)
			}
			dead = append(dead, st)
		}
		if !d.o.Restart && !d.l.settledDown(st) {
			d.wanted = append(d.wanted, st.Agent)
		}
		t := d.l.target(st)
		if t.pane != nil {
			d.targets = append(d.targets, t)
		} else if st.Start != "" {
			// A program whose session has gone is on its way out.
			t.dead = err == nil && !d.l.elsewhere(st.socket) || !t.kin.program.Alive()
			lost = append(lost, t)
		}
	}
	d.l.recordDeaths(ctx, dead, states.together()) // before this down is taken for their cause
	if err := d.addLost(lost); err != nil {
		return err
	}
	if d.o.All {
		d.findTicker(ctx, v)
	}
	return nil
}

// settledDown reports whether the agent is down and nothing wants it up, so that its
// desired state, which shows since when it is down, is left alone.
func (l *Site) settledDown(st Status) bool {
	if st.State != agent.Down || st.Wanted || st.pane != nil {
		return false
	}
	_, err := home.Desired(l.Home).Load(string(st.Agent))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// findTicker adds the ticker: that of the session, the one that its file names if that is
// another, and those on servers configured earlier.
func (d *down) findTicker(ctx context.Context, v view) {
	var known []proc.Process
	add := func(p proc.Process, pane *tmux.Pane) {
		if pane == nil && (!p.Alive() || slices.Contains(known, p)) {
			return
		}
		known = append(known, p)
		d.targets = append(d.targets, &target{name: TickerSession, pane: pane, kin: kin{keeper: p}, dead: true})
	}
	if v.ticker != nil {
		p, _ := proc.Find(v.ticker.PID)
		add(p, v.ticker)
	}
	if t, err := d.l.Home.LoadTicker(); err == nil {
		add(t.Process, nil)
	}
	if d.hidden {
		return
	}
	for _, server := range d.l.servers()[1:] {
		panes, err := server.Panes(ctx)
		d.warn("", err)
		for _, q := range panes {
			if q.Session == TickerSession && q.Tags[TagHome] == d.l.Home.Root() {
				p, _ := proc.Find(q.PID)
				add(p, nil)
			}
		}
	}
}

// addLost adds the agents whose processes have outlived their session, or whose session
// can't be seen.
func (d *down) addLost(lost []*target) error {
	var list []kin
	for _, t := range lost {
		list = append(list, t.kin)
	}
	left, err := below(list, d.l.spared())
	if err != nil {
		return err
	}
	for i, t := range lost {
		if len(left[i]) > 0 || t.kin.keeper.Alive() {
			d.targets = append(d.targets, t)
		}
	}
	slices.SortFunc(d.targets, func(a, b *target) int { return agent.Compare(a.id, b.id) })
	return nil
}
