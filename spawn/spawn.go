// Package spawn brings agents up and down and says how each of them is.
//
// An agent is up when three things agree: its tmux session, tagged with this
// home and a start id; its keeper file, which names the program that runs in the
// pane under the same start id; and that program's process. What a runtime says
// about its agent (state/agents/) is believed only under the same start id too,
// so nothing that an earlier start left behind can speak for a later one.
//
// Everything is prepared before anything runs: directories, prompt and
// configuration first, then one batched tmux call for all sessions. A crash in
// between leaves files that the next up overwrites, and no session; a crash
// after it leaves sessions that the next up finds and takes as they are.
//
// spawn knows no runtime by name: each is a Runtime, handed in by the caller.
package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/program"
	"netsky/bus"
	"netsky/internal/advice"
	"netsky/spawn/pane"
	"netsky/store"
	"netsky/tmux"
)

// The user options that mark a tmux session as ours.
const (
	TagHome  = "@netsky-home"
	TagStart = "@netsky-start"
)

// Sessions of ours that are no agents.
const (
	TickerSession = "netsky-ticker"
	HubSession    = "netsky-hub"
)

// ReadyWithin is how long up waits for an agent to say that it is ready.
const ReadyWithin = 15 * time.Second

// A Runtime knows how to start one kind of agent.
type Runtime interface {
	Name() string
	// Check says what stands in the way of a start: a missing program, a
	// missing login. It changes nothing.
	Check(ctx context.Context, l agent.Launch) error
	// Prepare writes the runtime's own files and completes the launch: Argv
	// with an absolute program, Env. It is called for several agents at once.
	Prepare(ctx context.Context, l *agent.Launch) error
}

// A Launcher starts and ends the agents of one home. All its fields are set
// before its first use and not changed afterwards.
type Launcher struct {
	Home    home.Dir
	Tmux    *tmux.Server
	Bus     *bus.Bus
	Journal *store.Journal
	Binary  string   // this netsky, absolute
	Shared  bool     // the tmux server is a person's own: nothing but sessions is made on it
	Environ []string // what agents inherit, before it is cleaned

	times times

	proofs sync.Map // of a start id: nothing of that start is left, as this Launcher has seen
}

// times are how long things may take; 0 is the default. Only tests set them.
type times struct {
	ready time.Duration // up, until an agent says that it is ready
	down  time.Duration // down, until an agent acks or is gone

	orphaned time.Duration // up, until a program ends whose session has gone

	pane.Times

	atOnce int // agents that are started together; not a time
}

// ErrForeign reports a session that has an agent's name and is not of this home:
// netsky neither uses nor ends it.
var ErrForeign = errors.New("the session of that name is not this netsky's")

// A ForeignError is the ErrForeign of one session.
type ForeignError struct {
	Session string
	Socket  string // the tmux server's
	Home    string // the netsky home that it belongs to, "" if it is a person's own
}

func (e *ForeignError) Error() string {
	if e.Home != "" {
		return fmt.Sprintf("%s: the session of that name belongs to the netsky home %s (tmux socket %s)", e.Session, e.Home, e.Socket)
	}
	return fmt.Sprintf("%s: %v (tmux socket %s)", e.Session, ErrForeign, e.Socket)
}

// Advice is what to do next about it.
func (e *ForeignError) Advice() string {
	if e.Home != "" {
		return "`NETSKY_HOME=" + advice.Word(e.Home) + " netsky status` shows it; without [tmux] socket and NETSKY_TMUX_SOCKET each home has a tmux server of its own"
	}
	return "end or rename that session, or give netsky a server of its own: `socket = \"netsky\"` under [tmux] in netsky.toml"
}

// Is makes it an ErrForeign.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

// record puts down what happened. Records never fail a verb: what could not be
// written now waits in the spool, and the daemon or doctor tell of it.
func (l *Launcher) record(ctx context.Context, ops ...store.Op) {
	if l.Journal != nil {
		l.Journal.Record(ctx, ops...)
	}
}

// A session is one tmux session of ours.
type session struct {
	tmux.Pane
	start  string
	others []tmux.Pane // a person's
}

