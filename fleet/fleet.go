package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"netsky/agent"
	"netsky/bus"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
)

// A Fleet is one netsky on behalf of whoever acts on it. Its methods are the deeds.
type Fleet struct {
	Home     home.Dir
	Config   *config.Config
	Launcher *spawn.Launcher
	Actor    agent.ID // the owner, or the agent whose program this process belongs to
	Environ  []string // this process's
	Version  string   // of this netsky
	UI       UI
	Runtimes map[string]spawn.Runtime // by name; nil: those of the configuration

	checks *checkRuns // that run in this process, if it offers deeds
	host   string     // where the owner is who acts, "" for this one
}

// A UI is how a deed speaks with whoever asked for it, while it runs.
type UI interface {
	// Ask has a person answer a question with one line. The error is ErrNobody if nobody can be
	// asked here.
	Ask(question string) (answer string, err error)
	// Step reports progress.
	Step(Step)
	// Warn reports what does not stop the deed. The error may carry advice. It is called by several
	// goroutines at once.
	Warn(error)
}

// ErrNobody is returned by a UI that has nobody to ask.
var ErrNobody = errors.New("nobody can be asked here")

// A PartlyError is returned when some of what was asked for was done, or it is not done yet.
type PartlyError struct{ Err error }

func (e *PartlyError) Error() string { return e.Err.Error() }
func (e *PartlyError) Unwrap() error { return e.Err }

func partly(err error) error { return &PartlyError{err} }

func usagef(format string, args ...any) error {
	return &plan.UsageError{Err: fmt.Errorf(format, args...)}
}

// New returns the fleet of a home, which need not exist yet.
func New(h home.Dir, c *config.Config, actor agent.ID, environ []string, version string, ui UI) (*Fleet, error) {
	l, err := NewLauncher(h, *c, environ)
	return &Fleet{Home: h, Config: c, Launcher: l, Actor: actor, Environ: environ, Version: version, UI: ui}, err
}

// rebuilt returns the fleet with another configuration, environment and UI. The records stay open, once.
func (f *Fleet) rebuilt(c *config.Config, environ []string, ui UI) (*Fleet, error) {
	g, err := New(f.Home, c, f.Actor, environ, f.Version, ui)
	if err != nil {
		return nil, err
	}
	g.Launcher.Journal, g.checks = f.Launcher.Journal, f.checks
	return g, nil
}

// NewLauncher returns what starts and ends the agents of a home.
func NewLauncher(h home.Dir, c config.Config, environ []string) (*spawn.Launcher, error) {
	bin, err := Binary()
	if err != nil {
		return nil, err
	}
	return spawn.New(spawn.Site{
		Home: h, Tmux: tmuxServer(h, c, environ), Shared: execx.Value(environ, socketVariable) == "" && c.Tmux.Socket == "default",
		Binary: bin, Environ: environ, Journal: store.NewJournal(h), Bus: NewBus(h, c),
	}), nil
}

// NewBus returns the bus of a home.
func NewBus(h home.Dir, c config.Config) *bus.Bus {
	return bus.New(h, bus.Options{MaxBytes: c.Bus.MaxBytes, Keep: c.Bus.Keep.Duration})
}

// socketVariable names the tmux server, before netsky.toml does.
const socketVariable = "NETSKY_TMUX_SOCKET"

// tmuxServer returns the tmux server of a home's agents.
func tmuxServer(h home.Dir, c config.Config, environ []string) *tmux.Server {
	s := &tmux.Server{Socket: h.TmuxSocket(), Conf: h.Path(home.TmuxConfFile), Tags: []string{spawn.TagHome, spawn.TagStart}, Known: home.Servers(h)}
	s.Env = execx.Inherited(environ)
	if c.Tmux.Socket != "" && c.Tmux.Socket != "netsky" {
		s.Socket = c.Tmux.Socket
	}
	s.Socket = cmp.Or(execx.Value(environ, socketVariable), s.Socket)
	// A path must not depend on the current directory.
	if strings.Contains(s.Socket, "/") {
		if path, err := config.Path(h, execx.Value(environ, "HOME"), s.Socket); err == nil {
			s.Socket = path
		}
	}
	return s
}

// Binary returns this program's absolute path. A link that it was called by is kept, as it
// outlives the version that it points to.
func Binary() (string, error) {
	if p := os.Args[0]; filepath.IsAbs(p) {
		return p, nil
	}
	p, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("netsky's own path: %w", err)
	}
	return p, nil
}

// Planner returns what plans the starts of agents.
func (f *Fleet) Planner() *plan.Planner {
	return &plan.Planner{Launcher: f.Launcher, Config: f.Config, UserHome: f.userHome()}
}

func (f *Fleet) userHome() string { return execx.Value(f.Environ, "HOME") }

func (f *Fleet) tilde(path string) string { return words.Tilde(f.userHome(), path) }

func (f *Fleet) warn(format string, args ...any) { f.UI.Warn(fmt.Errorf(format, args...)) }

// say reports what was done, in words.
func (f *Fleet) say(format string, args ...any) { f.UI.Step(Step{Line: fmt.Sprintf(format, args...)}) }

// Make makes the home with its directories and the owner's mailbox, to which an agent may write
// at any time, and repairs its mode.
func (f *Fleet) Make() error {
	repaired, err := f.Home.Make()
	for _, r := range repaired {
		f.warn("%s", r)
	}
	if err != nil {
		return err
	}
	return f.Launcher.Bus.Make(agent.Owner)
}

// runtimes returns the runtimes by name.
func (f *Fleet) runtimes() map[string]spawn.Runtime {
	if f.Runtimes != nil {
		return f.Runtimes
	}
	return f.Planner().Runtimes()
}

// bus returns the fleet's bus, for what opens one on demand.
func (f *Fleet) bus() (*bus.Bus, error) { return f.Launcher.Bus, nil }

// May is [May] for the fleet's actor.
func (f *Fleet) May(deed string) error { return May(f.Actor, deed) }

// MayLand is [MayLand] for the fleet's actor.
func (f *Fleet) MayLand(deed string) error { return MayLand(f.Actor, *f.Config, deed) }

// who is how records name who acts.
func (f *Fleet) who() string {
	if f.host != "" {
		return string(f.Actor.At(f.host))
	}
	return string(f.Actor)
}
