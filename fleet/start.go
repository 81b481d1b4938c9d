package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/bus/envelope"
	"netsky/daemon"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/spawn"
	"netsky/spawn/pane"
	"netsky/store"
	"netsky/watch"
	"netsky/watch/backoff"
	"netsky/work/land"
)

// A StartRequest asks for agents to be started.
type StartRequest struct {
	Agents    []agent.ID `json:"agents"`
	Runtime   string     `json:"runtime,omitempty"` // "": as netsky.toml says, as before, or the first that is available
	Dir       string     `json:"dir,omitempty"`     // "": the same, else the current directory
	Here      bool       `json:"here,omitempty"`    // clones work in that directory itself
	Fresh     bool       `json:"fresh,omitempty"`   // those that are up are ended; all begin new conversations
	Yes       bool       `json:"yes,omitempty"`     // every question is answered with yes
	Objective string     `json:"objective,omitempty"`
}

// A Step is progress of a deed: of an agent's start, unless one of the other fields is set.
type Step struct {
	spawn.Progress
	As     As
	Daemon *DaemonStep         // of the daemon's
	Down   *spawn.DownProgress // of an end
	Landed *land.Outcome       // of one agent's work
	Output string              // a line that a command of the owner's prints
	Line   string              // about something else
	Data   []byte              // a part of what the deed brings
}

// As is how an agent is started.
type As struct {
	Runtime string
	May     string // what agents of the runtime may do unasked, "" if nothing is to be said
	Dir     string
	Place   plan.Place
}

// A DaemonStep says what became of the daemon.
type DaemonStep struct {
	daemon.Pong
	Started daemon.Started
	Err     error
}

// A StartResult is what a Start did.
type StartResult struct {
	Daemon    daemon.Pong
	Agents    []Step           // the last one of each
	Stayed    spawn.Statuses   // that were up before
	Woken     bool             // the daemon knows of it
	Dialogs   []approve.Dialog // at which agents wait
	Elsewhere bool             // agent0 works in another directory than the caller's
	Message   string           // the ID of the objective
	// Demo is why agents run on demo though nobody has chosen it, or nil.
	Demo error
}

// ErrNotReady is returned by a Start after which not all agents are ready; the steps say why.
var ErrNotReady = errors.New("not all agents are ready")

// A starter carries out one Start.
type starter struct {
	*Fleet
	StartRequest
	ctx context.Context

	look
	decision
	planner  *plan.Planner
	runtimes map[string]spawn.Runtime
	as       map[agent.ID]As
	derr     error // of the daemon

	result StartResult
}

// Start starts agents that are not up, and the daemon; nothing is ended but agents that are to
// begin anew. What prevents the start is found, and every question is asked, before anything is
// started or ended. A crash leaves what [spawn.Launcher.Up] leaves.
func (f *Fleet) Start(ctx context.Context, r StartRequest) (StartResult, error) {
	if err := f.May("up"); err != nil {
		return StartResult{}, err
	}
	for i, id := range r.Agents {
		if slices.Contains(r.Agents[:i], id) { // its second session would take the first one's files
			return StartResult{}, usagef("up: names %s twice", id)
		}
	}
	if err := f.Make(); err != nil {
		return StartResult{}, err
	}
	f, err := f.ofOwner()
	if err != nil {
		return StartResult{}, err
	}
	s := &starter{Fleet: f, StartRequest: r, ctx: ctx, planner: f.Planner(), as: make(map[agent.ID]As)}
	err = s.run()
	return s.result, err
}

func (s *starter) run() error {
	if err := s.chooseDir(); err != nil {
		return err
	}
	err := s.Launcher.Alone(s.ctx, Daemon{s.Fleet}.blocked, func() error {
		if err := s.find(); err != nil {
			return err
		}
		if s.decision = decide(s.look, s.Config, s.Actor, s.StartRequest); s.refused != nil {
			if s.disobeyed != nil {
				s.warn("%v", s.disobeyed)
			}
			return s.refused
		}
		s.result.Elsewhere = s.tellWhere()
		if s.slow { // others may start and end agents meanwhile
			return nil
		}
		return s.apply(s.Launcher.UpPrepared)
	})
	if err == nil && s.slow {
		err = s.apply(s.Launcher.Up)
	}
	switch {
	case err != nil:
		return err
	case len(s.plans) == 0:
		s.stayed()
		s.result.Daemon, _ = daemon.Ping(s.ctx, s.Home) // none if it does not answer
		s.unsent()
		return s.disobeyed
	}
	return s.finish()
}

