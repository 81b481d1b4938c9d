package spawn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/store"
	"netsky/tmux"
)

// A Remnant is something of this home that still runs.
type Remnant struct {
	What  string   // "tmux session agent1", "process 4711 of agent1"
	Agent agent.ID // "" for what belongs to none: the ticker, the hub
	PID   int
	Since time.Time // of what is not proved: when it may have begun
}

// Remnants lists the sessions of this home and the processes that any start on
// file left behind: keepers and programs by their records, others by what they
// hang below or carry in their environment. With an error there may be more. That
// nothing is left is proved by an empty list if Unproved is empty too.
func (l *Launcher) Remnants(ctx context.Context, keep ...int) (list []Remnant, err error) {
	seen := make(map[int]bool)
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
			err = errors.Join(err, fmt.Errorf("the sessions on tmux socket %s can't be looked at: %w", server.Socket, perr))
		}
		for _, p := range panes {
			if p.Tags[TagHome] == l.Home.Dir() {
				id, _ := agent.Parse(p.Session) // "" for the ticker
				add("tmux session "+p.Session, id, p.PID)
			}
		}
	}
	if t, terr := l.Home.LoadTicker(); terr == nil && t.Alive() {
		add(fmt.Sprintf("process %d, the ticker", t.PID), "", t.PID)
	}
	ids, merr := l.Bus.Mailboxes()
	if merr != nil && !errors.Is(merr, fs.ErrNotExist) {
		err = errors.Join(err, merr)
	}
	kept, kerr := l.kept()
	err = errors.Join(err, kerr)
	for _, id := range kept {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
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

// Unproved lists the agents, and the starts of them, of which nobody can say that
// nothing runs any more: their keepers ended without having seen that nothing was
// left below them, as one does that is killed, or their records are gone. What
// left its session and its environment before that can't be told from any other
// process. Only the machine's next start ends that.
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
			list = append(list, Remnant{What: fmt.Sprintf("%s: which of its starts are not proved can't be read (%v)", id, err), Agent: id, Since: booted})
		}
		last, ok := l.unprovedLast(id)
		if ok && !slices.ContainsFunc(starts, func(s unprovedStart) bool { return s.Start == last.Start }) {
			starts = append(starts, last)
		}
		for _, s := range starts {
			since := time.UnixMilli(s.StartedMS)
			if beforeBoot(since) {
				continue
			}
			of := "its start at"
			if s.Start == "" {
				of = "a start since"
			}
			list = append(list, Remnant{
				What: fmt.Sprintf("%s: %s; a process of %s %s that had left its session and its environment can't be excluded",
					id, s.Why, of, since.Format(time.DateTime)),
				Agent: id, Since: since,
			})
		}
	}
	return list
}

// An unproved start is one of an agent's of which something may run. Those that
// other starts have followed are in state/unproved/<agent>.json.
type unprovedStart struct {
	Start     string `json:"start"`
	StartedMS int64  `json:"started_ms"`
	Why       string `json:"why"`

	doubt bool // nothing says that there was such a start, and nothing that there was none
}

const unprovedDir = "state/unproved"

func unprovedFile(id agent.ID) string { return unprovedDir + "/" + string(id) + ".json" }

// maxUnproved is how many starts of an agent are named; what a later one may have
// left has begun after the last of them.
const maxUnproved = 20

// carried are the starts before the last one that were never proved.
func (l *Launcher) carried(id agent.ID) ([]unprovedStart, error) {
	list, err := load[[]unprovedStart](l.Home, unprovedFile(id))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// unprovedLast is the agent's last start, if something of it may run.
func (l *Launcher) unprovedLast(id agent.ID) (s unprovedStart, ok bool) {
	la, lerr := l.Home.LoadLaunch(id)
	rec, err := l.Home.LoadKeeper(id)
	s = unprovedStart{Start: rec.Start, StartedMS: rec.StartedMS, Why: "its keeper was gone first, or could not record that nothing was left"}
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
	for _, rel := range []string{agent.KeeperDir, agent.LaunchDir} {
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
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return l.Home.WriteFile(unprovedFile(id), append(data, '\n'), true)
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

// booted is when the machine was started; zero if that can't be told.
func booted() time.Time {
	t, err := agent.Booted()
	if err != nil {
		return time.Time{}
	}
	return t
}

// beforeBoot reports whether a time is before the machine's start, which is known
// by two clocks: it is a little off each time.
func beforeBoot(t time.Time) bool { return t.Before(booted().Add(-2 * time.Second)) }

// kept are the agents that have a keeper's record, a launch or unproved starts on
// file. With an error there may be more.
func (l *Launcher) kept() (ids []agent.ID, err error) {
	for _, rel := range []string{agent.KeeperDir, agent.LaunchDir, unprovedDir} {
		d, derr := l.Home.OpenDir(rel, false)
		if derr != nil {
			if !errors.Is(derr, fs.ErrNotExist) {
				err = errors.Join(err, derr)
			}
			continue
		}
		names, derr := d.Readdirnames(-1)
		err = errors.Join(err, derr)
		d.Close()
		for _, name := range names {
			base, ok := strings.CutSuffix(name, ".json")
			if id, err := agent.Parse(base); ok && err == nil && id.IsAgent() && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, agent.Compare)
	return ids, err
}

// socket names the tmux server that is configured.
func (l *Launcher) socket() string {
	if l.Tmux.Socket == "" {
		return "default"
	}
	return l.Tmux.Socket
}

// elsewhere reports whether a socket, by a launch, is not the configured one.
func (l *Launcher) elsewhere(socket string) bool { return socket != "" && socket != l.socket() }

// servers are the tmux servers that may hold something of this home: the
// configured one, then those that agents and the ticker were started on before.
func (l *Launcher) servers() []*tmux.Server {
	list := []*tmux.Server{l.Tmux}
	seen := []string{l.socket()}
	add := func(socket string) {
		if socket == "" || slices.Contains(seen, socket) {
			return
		}
		seen = append(seen, socket)
		list = append(list, &tmux.Server{Socket: socket, Conf: l.Tmux.Conf, Env: l.Tmux.Env, Tags: l.Tmux.Tags})
	}
	kept, _ := l.kept() // who has to know asks for the error
	for _, id := range kept {
		if la, err := l.Home.LoadLaunch(id); err == nil {
			add(la.Socket)
		}
	}
	if t, err := l.Home.LoadTicker(); err == nil {
		add(t.Socket)
	}
	return list
}
