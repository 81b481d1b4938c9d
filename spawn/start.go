package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/store"
	"netsky/tmux"
)

// start makes the sessions in one call, trusts only those that the closing list shows with
// our start id, and waits for each to report that it is ready.
func (u *up) start(ctx context.Context, list []prepared, ticker bool) ([]Progress, error) {
	w := watch{l: u.Launcher, list: list, ends: make([]Progress, len(list)), tell: u.tell}
	var sessions []tmux.Session
	for i, p := range list {
		if p.err != nil {
			w.end(i, Progress{Step: StepFailed, Err: p.err})
			continue
		}
		sessions = append(sessions, u.session(p.launch))
	}
	if ticker {
		sessions = append(sessions, u.tickerSession())
	}
	if len(sessions) == 0 {
		return w.ends, nil
	}
	panes, err := u.open(ctx, u.setup(u.Setup), sessions)
	if errors.Is(err, tmux.ErrUnanswered) {
		return w.ends, w.unknown(err)
	}
	if err != nil && len(panes) == 0 {
		for _, p := range list {
			if p.err == nil {
				u.neverRan(p.launch)
			}
		}
		return w.ends, err
	}
	cause := err
	if none := (*tmux.NotStarted)(nil); errors.As(err, &none) {
		cause = none.Cause // each says of itself that it was not
	}
	var ops []store.Op
	for i, p := range list {
		at := slices.IndexFunc(panes, func(q tmux.Pane) bool { return q.Tags[TagStart] == p.launch.Start })
		switch {
		case p.err != nil:
		case at < 0:
			u.neverRan(p.launch)
			w.end(i, Progress{Step: StepFailed, Err: noSession(cause)})
		default:
			list[i].keeper, _ = proc.Find(panes[at].PID) // gone already: nobody
			ops = append(ops, started(p, panes[at])...)
			u.mailLost(ctx, p.launch)
			u.tell(Progress{Agent: p.launch.Agent, Step: StepSpawned})
		}
	}
	var recording sync.WaitGroup
	recording.Go(func() { u.record(ctx, ops...) })
	stop := u.lookouts(ctx, list, panes)
	w.wait(ctx, cmp.Or(u.ReadyWithin, ReadyWithin))
	stop()
	recording.Wait()
	if ticker && !slices.ContainsFunc(panes, func(q tmux.Pane) bool {
		return q.Session == TickerSession && q.Tags[TagHome] == u.Home.Root()
	}) {
		return w.ends, err // whatever it reports, it stopped no agent
	}
	return w.ends, nil
}

func noSession(cause error) error {
	const text = "tmux did not create its session"
	if cause == nil {
		return errors.New(text)
	}
	return fmt.Errorf(text+": %w", cause)
}

// unknown records, for everything tmux was told to start, that it may or may not have been
// started, and returns the error for that. What is on file about these starts stays: once
// tmux answers again, each is found by its start id or seen to be missing.
func (w *watch) unknown(err error) error {
	var ids []agent.ID
	for i, p := range w.list {
		if p.err == nil {
			ids = append(ids, p.launch.Agent)
			w.ends[i] = Progress{Agent: p.launch.Agent, Step: StepUnknown, Err: tmux.ErrUnanswered}
		}
	}
	if len(ids) == 0 {
		ids = append(ids, TickerSession)
	}
	return fmt.Errorf("%s: cannot tell whether tmux started them: %w", agent.Span(ids), err)
}

// dying is how long a tmux server that has been ended may take to exit; it waits for its
// clients. Until then it refuses connections, and no new one can start.
const dying = 3 * time.Second

