package store

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
)

// began is approximately when this process started: an agent launched earlier that a new
// database does not know was recorded in another one.
var began = time.Now()

// rebuilt returns what the files of the home hold about the agents, for a database that
// was created again or restored from a copy. Each element is about one agent, so that an
// unreadable set of files affects no other. Package observe records the mailboxes.
func rebuilt(home home.Dir) (all [][]Op) {
	for _, id := range launched(home) {
		la, err := home.LoadLaunch(id)
		if err == nil && la.Agent == id && la.Start != "" {
			all = append(all, rebuiltAgent(home, la))
		}
	}
	return all
}

// scheduled returns the schedules that the copy beside the database holds.
func scheduled(h home.Dir) (all [][]Op) {
	list, err := home.Load[[]AddSchedule](h, schedulesFile)
	if err != nil {
		return nil // there are none, or none can be read
	}
	for _, s := range list {
		all = append(all, []Op{s})
	}
	return all
}

// withNotice adds a log that an earlier database existed: with lost that is known, else an
// agent older than this process proves it.
func withNotice(all [][]Op, lost bool) [][]Op {
	var names []string
	for _, ops := range all {
		a := ops[0].(UpsertActor)
		names = append(names, string(a.ID))
		lost = lost || a.Created.Time().Before(began)
	}
	if !lost || len(names) == 0 {
		return all
	}
	return append(all, []Op{AddLog{
		Level: LevelWarn, Part: "records",
		Text: fmt.Sprintf("%s was missing: rebuilt from the files of %s; older log entries and sessions are lost",
			home.DBFile, strings.Join(names, ", ")),
	}})
}

// launched lists the agents that have a launch file.
func launched(h home.Dir) []agent.ID {
	ids, _ := home.Agents(h, home.LaunchDir)
	return ids
}

// Launched reports whether agents have been started in this home, so that a missing
// database was lost and is not merely new.
func Launched(home home.Dir) bool { return len(launched(home)) > 0 }

// rebuiltAgent returns the last start of one agent: how it was launched, its desired
// state, what it reported, and how it ended.
func rebuiltAgent(h home.Dir, la agent.Launch) []Op {
	started := Time(la.StartedMS)
	actor := UpsertActor{ID: la.Agent, Role: la.Agent.Role(), Runtime: la.Runtime, Dir: la.Dir, Created: started, Updated: started}
	desired, err := home.Desired(h).Load(string(la.Agent))
	wanted := err == nil && desired.Up
	if err == nil {
		actor.Desired = DesiredDown
		if wanted {
			actor.Desired = DesiredUp
		}
		actor.Updated = max(started, Time(desired.AtMS))
	}
	ops := []Op{
		actor,
		StartSession{Start: la.Start, Actor: la.Agent, Runtime: la.Runtime, Tmux: string(la.Agent), Thread: la.Resume, Started: started},
		StartedLog(la),
	}
	if r, err := h.LoadReport(la.Agent); err == nil && r.Start == la.Start {
		ops = append(ops, SessionState{Start: la.Start, State: r.State, Time: max(started, Time(r.SinceMS))})
	}
	k, err := h.LoadKeeper(la.Agent)
	known := err == nil && k.Start == la.Start
	if known {
		ops = append(ops, SessionState{Start: la.Start, PID: k.PID, PIDStart: k.Process.Start, Time: started})
	}
	switch {
	case known && k.EndedMS != 0:
		end := EndSession{Start: la.Start, State: agent.Dead, Status: k.Status, Signal: k.Signal, Reason: "died", Time: Time(k.EndedMS)}
		if k.Lost != "" {
			end.Reason += ": " + k.Lost
		}
		if !wanted {
			end.State, end.Reason = agent.Down, "down"
		}
		ops = append(ops, end)
		if wanted {
			ops = append(ops, DiedLog(la.Agent, la.Start, k.How(), end.Time))
		}
	case !wanted && !(known && k.Alive()):
		ops = append(ops, EndSession{Start: la.Start, State: agent.Down, Reason: "down", Time: Time(cmp.Or(desired.AtMS, la.StartedMS))})
	}
	return ops
}

// StartedLog returns the log of a start; it is the same each time.
func StartedLog(la agent.Launch) AddLog {
	return AddLog{
		Key: "started-" + la.Start, Part: "up", Actor: la.Agent, About: la.Start, Time: Time(la.StartedMS),
		Text: "started on " + la.Runtime + " in " + la.Dir,
	}
}

// DiedLog returns the log of a death; it is the same each time.
func DiedLog(id agent.ID, start, how string, at Time) AddLog {
	return AddLog{
		Key: "died-" + start, Level: LevelWarn, Part: "watchdog", Actor: id, About: start, Time: at,
		Text: "died: " + how,
	}
}

// rebuild records them. It skips what is invalid in one agent's files; an error is the
// database's own.
func (t *tx) rebuild(all [][]Op) error {
	now := time.Now()
	for _, ops := range all {
		err := t.commit([]*request{{ops: stampAll(ops, now)}})
		if err != nil && !errors.Is(err, errOp) {
			return fmt.Errorf("rebuild: %w", err)
		}
	}
	return nil
}
