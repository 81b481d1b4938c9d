package spawn

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"netsky/agent"
	"netsky/spawn/keeper"
	"netsky/store"
	"netsky/tmux"
)

// endGrace is the time from TERM to KILL.
const endGrace = 2 * time.Second

// kin are the processes of one start: the pane's own, all below it, and those
// that carry the start's mark wherever they hang.
type kin struct {
	pane  agent.Process // zero if there is none
	start string        // "" if it has no start
}

// kinOf names the kin of a start whose session is there, or nil.
func kinOf(pane *tmux.Pane, start string) kin {
	k := kin{start: start}
	if pane != nil {
		k.pane, _ = agent.FindProcess(pane.PID) // gone already: no kin below it
	}
	return k
}

// families is what to look for. A pane's process that has died meanwhile is not
// looked for by its number, which may be another's by now.
func families(list []kin) []agent.Family {
	f := make([]agent.Family, len(list))
	for i, k := range list {
		if k.pane.Alive() {
			f[i].PID = k.pane.PID
		}
		if k.start != "" {
			f[i].Mark = mark(k.start)
		}
	}
	return f
}

// spared are the processes that no ending of an agent touches, with all below
// them: this one, the daemon, even when an agent started it, and keep.
func (l *Launcher) spared(keep []int) []int {
	keep = append([]int{os.Getpid()}, keep...)
	if who, ok := l.Home.LockHolder(agent.DaemonName); ok && who.Named() {
		keep = append(keep, who.PID)
	}
	return keep
}

// end ends sessions and kin. It returns those of each kin that live on; the
// error is tmux's or that of listing processes, and stopped nothing else.
func (l *Launcher) end(ctx context.Context, panes []tmux.Pane, list []kin, keep []int) (left [][]agent.Process, err error) {
	keep = l.spared(keep)
	kept, err := agent.Families(families(list), keep...)
	if err != nil {
		kept = make([][]agent.Process, len(list))
	}
	for i, k := range list {
		// The keeper too: what it writes last must not meet the next start.
		if k.pane.Alive() && !slices.Contains(keep, k.pane.PID) {
			kept[i] = append([]agent.Process{k.pane}, kept[i]...)
		}
	}
	err = errors.Join(err, l.kill(ctx, panes))
	left = make([][]agent.Process, len(list))
	// Twice more for what was started while the list was made.
	for range 3 {
		all := slices.Concat(kept...)
		if len(all) == 0 {
			break
		}
		living := keeper.End(ctx, all, endGrace)
		for i := range kept {
			for _, p := range kept[i] {
				if slices.Contains(living, p) && !slices.Contains(left[i], p) {
					left[i] = append(left[i], p)
				}
			}
		}
		var lerr error
		if kept, lerr = agent.Families(families(list), keep...); lerr != nil {
			return left, errors.Join(err, lerr)
		}
		for i := range kept { // what does not end was waited for once
			kept[i] = slices.DeleteFunc(kept[i], func(p agent.Process) bool { return slices.Contains(left[i], p) })
		}
	}
	return left, err
}

func (l *Launcher) kill(ctx context.Context, panes []tmux.Pane) error {
	if len(panes) == 0 {
		return nil
	}
	defer l.Quiet(ctx)()
	return l.Tmux.Kill(ctx, panes...)
}

// clear puts down how the agents ended that are to be replaced, and ends what
// is left of them: the keeper that shows the last lines, and processes that
// outlived the program and might still hold its mailbox.
func (l *Launcher) clear(ctx context.Context, list Statuses) error {
	var panes []tmux.Pane
	var gone []kin
	for _, st := range list {
		if st.pane != nil {
			panes = append(panes, *st.pane)
		}
		if st.Start == "" && st.pane == nil {
			continue // never started
		}
		gone = append(gone, kinOf(st.pane, st.Start))
		if st.State == agent.Dead {
			end, log := l.Death(ctx, st)
			ops := []store.Op{end}
			if st.pane != nil { // else all sessions may have gone at once, which is one event
				ops = append(ops, log)
			}
			l.record(ctx, ops...)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	left, err := l.end(ctx, panes, gone, nil)
	for _, p := range slices.Concat(left...) {
		err = errors.Join(err, stays(p))
	}
	return err
}