// open makes the sessions. It waits for a server that is just exiting, and kills one of
// our own that hangs in its exit.
func (u *up) open(ctx context.Context, setup []string, list []tmux.Session) ([]tmux.Pane, error) {
	defer u.Quiet(ctx)()
	defer late(func() { u.tell(Progress{Step: StepSilent}) })()
	for end := time.Now().Add(dying); ; {
		panes, err := u.Tmux.Start(ctx, setup, list)
		if len(panes) > 0 || !errors.Is(err, tmux.ErrNoServer) {
			return panes, err
		}
		if time.Now().After(end) {
			if u.Shared {
				return nil, err
			}
			if rerr := u.Tmux.Reap(ctx); rerr != nil {
				return nil, errors.Join(err, rerr)
			}
			return u.Tmux.Start(ctx, setup, list)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// tellAfter is how long tmux may take to start agents before the wait is reported.
const tellAfter = 5 * time.Second

// late calls tell if stop is not called within tellAfter. After stop has returned, tell is
// not called.
func late(tell func()) (stop func()) {
	done, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		select {
		case <-done:
		case <-time.After(tellAfter):
			tell()
		}
	}()
	return func() {
		close(done)
		<-told
	}
}

func (u *up) setup(more []string) []string {
	if u.Shared {
		return nil
	}
	return append([]string{ // for the status line and the inbox's popup
		"set-environment -g NETSKY_BIN " + tmux.Quote(u.Binary),
		"set-environment -g NETSKY_HOME " + tmux.Quote(u.Home.Root()),
		// The server may have been started from within an agent.
		"set-environment -gr NETSKY_START", "set-environment -gr AGENT_N",
	}, more...)
}

func (u *up) session(la agent.Launch) tmux.Session {
	return tmux.Session{
		Name:    string(la.Agent),
		Dir:     la.Dir,
		Command: "exec " + execx.Quote(u.Binary) + " run " + string(la.Agent),
		Env: []string{
			"AGENT_N=" + la.Agent.N(),
			"NETSKY_PROMPT_FILE=" + la.PromptFile,
			// A person's own server has no NETSKY_HOME, or another home's.
			"NETSKY_HOME=" + u.Home.Root(),
			"NETSKY_START=" + la.Start,
		},
		Tags: map[string]string{TagHome: u.Home.Root(), TagStart: la.Start},
	}
}

func started(p prepared, pane tmux.Pane) []store.Op {
	return Started(p.launch, p.plan.Objective, pane.Session, pane.PID)
}

// mailLost tells the owner, once, that an agent could not continue its conversation. If that
// can't be sent, it is on record.
func (u *up) mailLost(ctx context.Context, la agent.Launch) {
	if la.Lost != (agent.Lost{}) {
		_, _ = u.Bus.Send(ctx, envelope.Envelope{
			ID: lostKey(la), From: la.Agent, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: string(la.Agent) + ": " + la.Lost.String(),
			Time: time.Now(), Extra: envelope.ToPhone(),
		})
	}
}

func lostKey(la agent.Launch) string { return "lost-" + string(la.Agent) + "-" + la.Lost.Conversation }

// Started returns what to record about a start. Recording it twice has the effect of once.
func Started(la agent.Launch, objective, session string, pid int) []store.Op {
	ops := []store.Op{
		store.UpsertActor{
			ID: la.Agent, Role: la.Agent.Role(), Runtime: la.Runtime,
			Dir: la.Dir, Objective: objective, Desired: store.DesiredUp,
		},
		store.StartSession{
			Start: la.Start, Actor: la.Agent, Runtime: la.Runtime, Tmux: session,
			PID: pid, State: agent.Starting, Started: store.Time(la.StartedMS),
		},
		store.StartedLog(la),
	}
	if la.Lost != (agent.Lost{}) {
		ops = append(ops, store.AddLog{
			Key: lostKey(la), Level: store.LevelWarn, Part: "up", Actor: la.Agent, About: la.Start, Text: la.Lost.String(), Time: store.Time(la.StartedMS),
		})
	}
	return ops
}

// environment returns what an agent's program inherits: the cleaned environment of the up
// that started it, and the agent's identity.
func (u *up) environment(la agent.Launch, environ []string) []string {
	env := execx.Without(execx.Inherited(environ), "PATH", "PWD", "NETSKY_HOME")
	return append(env,
		"PATH="+u.path(environ),
		"PWD="+la.Dir,
		"NETSKY_HOME="+u.Home.Root(),
		"NETSKY_START="+la.Start,
		"NETSKY_PROMPT_FILE="+la.PromptFile,
		"AGENT_N="+la.Agent.N())
}

// path returns PATH with netsky's own directory in front, so that "netsky" in an agent is
// always the binary that started it.
func (u *up) path(environ []string) string {
	own := u.Binary[:max(strings.LastIndexByte(u.Binary, '/'), 1)]
	rest := cmp.Or(execx.Value(environ, "PATH"), "/usr/local/bin:/usr/bin:/bin")
	if first, _, _ := strings.Cut(rest, ":"); first == own {
		return rest
	}
	return own + ":" + rest
}

// tickerSession is the session that looks after the daemon. It is not an agent: it has no
// mailbox and no keeper, and carries only the home's tag.
func (u *up) tickerSession() tmux.Session {
	return tmux.Session{
		Name:    TickerSession,
		Dir:     u.Home.Root(),
		Command: "exec " + execx.Quote(u.Binary) + " watchdog ticker",
		Env:     []string{"NETSKY_HOME=" + u.Home.Root(), "PATH=" + u.path(u.Environ), TickerSocket + "=" + u.socket()},
		Tags:    map[string]string{TagHome: u.Home.Root()},
	}
}
