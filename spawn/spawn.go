// Package spawn starts and ends agents and reports the state of each.
//
// An agent is up when three things agree: its tmux session, tagged with this home and a
// start id; its keeper file, which names the program in the pane under the same start id;
// and that program's process. A runtime's report on its agent (state/agents/) counts only
// under the same start id, so nothing left by an earlier start is mistaken for a later
// one.
//
// Everything is prepared before anything runs: directories, prompt and configuration
// first, then one batched tmux call for all sessions. A crash before that call leaves
// files that the next up overwrites, and no session; a crash after it leaves sessions that
// the next up adopts.
//
// spawn knows no runtime by name: the caller passes each in as a Runtime.
package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/tmux"
)

// User options that mark a tmux session as netsky's.
const (
	TagHome  = "@netsky-home"
	TagStart = "@netsky-start"
)

// Sessions of netsky that are not agents.
const (
	TickerSession = "netsky-ticker"
	HubSession    = "netsky-hub"
)

// ReadyWithin is how long up waits for an agent to report that it is ready.
const ReadyWithin = 15 * time.Second

// A Runtime knows how to start one kind of agent.
type Runtime interface {
	Name() string
	// Check reports what prevents a start: a missing program, a missing login. It changes
	// nothing.
	Check(ctx context.Context, l agent.Launch) error
	// Prepare writes the runtime's own files and completes the launch: Argv with an
	// absolute program, and Env. It is called for several agents at once.
	Prepare(ctx context.Context, l *agent.Launch) error
}

// A Site is one home and the tmux server of its agents. Its methods say what is there. Its fields are
// set before its first use and not changed afterwards.
type Site struct {
	Home    home.Dir
	Tmux    *tmux.Server
	Bus     *bus.Bus
	Journal *store.Journal
	Binary  string   // this netsky, absolute
	Shared  bool     // the tmux server is a person's: netsky only makes sessions on it
	Environ []string // what agents inherit, before it is cleaned
	AtOnce  int      // how many agents are started together, 0 for 60; fewer spare a small machine
}

// An Ender ends what runs at a site, and knows what may be left of it.
type Ender struct {
	Site

	proofs sync.Map // by start id: nothing of that start is left, as this Ender has seen
}

// A Launcher starts and ends the agents of a site.
type Launcher struct{ Ender }

// New returns the Launcher of a site.
func New(s Site) *Launcher { return &Launcher{Ender{Site: s}} }

// ErrForeign reports a session that has an agent's name but does not belong to this home;
// netsky neither uses nor ends it.
var ErrForeign = errors.New("the session of that name belongs to something else")

// A ForeignError is the ErrForeign of one session.
type ForeignError struct {
	Session string
	Socket  string // the tmux server's
	Home    string // the netsky home it belongs to, "" if it is a person's own
}

func (e *ForeignError) Error() string {
	if e.Home != "" {
		return fmt.Sprintf("%s: the session of that name belongs to the netsky home %s (tmux socket %s)", e.Session, e.Home, e.Socket)
	}
	return fmt.Sprintf("%s: %v (tmux socket %s)", e.Session, ErrForeign, e.Socket)
}

// Advice returns what to do next about it.
func (e *ForeignError) Advice() string {
	if e.Home != "" {
		return "`NETSKY_HOME=" + advice.Word(e.Home) + " netsky status` shows it; without [tmux] socket and NETSKY_TMUX_SOCKET each home has a tmux server of its own"
	}
	return "end or rename that session, or give netsky a server of its own: `socket = \"netsky\"` under [tmux] in netsky.toml"
}

// Is makes it match ErrForeign.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

// record records what happened. A failed record never fails a verb: it waits in the spool,
// and the daemon and doctor report it.
func (l *Site) record(ctx context.Context, ops ...store.Op) {
	if l.Journal != nil {
		l.Journal.Record(ctx, ops...)
	}
}

// A session is one tmux session of this home.
type session struct {
	tmux.Pane
	start  string
	others []tmux.Pane // a person's
}

// A view is what the tmux server has of this home, and which of our names other sessions
// have taken.
type view struct {
	agents  map[agent.ID]session
	ticker  *tmux.Pane
	foreign map[string]*ForeignError
}

func (l *Site) view(ctx context.Context) (view, error) {
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
			// A person may split the window: the keeper's pane was the first and has the
			// lowest number.
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

// ErrPerson is returned for an agent that can't be replaced without ending a person's pane
// in its session.
var ErrPerson = errors.New("a pane in its session is not netsky's")

// keepPerson returns an error if the agent can't be replaced without ending what a person
// runs in its session: panes that were split off, or the one that is left after the
// keeper's has gone.
func (l *Site) keepPerson(id agent.ID, s session) error {
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

// Quiet keeps other processes of this home from making and ending sessions until release
// is called. Attaching a control client needs that: tmux 3.3a dies, with all agents, when
// a session is made or ended while a client attaches. It waits a few seconds at most, and
// does nothing in a home where no lock can be taken.
func (l *Site) Quiet(ctx context.Context) (release func()) {
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

// mark returns the environment entry by which a process shows which start it belongs to.
func mark(start string) string { return "NETSKY_START=" + start }

// kept returns the agents with a keeper's record, a launch or unproved starts on file.
// With an error there may be more.
func (l *Site) kept() (ids []agent.ID, err error) {
	for _, rel := range []string{home.KeeperDir, home.LaunchDir, unprovedDir} {
		list, lerr := home.Agents(l.Home, rel)
		ids, err = append(ids, list...), errors.Join(err, lerr)
	}
	slices.SortFunc(ids, agent.Compare)
	return slices.Compact(ids), err
}

// socket returns the configured tmux socket.
func (l *Site) socket() string {
	if l.Tmux.Socket == "" {
		return "default"
	}
	return l.Tmux.Socket
}

// elsewhere reports whether a launch's socket is not the configured one.
func (l *Site) elsewhere(socket string) bool { return socket != "" && socket != l.socket() }

// servers returns the tmux servers that may hold something of this home: the configured
// one, then those that agents and the ticker were started on before.
func (l *Site) servers() []*tmux.Server {
	list := []*tmux.Server{l.Tmux}
	seen := []string{l.socket()}
	add := func(socket string) {
		if socket == "" || slices.Contains(seen, socket) {
			return
		}
		seen = append(seen, socket)
		list = append(list, &tmux.Server{Socket: socket, Conf: l.Tmux.Conf, Env: l.Tmux.Env, Tags: l.Tmux.Tags, Known: l.Tmux.Known})
	}
	kept, _ := l.kept() // a caller that needs the error calls kept
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

// TickerUp reports whether the ticker's session exists, or its process if sessions can't
// be seen.
func (l *Site) TickerUp(ctx context.Context) (bool, error) {
	v, err := l.view(ctx)
	if v.ticker != nil {
		return true, nil
	}
	if l.tickerLives() {
		return true, nil
	}
	return false, err
}

// tickerLives reports whether the process recorded as the ticker is alive, whatever
// session it is in.
func (l *Site) tickerLives() bool {
	t, err := l.Home.LoadTicker()
	return err == nil && t.Alive()
}

func (l *Site) atOnce() int { return cmp.Or(l.AtOnce, atOnce) }
