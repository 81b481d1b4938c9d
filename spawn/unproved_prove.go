package spawn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

// provePause lets short-lived processes end, such as a program in tmux's status line.
const provePause = 50 * time.Millisecond

// prove looks for processes that could belong to the agents' unproved starts, and removes
// the notes of starts without any. The lock up is held.
func (l *Ender) prove(ids ...agent.ID) {
	var open []Remnant
	for _, id := range ids {
		starts, err := l.starts(id)
		if err != nil {
			continue
		}
		for _, s := range starts {
			if proc.Reaps && s.Above.Space != "" && s.Keeper.Gone() {
				open = append(open, Remnant{Agent: id, start: s})
			}
		}
	}
	for try := 0; try < 3 && len(open) > 0; try++ {
		if try > 0 {
			time.Sleep(provePause)
		}
		var list []proc.Descent
		for _, r := range open {
			list = append(list, r.start.descent())
		}
		// Twice: a process that starts another and ends while the table is read may hide
		// both once, but not from a second reading.
		ours := l.ours()
		first, err := proc.Survivors(list, ours...)
		if err != nil {
			return
		}
		second, err := proc.Survivors(list, ours...)
		if err != nil {
			return
		}
		var rest []Remnant
		for i, r := range open {
			if len(first[i])+len(second[i]) > 0 {
				rest = append(rest, r)
			} else {
				_ = l.settle(r.Agent, r.start, "")
			}
		}
		open = rest
	}
}

