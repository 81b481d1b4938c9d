package spawn

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/prompts"
)

// A Plan describes one agent to start.
type Plan struct {
	Agent     agent.ID
	Runtime   Runtime
	Dir       string
	Model     string
	Resume    string        // the conversation to continue; "" starts a fresh one
	Prompt    prompts.Input // Agent and Dir are filled in from the plan
	Objective string
	// Environ is what the agent inherits, before it is cleaned; nil is the launcher's. A
	// restart passes on the previous environment.
	Environ []string
	Start   string // that Restart ends, or a Down with DownOptions.Restart has ended
	Why     string // for Restart, for the record; "": its receiver has gone
}

// UpOptions says what Up does besides starting agents.
type UpOptions struct {
	Plans []Plan
	// Prepared, if not nil, is what [Launcher.Prepare] found about the plans, and is not
	// checked again; Up checks the rest itself.
	Prepared *Preparation
	Ticker   bool // start the ticker's session too
	// Wanted leaves desired states as they are, and starts only agents that are wanted up.
	Wanted bool
	By     string         // who asked, for the record
	Report func(Progress) // each step as it happens; may be nil
	Setup  []string       // commands for the tmux server, before the sessions
	// Begin, if not nil, is called once all checks have passed and before anything is
	// started; no down and no other up runs until Up returns. If it returns an error,
	// nothing is started.
	Begin func() error
	// ReadyWithin is how long to wait for each agent to be ready, 0 for [ReadyWithin]; a
	// busy machine needs more.
	ReadyWithin time.Duration
}

// A Step is a step in starting an agent.
type Step string

const (
	StepBlocked Step = "blocked"  // another up is running
	StepAlready Step = "already"  // it was already up
	StepSpawned Step = "spawned"  // its session exists
	StepReady   Step = "ready"    // it has reported that it is ready
	StepFailed  Step = "failed"   // Err is the reason, Lines what its pane shows
	StepSlow    Step = "starting" // neither ready within ReadyWithin nor dead
	StepSilent  Step = "silent"   // about no agent: still waiting for tmux to answer
	StepUnknown Step = "unknown"  // tmux did not answer: it may or may not have been started; only returned, never reported
)

// Progress is one step that up reports.
type Progress struct {
	Agent  agent.ID
	Step   Step
	State  agent.State // with StepReady and StepAlready
	Note   string      // the evidence for the state, or what it waits for
	Dialog string      // the name of the dialog at which it waits
	// Runtime and Dir, with StepAlready, are what the agent runs on and where, whatever was
	// planned.
	Runtime, Dir string
	Err          error
	Lines        []string // with StepFailed: the pane's first lines
}

// prepared is a plan whose files are written, or err if that failed.
type prepared struct {
	plan   Plan
	launch agent.Launch
	keeper proc.Process // once its session exists
	err    error
}

// Up starts the planned agents that are not up yet. It runs all checks first and starts
// none if any fails; the error then joins all failed checks. After that, one agent's
// failure does not stop the others: the returned list has the last step of each, in the
// order of the plans. Many agents are started in batches; once a batch was begun, the list
// is returned beside an error too. A batch in which no agent starts is the last. Of two
// concurrent ups, the second waits for the first.
func (l *Launcher) Up(ctx context.Context, o UpOptions) (ends []Progress, err error) {
	u := newUp(l, o)
	err = l.Alone(ctx, func(err error) { u.tell(Progress{Step: StepBlocked, Err: err}) }, func() error {
		if err := u.Prepared.look(ctx, l, o.Plans); err != nil {
			return err
		}
		ends, err = u.run(ctx)
		return err
	})
	return ends, err
}

// UpPrepared is Up for a caller that is [Launcher.Alone], and has been since it called Prepare:
// what that saw is not looked at again.
func (l *Launcher) UpPrepared(ctx context.Context, o UpOptions) ([]Progress, error) {
	return newUp(l, o).run(ctx)
}

// up carries out one Up, while nothing else starts or ends agents.
type up struct {
	*Launcher
	UpOptions
	tell   func(Progress)
	todo   []int      // the plans of agents that are not up
	result []Progress // the last step of each plan
	ticker bool       // it is started with the first batch
}

func newUp(l *Launcher, o UpOptions) *up {
	u := &up{Launcher: l, UpOptions: o, tell: o.Report, result: make([]Progress, len(o.Plans))}
	if u.tell == nil {
		u.tell = func(Progress) {}
	}
	if u.Prepared == nil {
		u.Prepared = new(Preparation)
	}
	return u
}

func (u *up) run(ctx context.Context) ([]Progress, error) {
	prep := u.Prepared
	changed, err := u.withdraw(ctx)
	if err == nil && changed {
		err = prep.look(ctx, u.Launcher, u.Plans)
	}
	if err != nil {
		return nil, err
	}
	if other := prep.view.foreign[TickerSession]; u.Ticker && other != nil {
		return nil, other
	}
	var starts []Plan
	for i, p := range u.Plans {
		if err := prep.Taken[p.Agent]; err != nil {
			return nil, err
		}
		if u.result[i] = u.stays(prep.States.Find(p.Agent)); u.result[i].Step == "" {
			u.todo, starts = append(u.todo, i), append(starts, p)
		}
	}
	if err := prep.check(ctx, u.Launcher, starts); err != nil {
		return nil, err
	}
	if u.Begin != nil {
		if err := u.Begin(); err != nil {
			return nil, err
		}
	}
	if err := u.writeConf(); err != nil {
		return nil, err
	}
	if err := home.Desired(u.Home).SetAll(u.wantedFirst(), true, u.By); err != nil {
		return nil, err
	}
	for _, p := range u.result {
		switch p.Step {
		case StepAlready:
			if u.Wanted {
				break
			}
			// A down that died may have left its request; the later up overrides it.
			if _, err := u.Bus.Retract(ctx, p.Agent, isShutdown); err != nil {
				return nil, fmt.Errorf("%s: %w", p.Agent, err)
			}
			u.tell(p)
		case StepFailed:
			u.tell(p)
		}
	}
	if u.Ticker {
		replaced, err := u.replaceTicker(ctx, prep.view)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", TickerSession, err)
		}
		u.ticker = replaced || prep.view.ticker == nil && !u.tickerLives()
	}
	return u.result, u.batches(ctx)
}

