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
	"netsky/internal/proc"
	"netsky/store"
)

// Unproved lists the agents, and their starts, that may have left processes behind: their
// keepers ended without having seen that nothing was left below them, as a killed keeper
// does, or their records are gone. A process that has left its session and its environment
// can't be told from any other. A start leaves the list when no process can belong to it,
// which is checked when its death is noted and at each up and down; when the owner vouches
// for it (TakeWord); or when the machine restarts.
func (l *Ender) Unproved() (list []Remnant) {
	booted := booted()
	ids, err := l.ever()
	if err != nil {
		list = append(list, Remnant{What: fmt.Sprintf("cannot read which agents were started here: %v", err), Since: booted})
	}
	started, _ := l.startedSince(booted) // the error is reported for each mailbox without records
	for id := range started {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, agent.Compare)
	for _, id := range ids {
		starts, err := l.starts(id)
		if err != nil {
			list = append(list, Remnant{
				What:  fmt.Sprintf("%s: cannot read which of its earlier starts are unproved: %v", id, err),
				Agent: id, Since: booted, Earlier: true,
			})
		}
		for _, s := range starts {
			since := time.UnixMilli(s.StartedMS)
			if beforeBoot(since) {
				continue
			}
			which, at := "its start", "at"
			if !s.last {
				which = "an earlier start of it"
			}
			if s.Start == "" {
				which, at = "a start", "since"
			}
			list = append(list, Remnant{
				What: fmt.Sprintf("%s: %s %s %s: %s",
					id, which, at, since.Format(time.DateTime), s.Why),
				Agent: id, Since: since, Start: s.Start, Earlier: !s.last, start: s,
			})
		}
	}
	return list
}

// An unprovedStart is a start that may have left processes behind. Those followed by later
// starts are in state/unproved/<agent>.json.
type unprovedStart struct {
	Start     string       `json:"start"`
	StartedMS int64        `json:"started_ms"`
	Why       string       `json:"why"`
	Keeper    proc.Process `json:"keeper,omitzero"`
	Above     proc.Lineage `json:"above,omitzero"`

	last  bool // the agent has not been started since
	doubt bool // it is unknown whether there was such a start
}

func (s unprovedStart) descent() proc.Descent {
	return proc.Descent{First: s.Keeper, Lineage: s.Above}
}

const unprovedDir = "state/unproved"

func unprovedFile(id agent.ID) string { return unprovedDir + "/" + string(id) + ".json" }

// maxUnproved is how many starts of an agent are listed; whatever a later one may have
// left began after the last of them.
const maxUnproved = 20

// starts returns the agent's unproved starts, the last one at the end. With an error there may be
// earlier ones.
func (l *Ender) starts(id agent.ID) ([]unprovedStart, error) {
	list, err := l.carried(id)
	if last, ok := l.unprovedLast(id); ok {
		last.last = true
		list = append(slices.DeleteFunc(list, func(s unprovedStart) bool { return s.Start == last.Start }), last)
	}
	return list, err
}

// carried returns the starts before the last one that were never proved.
func (l *Ender) carried(id agent.ID) ([]unprovedStart, error) {
	list, err := home.Load[[]unprovedStart](l.Home, unprovedFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// saveCarried replaces the list; an empty one removes the file.
func (l *Ender) saveCarried(id agent.ID, list []unprovedStart) error {
	if len(list) == 0 {
		return l.Home.Remove(unprovedFile(id))
	}
	return l.Home.Save(unprovedFile(id), list, true)
}

// unprovedLast returns the agent's last start if something of it may run.
func (l *Ender) unprovedLast(id agent.ID) (s unprovedStart, ok bool) {
	la, lerr := l.Home.LoadLaunch(id)
	rec, err := l.Home.LoadKeeper(id)
	s = unprovedStart{Start: rec.Start, StartedMS: rec.StartedMS, Why: "its keeper was killed, or could not record its end", Keeper: rec.Own, Above: rec.Above}
	if err != nil {
		s = unprovedStart{Start: la.Start, StartedMS: la.StartedMS, Why: "the record of how it ended is gone"}
		if lerr != nil {
			s.StartedMS = booted().UnixMilli()
		}
	}
	_, proved := l.proofs.Load(rec.Start)
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(lerr, fs.ErrNotExist):
		var lerr error
		s.Why = "its records are gone"
		if ok, lerr = l.lost(id); lerr != nil {
			s.Why = fmt.Sprintf("it has no record of a start, and cannot read whether there was one: %v", lerr)
			ok, s.doubt = true, true
		}
	case errors.Is(err, fs.ErrNotExist):
		ok = true
	case err != nil:
		s.Why = fmt.Sprintf("cannot read the record of how it ended: %v", err)
		ok = true
	case rec.ClearedMS != 0 || rec.Own.Alive() || proved && rec.Start != "":
	case !rec.Own.Named() && rec.EndedMS != 0: // written by an older netsky
	default:
		ok = true
	}
	return s, ok && !beforeBoot(time.UnixMilli(s.StartedMS))
}

// lost reports whether the agent was started although state holds no record of it: up
// creates the directories of the records and the whole mailbox first, and meta.db has its
// starts. What a purge has left, a person's own files in a mailbox, is no whole one. With
// an error that is unknown.
func (l *Ender) lost(id agent.ID) (bool, error) {
	for _, rel := range []string{home.KeeperDir, home.LaunchDir} {
		d, err := l.Home.OpenDir(rel, false)
		if errors.Is(err, fs.ErrNotExist) && l.Bus.Used(id) {
			return true, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		d.Close()
	}
	started, err := l.startedSince(booted())
	return started[id], err
}

// startedSince returns the agents that meta.db has starts of since then: none without a
// database.
func (l *Ender) startedSince(since time.Time) (map[agent.ID]bool, error) {
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

// carry records that something of the agent's last start may run, before the records of a
// new start replace it.
func (l *Ender) carry(id agent.ID) error {
	last, ok := l.unprovedLast(id)
	if !ok || last.doubt {
		return nil
	}
	list, err := l.carried(id)
	if err != nil { // damaged: all it proves is that something was there
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

// neverRan records that nothing of a start runs, as tmux created no session for it. A
// keeper's record takes precedence.
func (l *Ender) neverRan(la agent.Launch) {
	if _, err := l.Home.LoadKeeper(la.Agent); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	// If this is not written, the start stays unproved.
	_ = l.Home.SaveKeeper(la.Agent, agent.Keeper{Start: la.Start, StartedMS: la.StartedMS, ClearedMS: time.Now().UnixMilli()})
}

// NoteLost records how a start ended whose keeper was killed: when that was noticed, and
// whether something of it may still run. The error matches home.ErrLocked while an up or
// a down runs. Only the agent's last start is recorded, and only if no end of it is.
func (l *Ender) NoteLost(id agent.ID, start string) (noted bool, err error) {
	lock, err := l.Home.Lock(home.UpLock)
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	return l.noteLost(id, start)
}

func (l *Ender) noteLost(id agent.ID, start string) (noted bool, err error) {
	rec, err := l.Home.LoadKeeper(id)
	if err != nil || rec.Start != start || rec.EndedMS != 0 || !rec.Own.Gone() || rec.Process.Alive() {
		return false, err
	}
	rec.EndedMS, rec.Lost = time.Now().UnixMilli(), keeperKilled
	if beforeBoot(time.UnixMilli(rec.StartedMS)) {
		rec.EndedMS, rec.Lost = booted().UnixMilli(), "the machine was restarted"
	}
	if err := l.Home.SaveKeeper(id, rec); err != nil {
		return false, err
	}
	l.prove(id)
	return true, nil
}
