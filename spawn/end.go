package spawn

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/tmux"
)

// endGrace is the time between TERM and KILL.
const endGrace = 2 * time.Second

// kin are the processes of one start: the keeper in its pane, everything below it, and
// every process that carries the start's mark.
type kin struct {
	id      agent.ID     // "" for the ticker, which has no keeper
	keeper  proc.Process // the pane's own; zero if unknown
	program proc.Process // from the keeper's record
	start   string       // "" if it has no start
}

// kinOf returns the kin of a start. pane is its session's, or nil if there is none or it
// can't be seen: then the keeper's record names the keeper.
func (l *Ender) kinOf(id agent.ID, pane *tmux.Pane, start string) kin {
	k := kin{id: id, start: start}
	if rec, err := l.Home.LoadKeeper(id); id != "" && err == nil && rec.Start == start && start != "" {
		k.keeper, k.program = rec.Own, rec.Process
	}
	// If the keeper's pane is gone, the remaining one is a person's.
	if pane != nil && !k.keeper.Named() {
		k.keeper, _ = proc.Find(pane.PID) // gone already: no kin below it
	}
	return k
}

// families returns what to look for. A keeper that has died meanwhile is not looked for by
// number: the number may have been reused.
func families(list []kin) []proc.Family {
	f := make([]proc.Family, len(list))
	for i, k := range list {
		switch {
		case k.keeper.Alive():
			f[i].PID = k.keeper.PID
		case k.program.Alive():
			f[i].PID = k.program.PID
		}
		if k.start != "" {
			f[i].Mark = mark(k.start)
		}
	}
	return f
}

// below lists the live processes of each kin, without the keepers.
func below(list []kin, keep []int) ([][]proc.Process, error) {
	kept, err := proc.Families(families(list), keep...)
	if err != nil {
		return make([][]proc.Process, len(list)), err
	}
	for i, k := range list {
		// A program whose keeper has died is the root of its family.
		if k.program.Alive() && !slices.Contains(kept[i], k.program) && !slices.Contains(keep, k.program.PID) {
			kept[i] = append([]proc.Process{k.program}, kept[i]...)
		}
	}
	return kept, nil
}

// spared lists the processes that ending an agent never touches, with all their children:
// this one, and the daemon and who restarts it, even if an agent started them.
func (l *Ender) spared() []int {
	keep := []int{os.Getpid()}
	for _, p := range l.services() {
		keep = append(keep, p.PID)
	}
	return keep
}

// services lists the daemon and whoever restarts it.
func (l *Ender) services() (list []proc.Process) {
	for _, lock := range []string{home.DaemonLock, home.SelfLock} {
		if who, ok := l.Home.LockHolder(lock); ok && who.Named() {
			list = append(list, who.Process)
		}
	}
	return list
}

// end ends sessions and kin. It returns those of each kin that survive; err is from tmux
// or from listing processes, and stopped nothing else. unfiled holds, for each kin, why
// the proof that nothing is left could not be recorded.
//
// Keepers are ended last. As long as one lives, everything its program started is found
// below it, even if it left the session: so when nothing is found, nothing is left.
func (l *Ender) end(ctx context.Context, panes []tmux.Pane, list []kin) (left [][]proc.Process, unfiled []error, err error) {
	keep := l.spared()
	left = make([][]proc.Process, len(list))
	err = l.endBelow(ctx, list, left, keep)
	err = errors.Join(err, l.kill(ctx, panes))
	keepers := make([]proc.Process, 0, len(list))
	for _, k := range list {
		if k.keeper.Alive() && !slices.Contains(keep, k.keeper.PID) {
			keepers = append(keepers, k.keeper)
		}
	}
	living := proc.End(ctx, keepers, endGrace)
	for i, k := range list {
		if slices.Contains(living, k.keeper) {
			left[i] = append(left[i], k.keeper)
		}
	}
	// Processes that were not below a keeper, and those started meanwhile.
	err = errors.Join(err, l.endBelow(ctx, list, left, keep))
	unfiled = make([]error, len(list))
	for i, k := range list {
		if len(left[i]) == 0 {
			unfiled[i] = l.file(k)
		}
	}
	return left, unfiled, err
}

// endBelow ends the processes below the keepers and those that carry the starts' marks, in
// up to three rounds: what one starts while the list is made is in the next. Processes
// that survive are added to left. For each living keeper with nothing below it, that is
// recorded.
func (l *Ender) endBelow(ctx context.Context, list []kin, left [][]proc.Process, keep []int) error {
	for range 3 {
		kept, err := below(list, keep)
		if err != nil {
			return err
		}
		for i := range kept { // survivors were already waited for
			kept[i] = slices.DeleteFunc(kept[i], func(p proc.Process) bool { return slices.Contains(left[i], p) })
		}
		all := slices.Concat(kept...)
		if len(all) == 0 {
			for i, k := range list {
				if len(left[i]) == 0 {
					l.cleared(k)
				}
			}
			return nil
		}
		for i, k := range list {
			if k.program.Named() && slices.Contains(kept[i], k.program) {
				// As the end of its terminal would: a shell ignores the other signals.
				_ = k.program.Signal(unix.SIGHUP)
			}
		}
		living := proc.End(ctx, all, endGrace)
		for i := range kept {
			for _, p := range kept[i] {
				if slices.Contains(living, p) {
					left[i] = append(left[i], p)
				}
			}
		}
	}
	return nil
}

// cleared notes that only the keeper of a start is left. A keeper whose program has not
// started yet may still start it.
func (l *Ender) cleared(k kin) {
	if !proc.Reaps || k.id == "" || !k.keeper.Alive() {
		return
	}
	rec, err := l.Home.LoadKeeper(k.id)
	known := err == nil && rec.Start == k.start
	if !k.program.Gone() && !(known && (rec.EndedMS != 0 || rec.Process.Gone())) {
		return
	}
	l.proofs.Store(k.start, true)
	if known && rec.EndedMS != 0 { // else the keeper is about to write
		rec.ClearedMS = time.Now().UnixMilli()
		_ = l.Home.SaveKeeper(k.id, rec) // the keeper records it too, and file checks
	}
}

// file records what cleared has noted of a start if its keeper, which has ended, did not.
func (l *Ender) file(k kin) error {
	if _, ok := l.proofs.Load(k.start); !ok {
		return nil
	}
	rec, err := l.Home.LoadKeeper(k.id)
	if err != nil || rec.Start != k.start || rec.ClearedMS != 0 || rec.Own.Alive() {
		return err
	}
	rec.ClearedMS = time.Now().UnixMilli()
	return l.Home.SaveKeeper(k.id, rec)
}

func (l *Ender) kill(ctx context.Context, panes []tmux.Pane) error {
	if len(panes) == 0 {
		return nil
	}
	defer l.Quiet(ctx)()
	return l.Tmux.Kill(ctx, panes...)
}

// clear records how the agents to be replaced ended, and ends what is left of them: the
// keeper that shows the last lines, and processes that outlived the program and might
// still hold its mailbox. together is as in recordDeaths.
func (l *Ender) clear(ctx context.Context, list Statuses, together bool) error {
	var gone []*target
	for _, st := range list {
		if st.Start != "" || st.pane != nil { // else it was never started
			gone = append(gone, l.target(st))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	l.recordDeaths(ctx, list, together)
	d := down{l: l, replaced: true}
	return d.now(ctx, gone...)
}
