package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/tmux"
)

// A Status is the state of one agent and the evidence for it.
type Status struct {
	Agent    agent.ID
	State    agent.State
	Since    time.Time // zero if unknown
	Evidence string
	Detail   string // what it is busy with or waits for, or how it ended
	Dialog   string // the name of the dialog in its pane at which it waits

	Runtime string
	Model   string
	Dir     string
	Start   string // the start id
	Resume  string
	PID     int    // the program's
	Build   string // the version of netsky that its keeper runs, "" if it is down or that is not recorded
	// Untested says which release of its program it was started on, if that is not the tested
	// one.
	Untested string
	Silent   bool // its program reports nothing: the state is inferred from its pane
	Wanted   bool
	By       string // who set the desired state

	Inbox, Claimed, Outbox, Poison int // envelopes; -1 if they can't be counted

	// Forgotten reports that the owner has hidden the agent: it is down, and no message has
	// arrived for it since.
	Forgotten bool

	// Restart says when an agent that has died is started again, or why it is not; "" if
	// nothing has decided that yet.
	Restart string

	// Lost reports that its keeper was killed and could not record the end.
	Lost bool

	// Report is the last report of this start of a running agent, or zero. State may say
	// more.
	Report agent.Report

	pane   *tmux.Pane
	socket string // of the tmux server it was started on, from its launch
	told   bool   // the keeper has reported how it ended, in its pane too
}

// Alive reports whether the agent's program may still run: every state but dead,
// crash-looping and down. An unknown one counts as alive, as nothing proves its death.
func (s Status) Alive() bool { return !s.Died() && s.State != agent.Down }

// Died reports whether the agent has ended though it is wanted up.
func (s Status) Died() bool { return s.State == agent.Dead || s.State == agent.CrashLooping }

// Pane returns the id of the agent's tmux pane, or "".
func (s Status) Pane() string {
	if s.pane == nil {
		return ""
	}
	return s.pane.ID
}

// Asks reports whether the agent waits for a person: at a dialog of its program, or with a
// question from its model.
func (s Status) Asks() bool { return s.State == agent.Waiting && !s.Deaf() }

// How returns the agent's state and its evidence.
func (s Status) How() string { return fmt.Sprintf("%s (%s)", s.State, cmp.Or(s.Detail, s.Evidence)) }

// neverStarted is the evidence of an agent that is down because it was never up.
const neverStarted = "never started"

// NeedsUp returns the error for an agent that has to be up.
func NeedsUp(s Status, what string) error {
	if s.Evidence == neverStarted {
		return advice.With(fmt.Errorf("%s: was never started: %s", s.Agent, what), "`netsky agent %s` starts it; `netsky status` lists the agents", s.Agent.N())
	}
	return advice.With(fmt.Errorf("%s: is %s: %s", s.Agent, s.State, what), "`netsky agent %s` starts it", s.Agent.N())
}

// NoPane returns the error for an agent without a pane.
func NoPane(s Status) error { return NeedsUp(s, "it has no pane") }

// Watched reports whether somebody is attached to the agent's session.
func (s Status) Watched() bool { return s.pane != nil && s.pane.Attached > 0 }

// Statuses lists agents in display order.
type Statuses []Status

func (list Statuses) find(id agent.ID) (Status, bool) {
	i := slices.IndexFunc(list, func(s Status) bool { return s.Agent == id })
	if i < 0 {
		return Status{}, false
	}
	return list[i], true
}

// Find returns the status of one agent; one never started is down.
func (list Statuses) Find(id agent.ID) Status {
	if s, ok := list.find(id); ok {
		return s
	}
	return Status{Agent: id, State: agent.Down, Evidence: neverStarted}
}

// Inspect returns the status of every agent of this home: those with a session, a mailbox
// or a desired state. It needs neither the daemon nor the database. If tmux does not
// answer, it returns an error and a list judged by processes and reports alone.
func (l *Site) Inspect(ctx context.Context) (Statuses, error) {
	v, err := l.view(ctx)
	return l.inspect(v, err)
}

// InspectAll is Inspect, and TickerUp by the same look at the tmux server.
func (l *Site) InspectAll(ctx context.Context) (list Statuses, ticker bool, err error) {
	v, err := l.view(ctx)
	ticker = v.ticker != nil || l.tickerLives()
	list, err = l.inspect(v, err)
	return list, ticker, err
}

// inspect judges by what the tmux server has; tmuxErr is why that is unknown.
func (l *Site) inspect(v view, tmuxErr error) (Statuses, error) {
	return l.inspectBy(v, tmuxErr, l.files)
}

// files reads everything again.
func (l *Site) files(id agent.ID) files { return files{l: l, id: id} }