// A view is what the tmux server has of this home, and which of our names are
// taken there by sessions that are not ours.
type view struct {
	agents  map[agent.ID]session
	ticker  *tmux.Pane
	foreign map[string]*ForeignError
}

func (l *Launcher) view(ctx context.Context) (view, error) {
	panes, err := l.Tmux.Panes(ctx)
	if err != nil {
		return view{}, err
	}
	v := view{agents: make(map[agent.ID]session), foreign: make(map[string]*ForeignError)}
	for _, p := range panes {
		id, err := agent.Parse(p.Session)
		ours := p.Tags[TagHome] == l.Home.Root()
		switch {
		case p.Session == TickerSession && ours:
			v.ticker = &p
		case p.Session != TickerSession && (err != nil || !id.IsAgent()):
		case !ours:
			v.foreign[p.Session] = &ForeignError{Session: p.Session, Socket: l.Tmux.Socket, Home: p.Tags[TagHome]}
		case p.Tags[TagStart] != "":
			// A person may split the window: the keeper's pane is the one with
			// the lowest number, as it came first.
			have, ok := v.agents[id]
			switch {
			case !ok:
				have = session{Pane: p, start: p.Tags[TagStart]}
			case paneNumber(p.ID) < paneNumber(have.ID):
				have.others = append(have.others, have.Pane)
				have.Pane = p
			default:
				have.others = append(have.others, p)
			}
			v.agents[id] = have
		}
	}
	return v, nil
}

// ErrPerson is what the failure of an agent matches that would have to be
// replaced together with a pane of a person's in its session.
var ErrPerson = errors.New("a pane in its session is not netsky's")

// keepPerson is the error of an agent that can't be replaced without ending what
// a person runs in its session: panes that were split off, or the one that is
// left where the keeper's has gone. nil if there is none.
func (l *Launcher) keepPerson(id agent.ID, s session) error {
	person := s.others
	k, err := l.Home.LoadKeeper(id)
	if err == nil && k.Start == s.start && k.Own.Gone() {
		person = append([]tmux.Pane{s.Pane}, person...)
	}
	if len(person) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s runs %s; it was not ended", ErrPerson, person[0].ID, person[0].Command)
}

// Quiet keeps sessions from being made and ended by other processes of this home
// until release is called. Whoever attaches a control client needs that: tmux
// 3.3a dies, with all agents, when a session comes or goes while one is
// attaching. It waits for a few seconds at most, and a home that takes no lock
// stops nobody.
func (l *Launcher) Quiet(ctx context.Context) (release func()) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lock, err := l.Home.WaitLock(ctx, home.TmuxLock, nil)
	if err != nil {
		return func() {}
	}
	return func() { lock.Unlock() }
}

func paneNumber(id string) (n int) {
	fmt.Sscanf(id, "%%%d", &n)
	return n
}

// environment is what an agent's program inherits: that of the up that started
// it, cleaned, and who it is.
func (l *Launcher) environment(la agent.Launch, environ []string) []string {
	env := program.Without(program.Inherited(environ), "PATH", "PWD", "NETSKY_HOME")
	return append(env,
		"PATH="+l.path(environ),
		"PWD="+la.Dir,
		"NETSKY_HOME="+l.Home.Root(),
		"NETSKY_START="+la.Start,
		"NETSKY_PROMPT_FILE="+la.PromptFile,
		"AGENT_N="+la.Agent.N())
}

// path is PATH with netsky's own directory in front, so that an agent that
// says "netsky" always means the one that started it.
func (l *Launcher) path(environ []string) string {
	own := l.Binary[:max(strings.LastIndexByte(l.Binary, '/'), 1)]
	rest := cmp.Or(program.Value(environ, "PATH"), "/usr/local/bin:/usr/bin:/bin")
	if first, _, _ := strings.Cut(rest, ":"); first == own {
		return rest
	}
	return own + ":" + rest
}

// mark is the word in its environment by which a process shows which start it
// belongs to.
func mark(start string) string { return "NETSKY_START=" + start }

// shellWord quotes a path for the shell that tmux starts the pane with.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