// find looks at what the start is decided by.
func (s *starter) find() (err error) {
	l := &s.look
	if l.all, s.result.Demo, err = s.planner.Plans(s.ctx, s.Agents, plan.Wish{Runtime: s.Runtime, Dir: s.Dir}); err != nil {
		return err
	}
	l.all[0].Objective = s.Objective
	if s.Dir != "" { // also for agents that are up: no advice may end them for an unusable directory
		if l.noDir = execx.CheckDir(l.all[0].Dir); l.noDir != nil {
			return nil
		}
		l.bases = make(map[agent.ID]string)
	}
	if l.prep, err = s.Launcher.Look(s.ctx, l.all, s.ended()...); err != nil {
		return err
	}
	var starting []spawn.Plan
	l.unserved = make(map[agent.ID]string)
	for _, p := range l.all {
		s.as[p.Agent] = As{Runtime: p.Runtime.Name(), Dir: p.Dir}
		if st := l.prep.States.Find(p.Agent); st.Alive() {
			if l.bases != nil {
				l.bases[p.Agent] = s.planner.Base(p.Agent, st.Dir)
			}
			continue
		}
		starting = append(starting, p)
		la := agent.Launch{Agent: p.Agent, Dir: p.Dir, Env: s.Environ}
		l.unserved[p.Agent] = watch.MayStart(s.Home, p.Runtime, la, s.Actor == agent.Owner, time.Now())
	}
	if _, misplaced := plan.RunningElsewhere(l.all, l.prep.States, s.Runtime); len(misplaced) > 0 {
		_ = s.Launcher.Recheck(s.ctx, l.prep, misplaced[:1]) // for decide
	}
	l.places = s.planner.Places(s.ctx, starting, s.Here)
	if setup := s.setupCommand(); setup.Text != "" && slices.ContainsFunc(l.places, func(at plan.Place) bool { return s.needsSetup(at, setup) }) {
		l.unset = true
		if l.agreed, err = setup.Agreed(s.Home); err != nil {
			return err
		}
	}
	l.room, l.file = plan.RoomNow(), s.Home.Path(home.ConfigFile)
	s.runtimes = s.planner.Runtimes()
	return nil
}

// ended returns the agents that the start ends first.
func (s *starter) ended() []agent.ID {
	if s.Fresh {
		return s.Agents
	}
	return nil
}

// apply asks the owner what has to be said first, all at once, and does what was decided.
func (s *starter) apply(up func(context.Context, spawn.UpOptions) ([]spawn.Progress, error)) error {
	if s.Actor == agent.Owner {
		s.tryLogins()
	}
	if len(s.plans) == 0 {
		return nil
	}
	if s.told != "" {
		s.warn("%s; agents on it start, but get no mail until then", s.told)
	}
	if err := s.agreeToAll(); err != nil {
		return err
	}
	s.tellLeftOut(s.starting)
	if err := s.settle(func(id agent.ID) bool { return slices.Contains(s.ended(), id) }); err != nil {
		return err
	}
	for _, id := range s.ended() {
		if err := s.endForFresh(id); err != nil {
			return err
		}
	}
	if s.Fresh { // what they were doing may be finished now
		if err := s.settle(func(agent.ID) bool { return false }); err != nil {
			return err
		}
	}
	s.tellPlaces()
	s.tellBehind()
	s.setUp()
	return s.start(up)
}

// step passes on an agent's progress.
func (s *starter) step(p spawn.Progress) Step {
	as := s.as[p.Agent]
	as.May = s.Config.May(as.Runtime) // as the owner may just have said
	return Step{Progress: p, As: as}
}

func (s *starter) report(p spawn.Progress) {
	switch p.Step {
	case spawn.StepBlocked:
		Daemon{s.Fleet}.blocked(p.Err)
	case spawn.StepSilent:
		s.warn("tmux has not answered yet; waiting up to half a minute for it")
	default:
		s.UI.Step(s.step(p))
	}
}

// stayed reports agents that are up on another runtime than requested.
func (s *starter) stayed() {
	for _, p := range s.misplaced {
		st := s.prep.States.Find(p.Agent)
		p := s.step(spawn.Progress{Agent: st.Agent, Step: spawn.StepAlready, State: st.State, Note: st.Detail, Runtime: st.Runtime, Dir: st.Dir})
		s.UI.Step(p)
		p.Err = fmt.Errorf("runs on %s, not on %s", cmp.Or(st.Runtime, "-"), p.As.Runtime)
		s.result.Agents = append(s.result.Agents, p)
	}
}

