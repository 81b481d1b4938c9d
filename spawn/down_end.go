package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
	"netsky/tmux"
)

// closeServers ends the hub's session, which a killed daemon leaves and which keeps a server alive, on the
// configured server and on those that agents were started on before. It skips a tmux that has just failed
// to answer. The socket that this home's own server leaves is removed; a configured one may be anybody's.
func (d *down) closeServers(ctx context.Context) {
	if d.hidden {
		return
	}
	defer d.l.Quiet(ctx)()
	for _, server := range d.l.servers() {
		d.errs = append(d.errs, server.CloseHub(ctx, HubSession))
		// One that another had taken the socket from can be reached once that has exited.
		for range server.Unreachable(ctx) {
			d.errs = append(d.errs, server.CloseHub(ctx, HubSession))
		}
		if server.Socket == d.l.Home.TmuxSocket() {
			d.warn("", server.Sweep(ctx))
		}
	}
}

// end ends sessions and all their processes, in batches, because each agent takes
// descriptors and tmux's time. The error says why it may have missed some of them.
func (d *down) end(ctx context.Context, list []*target) (missed error) {
	for batch := range slices.Chunk(list, d.l.atOnce()) {
		missed = errors.Join(missed, d.endBatch(ctx, batch))
	}
	return missed
}

func (d *down) endBatch(ctx context.Context, list []*target) (missed error) {
	var panes []tmux.Pane
	var all []kin
	for _, t := range list {
		if t.pane != nil && !d.hidden {
			panes = append(panes, *t.pane)
		}
		all = append(all, t.kin)
	}
	stop := late(func() { d.warn("", errors.New("still waiting for tmux or for processes to end")) })
	left, unfiled, err := d.l.end(ctx, panes, all)
	stop()
	still := make(map[string]bool) // sessions, by id
	if err != nil {
		serr := err
		if !errors.Is(err, tmux.ErrUnanswered) {
			still, serr = d.still(ctx, panes)
		}
		if serr != nil {
			// A session ends by itself once its processes have. A server that did not answer
			// now is not asked about the others.
			d.hidden = true
			d.errs = append(d.errs, fmt.Errorf("cannot confirm that the sessions have ended: %w", err))
			err = nil
		}
	}
	for i, t := range list {
		var errs []error
		if t.pane != nil && still[t.pane.SessionID] {
			errs = append(errs, err)
		}
		for _, p := range left[i] {
			errs = append(errs, stays(p))
		}
		if len(errs) > 0 {
			d.say(t, DownFailed, errors.Join(errs...))
			continue
		}
		how := t.step
		d.say(t, DownEnded, nil)
		if t.id == "" || d.replaced {
			continue
		}
		if unfiled[i] != nil {
			d.errs = append(d.errs, fmt.Errorf("%s: ended with nothing left running, but that could not be recorded, so a later --verify can't confirm it: %w", t.name, unfiled[i]))
		}
		d.recordEnd(ctx, t, how)
	}
	if len(still) > 0 {
		return nil
	}
	return err
}

// still reports which of the sessions exist after an end that met an error.
func (d *down) still(ctx context.Context, list []tmux.Pane) (map[string]bool, error) {
	there := make(map[string]bool)
	panes, err := d.l.Tmux.Panes(ctx)
	if err != nil {
		return nil, err
	}
	now := make(map[string]bool, len(panes))
	for _, p := range panes {
		now[p.Server+" "+p.SessionID] = true
	}
	for _, t := range list {
		if now[t.Server+" "+t.SessionID] {
			there[t.SessionID] = true
		}
	}
	return there, nil
}

// deaf reports why the agent can't be asked to finish, or nil: its program takes no
// requests, or no receiver holds its mailbox although it has had the time to take it.
func (l *Site) deaf(st Status) error {
	if !st.Alive() {
		return nil
	}
	if st.Silent {
		return errSilent(st.Runtime)
	}
	if _, held := l.Home.LockHolder(home.ReceiverLock(st.Agent)); held {
		return nil
	}
	la, err := l.Home.LoadLaunch(st.Agent)
	if err != nil || time.Since(time.UnixMilli(la.StartedMS)) < startGrace {
		return nil
	}
	return errNobody
}

func stays(p proc.Process) error { return fmt.Errorf("process %d did not end", p.PID) }

func (d *down) recordEnd(ctx context.Context, t *target, how DownStep) {
	reason, desired := "forced", store.DesiredDown
	switch {
	case d.why != "":
		reason = d.why
	case t.dead:
		reason = "was dead"
	case how != "":
		reason = cmp.Or(downReasons[how], string(how))
	}
	if reason = d.o.verb() + ": " + reason; d.o.Restart {
		desired = "" // as it was
	}
	d.l.record(ctx,
		store.EndSession{Start: t.kin.start, Actor: t.id, State: agent.Down, Reason: reason},
		store.UpsertActor{ID: t.id, Role: t.id.Role(), Desired: desired},
		store.AddLog{Part: d.o.verb(), Actor: t.id, About: t.kin.start, Text: reason + d.by()},
	)
}
