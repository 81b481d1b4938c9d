package spawn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/proc"
	"netsky/store"
)

// Unproved lists the agents, and the starts of them, of which nobody can say that
// nothing runs any more: their keepers ended without having seen that nothing was
// left below them, as one does that is killed, or their records are gone. What
// left its session and its environment before that can't be told from any other
// process. Four things end that: that no process is there that could be of that
// start, which is looked for as its death is noted, at each up and each down; the
// owner's word (TakeWord); and the machine's next start.
func (l *Launcher) Unproved() (list []Remnant) {
	booted := booted()
	ids, err := l.kept()
	if err != nil {
		list = append(list, Remnant{What: fmt.Sprintf("which agents were started here can't be read (%v)", err), Since: booted})
	}
	// Records can go; an agent's mailbox still says that there is one.
	boxes, berr := l.Bus.Mailboxes()
	for _, id := range boxes {
		if id.IsAgent() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if berr != nil && !errors.Is(berr, fs.ErrNotExist) {
		list = append(list, Remnant{What: fmt.Sprintf("which agents there are can't be read (%v)", berr), Since: booted})
	}
	started, _ := l.startedSince(booted) // the error is said of each mailbox without records
	for id := range started {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	for _, id := range ids {
		starts, err := l.carried(id)
		if err != nil {
			list = append(list, Remnant{
				What:  fmt.Sprintf("%s: which of its earlier starts are not proved can't be read (%v)", id, err),
				Agent: id, Since: booted, Earlier: true,
			})
		}
		earlier := len(starts)
		if last, ok := l.unprovedLast(id); ok {
			starts = slices.DeleteFunc(starts, func(s unprovedStart) bool { return s.Start == last.Start })
			earlier = len(starts)
			starts = append(starts, last)
		}
		for i, s := range starts {
			since := time.UnixMilli(s.StartedMS)
			if beforeBoot(since) {
				continue
			}
			which, at := "its start", "at"
			if i < earlier {
				which = "an earlier start of it"
			}
			if s.Start == "" {
				which, at = "a start", "since"
			}
			list = append(list, Remnant{
				What: fmt.Sprintf("%s: %s %s %s: %s; a process of that start which had left its session and its environment can't be excluded",
					id, which, at, since.Format(time.DateTime), s.Why),
				Agent: id, Since: since, Start: s.Start, Earlier: i < earlier,
			})
		}
	}
	return list
}

// An unproved start is one of an agent's of which something may run. Those that
// other starts have followed are in state/unproved/<agent>.json.
type unprovedStart struct {
	Start     string       `json:"start"`
	StartedMS int64        `json:"started_ms"`
	Why       string       `json:"why"`
	Keeper    proc.Process `json:"keeper,omitzero"`
	Above     proc.Lineage `json:"above,omitzero"`

	doubt bool // nothing says that there was such a start, and nothing that there was none
}

func (s unprovedStart) descent() proc.Descent {
	return proc.Descent{First: s.Keeper, Lineage: s.Above}
}

const unprovedDir = "state/unproved"

func unprovedFile(id agent.ID) string { return unprovedDir + "/" + string(id) + ".json" }

// maxUnproved is how many starts of an agent are named; what a later one may have
// left has begun after the last of them.
const maxUnproved = 20

// carried are the starts before the last one that were never proved.
func (l *Launcher) carried(id agent.ID) ([]unprovedStart, error) {
	list, err := home.Load[[]unprovedStart](l.Home, unprovedFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// saveCarried replaces them; none at all leaves no file.
func (l *Launcher) saveCarried(id agent.ID, list []unprovedStart) error {
	if len(list) == 0 {
		return l.Home.Remove(unprovedFile(id))
	}
	return l.Home.Save(unprovedFile(id), list, true)
}

// unprovedLast is the agent's last start, if something of it may run.
func (l *Launcher) unprovedLast(id agent.ID) (s unprovedStart, ok bool) {
	la, lerr := l.Home.LoadLaunch(id)
	rec, err := l.Home.LoadKeeper(id)
	s = unprovedStart{Start: rec.Start, StartedMS: rec.StartedMS, Why: "its keeper was gone first, or could not record that nothing was left", Keeper: rec.Own, Above: rec.Above}
	if err != nil {
		s = unprovedStart{Start: la.Start, StartedMS: la.StartedMS, Why: "its keeper's record is gone"}
		if lerr != nil {
			s.StartedMS = booted().UnixMilli()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(lerr, fs.ErrNotExist):
		var lerr error
		s.Why = "its records are gone"
		if ok, lerr = l.lost(id); lerr != nil {
			s.Why = fmt.Sprintf("it has no record of a start, and whether there was one can't be read (%v)", lerr)
			ok, s.doubt = true, true
		}
	case errors.Is(err, fs.ErrNotExist):
		ok = true
	case err != nil:
		s.Why = fmt.Sprintf("its keeper's record can't be read (%v)", err)
		ok = true
	case rec.ClearedMS != 0 || rec.Own.Alive() || l.proved(rec.Start):
	case !rec.Own.Named() && rec.EndedMS != 0: // written by an older netsky
	default:
		ok = true
	}
	return s, ok && !beforeBoot(time.UnixMilli(s.StartedMS))
}

// lost reports whether the agent was started although nothing in state tells of
// it: what makes a home makes the directories of the records, and meta.db has its
// starts. With an error nobody knows.
func (l *Launcher) lost(id agent.ID) (bool, error) {
	for _, rel := range []string{home.KeeperDir, home.LaunchDir} {
		d, err := l.Home.OpenDir(rel, false)
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		d.Close()
	}
	started, err := l.startedSince(booted())
	return started[id], err
}

// startedSince are the agents that meta.db has starts of since then: none without
// one.
func (l *Launcher) startedSince(since time.Time) (map[agent.ID]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	db, err := store.OpenRead(ctx, l.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return db.StartedSince(ctx, since)
}

// proved reports whether this Launcher has seen that nothing of a start is left.
func (l *Launcher) proved(start string) bool {
	_, ok := l.proofs.Load(start)
	return ok && start != ""
}

// carry puts down that something of the agent's last start may run, before the
// records of a new start take the place of that one's.
func (l *Launcher) carry(id agent.ID) error {
	last, ok := l.unprovedLast(id)
	if !ok || last.doubt {
		return nil
	}
	list, err := l.carried(id)
	if err != nil { // damaged: that something was there is what is left of it
		list = []unprovedStart{{StartedMS: booted().UnixMilli(), Why: "the list of its starts was damaged"}}
	}
	list = slices.DeleteFunc(list, func(s unprovedStart) bool {
		return s.Start == last.Start && s.Start != "" || beforeBoot(time.UnixMilli(s.StartedMS))
	})
	if list = append(list, last); len(list) > maxUnproved {
		list = list[:maxUnproved]
	}
	return l.saveCarried(id, list)
}

// neverRan puts down that nothing of a start runs, as tmux has made no session for
// it. A keeper's own word stands.
func (l *Launcher) neverRan(la agent.Launch) {
	if _, err := l.Home.LoadKeeper(la.Agent); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	// Not written, the start is not proved.
	_ = l.Home.SaveKeeper(la.Agent, agent.Keeper{Start: la.Start, StartedMS: la.StartedMS, ClearedMS: time.Now().UnixMilli()})
}