// stays returns the last step of an agent that is not started: it runs, is not wanted, or a person
// works in its session. Without a step it is started.
func (u *up) stays(st Status) Progress {
	s, ok := u.Prepared.view.agents[st.Agent]
	var err error
	switch {
	case st.Alive():
		return wasUp(st)
	case u.Wanted && !st.Wanted:
		err = ErrUnwanted
	case ok:
		err = u.keepPerson(st.Agent, s)
	}
	if err != nil {
		return Progress{Agent: st.Agent, Step: StepFailed, Err: err}
	}
	return Progress{}
}

// Alone calls do while no up, down or Restart runs. blocked, if not nil, is called once
// with the refusal if it has to wait.
func (l *Launcher) Alone(ctx context.Context, blocked func(error), do func() error) error {
	lock, err := l.Home.WaitLock(ctx, "up", blocked)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return do()
}

// each calls do with 0 to n-1, a few at a time, and returns when all have returned. File
// operations in the same directories wait for one another, and cost twice as much with
// more workers than processors.
func each(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, 8, max(2, runtime.GOMAXPROCS(0))) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

func (p Plan) input() prompts.Input {
	in := p.Prompt
	in.Agent, in.Dir = p.Agent, p.Dir
	return in
}

func (l *Launcher) inherited(p Plan) []string {
	if p.Environ != nil {
		return p.Environ
	}
	return l.Environ
}

//go:embed tmux.conf
var tmuxConf []byte

// earlierConfs are the SHA-256 sums of the tmux.conf files that earlier versions wrote: a
// file with one of them has not been edited.
var earlierConfs = []string{
	"52dff7ee88cb34e30f71fc0ce93509f485d56f161541889007848c2dbc685a45",
	"a963d5f1b89aa21d45ff9e9decdda8e3265a65511b79ec4791acca5d4d53e41f",
	"80bd46216f8f318c9c77dec2df0a3cf9c9fe910ca8281c46b14d56169c577099",
}

// writeConf writes our server's tmux.conf if there is none, or one of an earlier version
// that nobody has edited.
func (u *up) writeConf() error {
	have, err := u.Home.ReadFile(home.TmuxConfFile, 1<<20)
	if errors.Is(err, fs.ErrNotExist) || err == nil && slices.Contains(earlierConfs, fmt.Sprintf("%x", sha256.Sum256(have))) {
		return u.Home.WriteFile(home.TmuxConfFile, tmuxConf, false)
	}
	return err
}

// prepare writes all that the agent's start needs: mailbox, prompt, the
// runtime's files, launch. It clears what an earlier start left to be believed.
func (u *up) prepare(ctx context.Context, p Plan) prepared {
	la, err := u.write(ctx, p, u.Prepared.Found[p.Agent].Prompt)
	la.Agent = p.Agent
	return prepared{plan: p, launch: la, err: err}
}

func (u *up) write(ctx context.Context, p Plan, prompt string) (la agent.Launch, err error) {
	if err := u.Bus.Make(p.Agent); err != nil {
		return la, err
	}
	rel := home.PromptFile(p.Agent)
	// To replace a file makes the disk write; most starts have the prompt of the last.
	if have, err := u.Home.ReadFile(rel, int64(len(prompt))); err != nil || string(have) != prompt {
		if err := u.Home.WriteFile(rel, []byte(prompt), false); err != nil {
			return la, err
		}
	}
	if _, err := u.Bus.Retract(ctx, p.Agent, isShutdown); err != nil {
		return la, err
	}
	la = agent.Launch{
		Agent: p.Agent, Start: agent.NewStart(), Runtime: p.Runtime.Name(), Dir: p.Dir, Model: p.Model,
		Resume: p.Resume, PromptFile: u.Home.Path(rel), StartedMS: time.Now().UnixMilli(), Socket: u.socket(),
	}
	_, la.Silent = p.Runtime.(Silent)
	la.Env = u.environment(la, u.inherited(p))
	if err := p.Runtime.Prepare(ctx, &la); err != nil {
		return la, err
	}
	if len(la.Argv) == 0 || !filepath.IsAbs(la.Argv[0]) {
		return la, fmt.Errorf("runtime %s: no absolute program in %q", la.Runtime, la.Argv)
	}
	// In this order, so that a failure half way never hides that something may run.
	u.prove(p.Agent)
	if err := u.carry(p.Agent); err != nil {
		return la, err
	}
	if err := u.Home.SaveLaunch(la); err != nil {
		return la, err
	}
	return la, u.Home.ClearReports(p.Agent)
}

func isShutdown(e envelope.Envelope) bool { return e.Kind == envelope.KindShutdown }