func (l *Site) inspectBy(v view, tmuxErr error, filesOf func(agent.ID) files) (Statuses, error) {
	ids := make(map[agent.ID]bool)
	for id := range v.agents {
		ids[id] = true
	}
	err := tmuxErr
	boxes, berr := l.Bus.Mailboxes()
	if berr != nil && !errors.Is(berr, fs.ErrNotExist) {
		err = errors.Join(err, berr)
		var kerr error
		boxes, kerr = l.kept()
		err = errors.Join(err, kerr)
	}
	for _, id := range boxes {
		if id.IsAgent() {
			ids[id] = true
		}
	}
	list := make(Statuses, 0, len(ids))
	for id := range ids {
		list = append(list, Status{Agent: id})
	}
	slices.SortFunc(list, func(a, b Status) int { return agent.Compare(a.Agent, b.Agent) })
	of := make([]files, len(list))
	for i, st := range list {
		of[i] = filesOf(st.Agent)
	}
	each(len(list), func(i int) {
		var s *session
		if o, ok := v.agents[list[i].Agent]; ok {
			s = &o
		}
		list[i] = of[i].judge(s, tmuxErr)
		of[i].judgeWatched(&list[i])
		list[i].Forgotten = forgotten(of[i], list[i])
	})
	return list, err
}

// Waiting returns how many files wait in the agent's mailbox: unread, claimed, unreadable
// or not yet routed.
func (s Status) Waiting() int {
	return max(s.Inbox, 0) + max(s.Claimed, 0) + max(s.Outbox, 0) + max(s.Poison, 0)
}

func forgotten(f files, st Status) bool {
	if st.State != agent.Down || st.pane != nil {
		return false
	}
	d, err := f.desired()
	return err == nil && !d.Up && d.Forgotten != nil && st.Waiting() <= *d.Forgotten
}

// startGrace is how long after a start the keeper's record may be missing before that is
// an anomaly.
const startGrace = 15 * time.Second

// judge weighs the evidence for one agent. s is its session, or nil.
func (f files) judge(s *session, tmuxErr error) (st Status) {
	id := f.id
	st = Status{Agent: id, State: agent.Down}
	if d, err := f.desired(); err == nil {
		st.Wanted, st.By = d.Up, d.By
		st.Since = time.UnixMilli(d.AtMS)
	}
	la, err := f.launch()
	if err == nil {
		st.Runtime, st.Model, st.Dir, st.Start, st.Resume = la.Runtime, la.Model, la.Dir, la.Start, la.Resume
		st.Silent, st.socket, st.Untested = la.Silent, la.Socket, la.Untested
	}
	if err != nil && s != nil {
		la.Start = s.start // the session knows it too
		st.Start = s.start
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if k, err := f.keeper(); err == nil { // and so does the keeper
			la.Start, st.Start = k.Start, k.Start
		}
	}
	defer func() {
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !st.Alive() && st.Detail == "" {
			st.Detail = "cannot read its launch file"
		}
	}()
	f.countAll(&st)
	keeper, kerr := keeperOf(f, la)
	defer func() {
		if kerr == nil && st.Alive() {
			st.Build = keeper.Version
		}
	}()
	if s == nil {
		f.judgeWithoutPane(&st, keeper, kerr, tmuxErr)
		if st.State == agent.Dead && kerr != nil && f.beingStarted(la) {
			st.State, st.Since, st.Evidence = agent.Starting, time.UnixMilli(la.StartedMS), "an up is starting it"
		}
		return st
	}
	st.pane = &s.Pane
	started := time.UnixMilli(la.StartedMS)
	switch {
	case s.start != st.Start:
		st.State, st.Evidence = agent.Unknown, "the session's start id is not the launch file's"
	case errors.Is(kerr, fs.ErrNotExist) && time.Since(started) < startGrace:
		st.State, st.Since, st.Evidence = agent.Starting, started, "its session is made, its program has not been recorded yet"
	case kerr != nil:
		st.State, st.Evidence = agent.Unknown, "no record of its program: "+kerr.Error()
	case keeper.EndedMS != 0:
		st.State, st.Since = agent.Dead, time.UnixMilli(keeper.EndedMS)
		st.Detail, st.Evidence = keeper.How(), "recorded by its keeper"
		st.PID, st.told = keeper.PID, keeper.Lost == ""
		if keeper.Lost != "" {
			st.Evidence = fmt.Sprintf("process %d is gone", keeper.PID)
		}
	case !keeper.Alive() && !keeper.Gone():
		st.State, st.PID, st.Since = agent.Unknown, keeper.PID, time.Time{}
		st.Evidence = fmt.Sprintf("cannot tell whether process %d is its program", keeper.PID)
	case !keeper.Alive():
		st.State, st.PID, st.Since = agent.Dead, keeper.PID, time.Time{}
		st.Evidence = fmt.Sprintf("process %d is gone", keeper.PID)
		f.judgeLost(&st, keeper)
	default:
		st.PID = keeper.PID
		f.judgeRunning(&st, &s.Pane, keeper, started)
	}
	if st.State == agent.Dead && !st.Wanted {
		st.State = agent.Down // it ended as wanted, and its pane is still there
	}
	return st
}

