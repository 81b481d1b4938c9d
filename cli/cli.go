// Package cli holds the verbs, netsky.toml, and every word that is printed. It
// makes the runtimes and hands them to the launcher and the daemon; the packages
// below it state facts, and it adds what to do next.
//
// Results go to stdout, one fact a line; words for people go to stderr as
// "netsky: …". The exit status is 0 for done, 1 for failed, 2 for wrong usage,
// bad input or not allowed, 3 for partly done or not yet.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/agent/program"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/config"
	"netsky/cli/console"
	"netsky/cli/line"
	"netsky/cli/plan"
	"netsky/spawn"
	"netsky/store"
	"netsky/tmux"
)

// Version is set when the binary is built: -ldflags "-X netsky/cli.Version=…".
var Version = "0.1.0-dev"

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
	exitPartly = 3
)

// Main runs one command line and returns the exit status.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	a := newApp(in, out, errs, os.Environ())
	if a.completing(args) {
		return 0
	}
	table := a.cli()
	err := line.Check(table, args)
	if err != nil {
		err = exitError{exitUsage, err}
	} else {
		err = table.RunContext(ctx, line.FlagsFirst(table, args))
	}
	if err == nil && !left(a.broken) {
		err = a.broken
	}
	if err == nil {
		return 0
	}
	a.complain(err)
	return status(err)
}

// app is what the verbs share: the streams, the environment, and what is found
// from them on demand.
type app struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	getenv  func(string) string
	environ []string

	broken error // of a write to out
	deed   bool  // the verb does something and prints what: printed or not, that is done

	lenient bool // what is wrong in netsky.toml and can't matter is no error

	once   sync.Once
	config config.Config
	cfgErr error
}

func newApp(in io.Reader, out, errs io.Writer, environ []string) *app {
	return &app{in: in, out: out, err: errs, getenv: func(name string) string { return program.Value(environ, name) }, environ: environ}
}

// exitError carries the exit status that a verb wants.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// silent is an error whose story has been told already.
var errTold = errors.New("told")

func status(err error) int {
	var e exitError
	var wish *plan.UsageError
	var ids *bus.AmbiguousError
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &wish), errors.As(err, &ids), errors.Is(err, agent.ErrName), errors.Is(err, envelope.ErrInvalid), errors.Is(err, bus.ErrNotAllowed):
		return exitUsage
	}
	return exitFailed
}

// complain tells what went wrong and what to do next.
func (a *app) complain(err error) {
	gone := errors.Is(a.broken, syscall.EPIPE) && errors.Is(err, syscall.EPIPE) // there is nobody to tell
	if gone || errors.Is(err, errTold) {
		return
	}
	for line := range strings.SplitSeq(envelope.Plain(err.Error()), "\n") {
		if line != "" {
			fmt.Fprintln(a.err, "netsky:", line)
		}
	}
	a.advise(err)
}

// called writes the commands in a text for people as they work here.
func (a *app) called(text string) string { return console.Caller{Getenv: a.getenv}.Called(text) }

// advise says what to do next about an error.
func (a *app) advise(err error) {
	for _, h := range a.hints(err) {
		fmt.Fprintln(a.err, a.called(h))
	}
}

// warn tells of something that stopped nothing.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.err, "netsky:", envelope.Plain(fmt.Sprintf(format, args...)))
}

// print writes one fact to stdout, safe for a terminal.
func (a *app) print(format string, args ...any) {
	fmt.Fprintln(a.stdout(), envelope.Plain(fmt.Sprintf(format, args...)))
}

// stdout is out, for what is not printed line by line. What it does not take of
// a verb that has done something goes to stderr, unless whoever read it has left:
// the verb's exit status is that of its deed.
func (a *app) stdout() io.Writer { return stdout{a} }

type stdout struct{ a *app }

func (s stdout) Write(p []byte) (int, error) {
	n, err := s.a.out.Write(p)
	switch {
	case err == nil:
		return n, nil
	case s.a.deed:
		if !left(err) {
			fmt.Fprintf(s.a.err, "netsky: %v; not printed:\n%s", err, p[n:])
		}
		return len(p), nil
	}
	s.a.broken = err
	return n, err
}

// left reports whether a write failed as nobody reads stdout any more, or ever
// did: whoever that is has what they want.
func left(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EBADF) }