// start starts the daemon and the agents. It fails if no agent has come up.
func (s *starter) start(up func(context.Context, spawn.UpOptions) ([]spawn.Progress, error)) error {
	l, ctx := s.Launcher, s.ctx
	setup, err := Daemon{s.Fleet}.tmuxSetup()
	if err != nil {
		s.warn("%v; starting tmux without it", err)
	}
	begin := func() error { // while no `down --all` can end it
		if err := home.Desired(s.Home).Set(agent.DaemonName, true, string(s.Actor)); err != nil {
			return err
		}
		for _, line := range backoff.Clear(s.Home, s.Agents...) {
			s.warn("%s", line)
		}
		var started daemon.Started
		s.result.Daemon, started, s.derr = Daemon{s.Fleet}.startDaemon(ctx)
		s.UI.Step(Step{Daemon: &DaemonStep{s.result.Daemon, started, s.derr}})
		s.stayed()
		return nil
	}
	before := l.Unproved()
	ends, err := up(ctx, spawn.UpOptions{
		Plans: s.plans, Prepared: s.prep, Ticker: true, By: string(s.Actor), Setup: setup, Begin: begin,
		Report: s.report,
	})
	for _, p := range ends {
		s.result.Agents = append(s.result.Agents, s.step(p))
		if p.Step == spawn.StepAlready {
			s.result.Stayed = append(s.result.Stayed, s.prep.States.Find(p.Agent))
		}
	}
	if err != nil {
		if !slices.ContainsFunc(ends, func(p spawn.Progress) bool { return p.Step == spawn.StepReady || p.Step == spawn.StepSlow }) {
			return err
		}
		s.UI.Warn(err) // some of them were started
	}
	s.tellCarried(l.Unproved(), before)
	if s.derr == nil {
		s.derr = DaemonWanted(s.Home)
	}
	if s.derr == nil {
		s.derr = daemon.Wake(ctx, s.Home)
	}
	s.result.Woken = s.derr == nil
	return nil
}

// finish sends the objective and says how the start went.
func (s *starter) finish() error {
	s.tellLost()
	if !s.unsent() && s.Objective != "" {
		if err := s.sendObjective(); err != nil {
			return err
		}
	}
	for _, e := range s.result.Agents {
		if e.State == agent.Waiting && (e.Step == spawn.StepReady || e.Step == spawn.StepAlready) {
			s.result.Dialogs = approve.Group(s.result.Dialogs, e.Agent, e.Note, pane.Decidable(s.runtimes[cmp.Or(e.Runtime, e.As.Runtime)], e.Dialog))
		}
	}
	if s.derr != nil {
		return partly(fmt.Errorf("%w: the agents are up; outboxes and the records of deaths wait for the daemon", s.derr))
	}
	if err := s.outcome(); err != nil {
		if s.disobeyed != nil {
			s.UI.Warn(s.disobeyed)
		}
		return err
	}
	return s.disobeyed
}

// outcome returns ErrNotReady unless all agents that were started are ready.
func (s *starter) outcome() error {
	failed, slow, all := 0, 0, 0
	for _, e := range s.result.Agents[len(s.misplaced):] {
		all++
		switch e.Step {
		case spawn.StepFailed:
			failed++
		case spawn.StepSlow, spawn.StepUnknown:
			slow++
		}
	}
	switch {
	case failed == all && failed > 0:
		return ErrNotReady
	case failed > 0 || slow > 0:
		return partly(ErrNotReady)
	}
	return nil
}

// unsent reports whether the objective is not sent, because its agent runs on another runtime than
// requested, and says so.
func (s *starter) unsent() bool {
	unsent := s.Objective != "" && len(s.misplaced) > 0 && s.misplaced[0].Agent == s.Agents[0]
	if unsent {
		s.warn("the objective was not sent")
	}
	return unsent
}

func (s *starter) sendObjective() error {
	id := s.Agents[0]
	r, err := s.Launcher.Bus.Send(s.ctx, envelope.Envelope{From: s.Actor, To: id, Text: s.Objective, Via: "cli", Time: time.Now()})
	if err != nil {
		return fmt.Errorf("objective: not sent: %w", err)
	}
	s.result.Message = r.ID
	// Recorded here too, as an agent that was already up has had no new start.
	s.Launcher.Journal.Record(s.ctx, store.UpsertActor{ID: id, Role: id.Role(), Objective: s.Objective, Desired: store.DesiredUp})
	return nil
}

// ofOwner returns the fleet with the environment that what the actor starts inherits. If that is an
// agent, it is the one it was started with itself: without what its program adds for its tools, and
// what it has changed there.
func (f *Fleet) ofOwner() (*Fleet, error) {
	environ, err := OwnersEnviron(f.Home, f.Actor, f.Environ)
	if err != nil {
		return nil, err
	}
	if socket := execx.Value(f.Environ, socketVariable); socket != "" {
		environ = append(execx.Without(environ, socketVariable), socketVariable+"="+socket)
	}
	return f.rebuilt(f.Config, environ, f.UI)
}