// beingStarted reports whether another process is starting the agent: its launch is
// written before its session is made.
func (f files) beingStarted(la agent.Launch) bool {
	if time.Since(time.UnixMilli(la.StartedMS)) > startGrace {
		return false
	}
	who, ok := f.l.Home.LockHolder(home.UpLock)
	return ok && who.PID != os.Getpid()
}

// keeperOf returns the keeper's record of that start, and nothing of another start.
func (l *Site) keeperOf(id agent.ID, la agent.Launch) (agent.Keeper, error) {
	return keeperOf(l.files(id), la)
}

func keeperOf(f files, la agent.Launch) (agent.Keeper, error) {
	k, err := f.keeper()
	if err == nil && k.Start == "" && k.StartedMS >= la.StartedMS {
		k.Start = la.Start // the keeper could not read the launch, so it belongs to this start
	}
	if err == nil && k.Start != la.Start {
		err = fs.ErrNotExist
	}
	return k, err
}

func (f files) judgeWithoutPane(st *Status, k agent.Keeper, kerr, tmuxErr error) {
	runs := kerr == nil && k.EndedMS == 0 && k.Alive()
	switch {
	case runs && tmuxErr != nil:
		st.PID = k.PID
		f.judgeRunning(st, nil, k, time.UnixMilli(k.StartedMS))
		st.Evidence += "; tmux does not answer"
	case runs:
		st.State, st.PID, st.Since = agent.Unknown, k.PID, time.Time{}
		st.Evidence = fmt.Sprintf("process %d is running but its tmux session is gone", k.PID)
		if f.l.elsewhere(st.socket) {
			st.Evidence = fmt.Sprintf("process %d runs on tmux socket %s, but %s is now configured", k.PID, st.socket, f.l.socket())
		}
	case tmuxErr != nil:
		st.State, st.Evidence, st.Since = agent.Unknown, "tmux does not answer", time.Time{}
	case st.Wanted:
		st.State, st.Evidence, st.Since = agent.Dead, "no tmux session", time.Time{}
		if kerr != nil {
			return
		}
		st.PID = k.PID
		if k.EndedMS != 0 {
			st.Since, st.Detail = time.UnixMilli(k.EndedMS), k.How()
			return
		}
		f.judgeLost(st, k)
	default:
		st.Evidence = "stopped on request"
		if st.Start == "" {
			st.Evidence = neverStarted
		} else if kerr == nil && k.EndedMS > st.Since.UnixMilli() {
			st.Since = time.UnixMilli(k.EndedMS)
		}
	}
}

// judgeLost records in the status that a dead agent's keeper was killed, if it was and
// no end is recorded.
func (f files) judgeLost(st *Status, k agent.Keeper) {
	if !k.Own.Gone() {
		return
	}
	// Whatever it had to record, it recorded before it died.
	if now, err := f.l.Home.LoadKeeper(st.Agent); err == nil && now.Start == k.Start && now.EndedMS == 0 {
		st.Lost = true
		st.Evidence += ", and " + keeperKilled
	}
}

const keeperKilled = "its keeper was killed"

// judgeRunning sets the state of a running program. pane is nil if tmux does not answer.
func (f files) judgeRunning(st *Status, pane *tmux.Pane, k agent.Keeper, started time.Time) {
	if st.Silent {
		f.judgeSilent(st, pane, k)
		return
	}
	f.judgeReport(st, k, started)
}

// judgeReport uses the runtime's own report.
func (f files) judgeReport(st *Status, k agent.Keeper, started time.Time) {
	r, err := f.report()
	switch {
	case err == nil && r.Start == st.Start:
		st.Report = r
		st.State, st.Since = r.State, time.UnixMilli(r.SinceMS)
		st.Evidence, st.Detail, st.Dialog = r.Evidence, r.Detail, r.Dialog
		if r.By == "" && r.State.Ready() && f.l.Home.Abandoned(home.ReceiverLock(st.Agent), k.Process) {
			st.State, st.Evidence, st.Dialog = agent.Unknown, fmt.Sprintf("its receiver has exited; it last reported %s", r.State), ""
			return
		}
		f.judgeOverlay(st)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		st.State, st.Since = agent.Starting, started
		st.Evidence = fmt.Sprintf("process %d runs, no report yet", st.PID)
	default:
		st.State, st.Evidence = agent.Unknown, err.Error()
	}
}

// NewInspector returns an Inspector with an empty cache.
func (l *Site) NewInspector() *Inspector { return &Inspector{l: l} }