// home is where this netsky keeps everything: a directory that is its own, or
// can become that. No verb does anything in another.
func (a *app) home() (home.Dir, error) {
	h, err := home.Find(a.getenv)
	if err == nil {
		err = h.Check()
	}
	if err != nil {
		return h, exitError{exitUsage, err}
	}
	return h, nil
}

// madeHome is the home with its directories made and its mode in order. The
// owner's mailbox comes with it: an agent may write to the owner at any time.
func (a *app) madeHome() (home.Dir, error) {
	h, err := a.home()
	if err != nil {
		return h, err
	}
	repaired, err := h.Make()
	for _, r := range repaired {
		a.warn("%s", r)
	}
	if err != nil {
		return h, err
	}
	b, err := a.bus()
	if err != nil {
		return h, err
	}
	return h, b.Make(agent.Owner)
}

// self is who runs this netsky: the agent that AGENT_N names, else the owner.
func (a *app) self() (agent.ID, error) {
	n := a.getenv("AGENT_N")
	if n == "" {
		return agent.Owner, nil
	}
	id, err := agent.Parse("agent" + n)
	if err != nil {
		return "", usagef("AGENT_N: %q names no agent: 0, 1 to %d, infinity", n, agent.MaxClones)
	}
	return id, nil
}

// notForClones refuses verbs that change the constellation when a clone runs
// them.
func (a *app) notForClones(verb string) error {
	id, err := a.self()
	if err != nil {
		return err
	}
	if id.IsClone() {
		return usagef("%s: not for clones: this is %s; ask agent0 to do it", verb, id)
	}
	return nil
}

func (a *app) bus() (*bus.Bus, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	c, err := a.cfg()
	if err != nil {
		return nil, err
	}
	return bus.New(h, bus.Options{MaxBytes: c.Bus.MaxBytes, Keep: c.Bus.Keep.Duration}), nil
}

func (a *app) serverFor(h home.Dir, c config.Config) *tmux.Server {
	s := &tmux.Server{Socket: h.TmuxSocket(), Conf: h.Path(home.TmuxConfFile), Tags: []string{spawn.TagHome, spawn.TagStart}}
	s.Env = program.Inherited(a.environ)
	if c.Tmux.Socket != "" && c.Tmux.Socket != "netsky" {
		s.Socket = c.Tmux.Socket
	}
	if v := a.getenv("NETSKY_TMUX_SOCKET"); v != "" {
		s.Socket = v
	}
	// A path means the same wherever netsky is called.
	if strings.Contains(s.Socket, "/") {
		if path, err := a.placed(s.Socket); err == nil {
			s.Socket = path
		}
	}
	return s
}

// launcher is all that brings agents up and down.
func (a *app) launcher() (*spawn.Launcher, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	c, err := a.cfg()
	if err != nil {
		return nil, err
	}
	return a.launcherFor(h, c)
}

func (a *app) launcherFor(h home.Dir, c config.Config) (*spawn.Launcher, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	return &spawn.Launcher{
		Home: h, Tmux: a.serverFor(h, c), Shared: a.getenv("NETSKY_TMUX_SOCKET") == "" && c.Tmux.Socket == "default", Binary: bin, Environ: a.environ, Journal: store.NewJournal(h),
		Bus: bus.New(h, bus.Options{MaxBytes: c.Bus.MaxBytes, Keep: c.Bus.Keep.Duration}),
	}, nil
}

// planner plans the starts of agents.
func (a *app) planner(l *spawn.Launcher) *plan.Planner {
	return &plan.Planner{Launcher: l, Config: &a.config, UserHome: a.getenv("HOME")}
}

// binary is this program's own absolute path. The link that a person calls it
// by is kept where there is one, as it outlives the version that it points to.
func binary() (string, error) {
	if p := os.Args[0]; filepath.IsAbs(p) {
		return p, nil
	}
	p, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("netsky's own path: %w", err)
	}
	return p, nil
}

func one(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("%s: wants %s", c.Command.Name, what)
	}
	return c.Args().First(), nil
}

// oneAgent is the verb's only argument, an agent.
func oneAgent(c *cli.Context, what string) (agent.ID, error) {
	arg, err := one(c, what)
	if err != nil {
		return "", err
	}
	return agent.ParseAgent(arg)
}