// Prove checks again whether anything of the unproved starts can run, and removes the
// notes of those of which nothing can.
func (l *Ender) Prove(ctx context.Context) error {
	lock, err := l.waitUp(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	kept, err := l.kept()
	l.prove(kept...)
	return err
}

// waitUp waits briefly for a running up or down.
func (l *Ender) waitUp(ctx context.Context) (*home.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return l.Home.WaitLock(ctx, home.UpLock, nil)
}

// hubWithin is how long tmux may take to list the hubs' processes.
const hubWithin = time.Second

// ours lists the processes that are netsky's own and not an agent's: the daemon, who restarts it, the
// ticker, the hubs' own and living keepers. Their children belong to no unproved start.
func (l *Ender) ours() (list []proc.Process) {
	list = l.services()
	if t, err := l.Home.LoadTicker(); err == nil && t.Named() {
		list = append(list, t.Process)
	}
	// A process missing here is at most a suspect.
	within, cancel := context.WithTimeout(context.Background(), hubWithin)
	defer cancel()
	for _, server := range l.servers() {
		if pid, err := server.HubProcess(within, HubSession); err == nil {
			if p, err := proc.Find(pid); err == nil {
				list = append(list, p)
			}
		}
	}
	kept, _ := l.kept()
	for _, id := range kept {
		if rec, err := l.Home.LoadKeeper(id); err == nil && rec.Own.Alive() {
			list = append(list, rec.Own)
		}
	}
	return list
}

// settle records that nothing of a start runs; by is who vouches for that, "" if it is proved.
func (l *Ender) settle(id agent.ID, s unprovedStart, by agent.ID) error {
	list, err := l.carried(id)
	same := func(o unprovedStart) bool { return o.Start == s.Start && o.StartedMS == s.StartedMS }
	if err == nil && slices.ContainsFunc(list, same) {
		err = l.saveCarried(id, slices.DeleteFunc(list, same))
		if err != nil {
			return err
		}
	}
	if !s.last {
		return err
	}
	rec, err := l.Home.LoadKeeper(id)
	switch {
	case err != nil:
		rec = agent.Keeper{Start: s.Start, StartedMS: s.StartedMS}
	case rec.Start != s.Start:
		return nil
	}
	rec.ClearedMS, rec.ClearedBy = time.Now().UnixMilli(), by
	return l.Home.SaveKeeper(id, rec)
}

// Suspects lists the processes that could belong to the listed unproved starts, as
// returned by Unproved, parents before their children. If the system does not reveal that,
// it lists all of this user's processes that are young enough and not known to be
// netsky's.
func (l *Ender) Suspects(list []Remnant) ([]proc.Process, error) {
	var found []proc.Process
	add := func(more []proc.Process) {
		for _, p := range more {
			if !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	ours := l.ours()
	for _, r := range list {
		if left, err := proc.Survivors([]proc.Descent{r.start.descent()}, ours...); err == nil {
			add(left[0])
			continue
		}
		young, err := proc.Since(r.Since, ours...)
		if err != nil {
			return found, err
		}
		add(young)
	}
	return found, nil
}

// Likely splits suspects into those that may be of the listed starts and those that show no sign of it: whose
// environment is an ordinary one of this user's that never had netsky's variables, or that are in other control groups
// than the keeper was. What an agent has robbed of those variables, and of nothing else, is among the latter.
func (l *Ender) Likely(notes []Remnant, list []proc.Process) (may, rest []proc.Process) {
	names := make(map[string]bool)
	groups, told := make(map[string]bool), true
	for _, n := range notes {
		la, err := l.Home.LoadLaunch(n.Agent)
		if err != nil || len(la.Env) == 0 {
			la.Env = l.Environ
		}
		for _, v := range la.Env {
			if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "NETSKY_") && !marks(v) {
				names[name] = true
			}
		}
		group := n.start.Above.Cgroup
		groups[group], told = true, told && group != ""
	}
	for _, p := range list {
		env, group := p.Environ(), p.Cgroup()
		same := 0
		for _, v := range env {
			if name, _, _ := strings.Cut(v, "="); names[name] {
				same++
			}
		}
		switch {
		case slices.ContainsFunc(env, marks), strings.HasPrefix(p.Dir()+"/", l.Home.Root()+"/"):
			may = append(may, p)
		case told && group != "" && !groups[group], len(env) > 0 && same > 3 && 2*same >= len(names):
			rest = append(rest, p)
		default:
			may = append(may, p)
		}
	}
	return may, rest
}

// marks reports whether a variable is one that only what an agent has started has. The home an owner may name for all.
func marks(v string) bool {
	return strings.HasPrefix(v, "NETSKY_START=") || strings.HasPrefix(v, "AGENT_N=") && v != "AGENT_N="
}

// TakeWord removes the listed notes because somebody has checked that nothing of those
// starts runs, and records who. It ends nothing. A note that is not listed stays, and so
// does that of a running start.
func (l *Ender) TakeWord(ctx context.Context, list []Remnant, by agent.ID) error {
	lock, err := l.waitUp(ctx)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	states, err := l.Inspect(ctx)
	if err != nil { // an unknown process may run
		return err
	}
	takeWord := func(r Remnant) error {
		starts, err := l.starts(r.Agent)
		i := slices.IndexFunc(starts, func(s unprovedStart) bool {
			return s.Start == r.Start && time.UnixMilli(s.StartedMS).Equal(r.Since)
		})
		st := states.Find(r.Agent)
		switch {
		case r.Agent == "":
			return fmt.Errorf("%s: cannot be confirmed by hand", r.What)
		case err != nil && r.Earlier:
			err = l.Home.Remove(unprovedFile(r.Agent))
		case i < 0:
			err = nil // it is settled
		case starts[i].last && (st.Alive() || st.pane != nil):
			err = fmt.Errorf("is %s under that start", st.State)
		default:
			err = l.settle(r.Agent, starts[i], by)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Agent, err)
		}
		l.record(ctx, store.AddLog{
			Level: store.LevelWarn, Part: "forget", Actor: r.Agent, About: r.Start,
			Text: fmt.Sprintf("%s confirmed that nothing of it runs, without proof: %s", by, r.What),
		})
		return nil
	}
	var errs []error
	for _, r := range list {
		errs = append(errs, takeWord(r))
	}
	return errors.Join(errs...)
}
