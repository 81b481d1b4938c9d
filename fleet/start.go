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

	planner   *plan.Planner
	runtimes  map[string]spawn.Runtime
	plans     []spawn.Plan
	prep      *spawn.Preparation
	places    []plan.Place // of those to start
	as        map[agent.ID]As
	misplaced []spawn.Status // up on another runtime than requested
	disobeyed error          // options that can't be applied to agents that are up
	derr      error          // of the daemon

	result StartResult
}

// Start starts agents that are not up, and the daemon; nothing is ended but agents that are to
// begin anew. What prevents the start is found, and every question is asked, before anything is
// started or ended. A crash leaves what [spawn.Launcher.Up] leaves.
func (f *Fleet) Start(ctx context.Context, r StartRequest) (StartResult, error) {
	if err := f.May("up"); err != nil {
		return StartResult{}, err
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
	if err := s.plan(); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if s.Actor == agent.Owner {
		s.tryLogins()
	}
	if len(s.plans) == 0 {
		s.stayed()
		s.result.Daemon, _ = daemon.Ping(s.ctx, s.Home) // none if it does not answer
		s.unsent()
		return s.disobeyed
	}
	if err := s.agree(); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	return s.finish()
}

// plan decides what is started, on which runtime and where.
func (s *starter) plan() error {
	if err := s.chooseDir(); err != nil {
		return err
	}
	var err error
	if s.plans, s.result.Demo, err = s.planner.Plans(s.ctx, s.Agents, plan.Wish{Runtime: s.Runtime, Dir: s.Dir}); err != nil {
		return err
	}
	if s.Dir != "" { // also for agents that are up: no advice may end them for an unusable directory
		if err := execx.CheckDir(s.plans[0].Dir); err != nil {
			return usagef("--dir: %w; nothing was started or ended", err)
		}
	}
	s.result.Elsewhere = s.tellWhere()
	s.plans[0].Objective = s.Objective
	return nil
}

// prepare finds what prevents the start before anything is started.
func (s *starter) prepare() (err error) {
	all := s.plans
	s.runtimes = s.planner.Runtimes()
	s.prep, err = s.Launcher.Prepare(s.ctx, all, s.ended()...)
	s.plans, s.misplaced = plan.RunningElsewhere(all, s.prep.States, s.Runtime)
	var blocked error
	if i := slices.IndexFunc(all, func(p spawn.Plan) bool { return len(s.misplaced) > 0 && p.Agent == s.misplaced[0].Agent }); i >= 0 && err == nil {
		blocked = s.Launcher.Recheck(s.ctx, s.prep, all[i:i+1])
	}
	disobeyed := plan.DisobeyedType(s.misplaced, plan.Wish{Runtime: s.Runtime, Dir: s.Dir}, blocked)
	if err != nil {
		if disobeyed != nil {
			s.warn("%v", disobeyed)
		}
		return err
	}
	for _, p := range all {
		s.as[p.Agent] = As{Runtime: p.Runtime.Name(), Dir: p.Dir}
	}
	if disobeyed == nil {
		disobeyed = plan.DisobeyedDir(s.plans, s.prep.States, s.Dir, s.planner.Base)
	}
	if disobeyed != nil {
		s.disobeyed = partly(disobeyed)
	}
	return nil
}

// ended returns the agents that the start ends first.
func (s *starter) ended() []agent.ID {
	if s.Fresh {
		return s.Agents
	}
	return nil
}

// agree gets the owner's consent where it is needed, and ends agents that begin anew.
func (s *starter) agree() error {
	starting := slices.DeleteFunc(slices.Clone(s.plans), func(p spawn.Plan) bool { return s.prep.States.Find(p.Agent).Alive() })
	if err := s.served(starting); err != nil {
		return err
	}
	said, err := s.consents(starting)
	if err != nil {
		return err
	}
	for _, c := range said { // the answer may bring up another obstacle
		of := slices.DeleteFunc(slices.Clone(starting), func(p spawn.Plan) bool { return p.Runtime.Name() != c.w.Runtime })
		if err := s.Launcher.Recheck(s.ctx, s.prep, of); err != nil {
			return err
		}
	}
	if err := s.agreeToMany(starting); err != nil {
		return err
	}
	if err := s.recordConsents(said); err != nil {
		return err
	}
	s.tellLeftOut(starting)
	if err := s.place(starting); err != nil {
		return err
	}
	for _, id := range s.ended() {
		if err := s.endForFresh(id); err != nil {
			return err
		}
	}
	if s.Fresh { // what they were doing may be finished now
		if err := s.settle(starting, func(agent.ID) bool { return false }); err != nil {
			return err
		}
	}
	s.tellPlaces()
	s.tellBehind()
	s.setUp()
	return nil
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
		s.blocked(p.Err)
	case spawn.StepSilent:
		s.warn("tmux has not answered yet; waiting up to half a minute for it")
	default:
		s.UI.Step(s.step(p))
	}
}

// stayed reports agents that are up on another runtime than requested.
func (s *starter) stayed() {
	for _, st := range s.misplaced {
		p := s.step(spawn.Progress{Agent: st.Agent, Step: spawn.StepAlready, State: st.State, Note: st.Detail, Runtime: st.Runtime, Dir: st.Dir})
		s.UI.Step(p)
		p.Err = fmt.Errorf("runs on %s, not on %s", cmp.Or(st.Runtime, "-"), p.As.Runtime)
		s.result.Agents = append(s.result.Agents, p)
	}
}

// start starts the daemon and the agents. It fails if no agent has come up.
func (s *starter) start() error {
	l, ctx := s.Launcher, s.ctx
	setup, err := s.tmuxSetup()
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
		s.result.Daemon, started, s.derr = s.startDaemon(ctx)
		s.UI.Step(Step{Daemon: &DaemonStep{s.result.Daemon, started, s.derr}})
		s.stayed()
		return nil
	}
	before := l.Unproved()
	ends, err := l.Up(ctx, spawn.UpOptions{
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
