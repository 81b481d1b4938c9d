// Package cli implements the verbs: it parses the command line, calls the packages
// below it, and prints their results and errors. It decides nothing itself and keeps
// nothing; a verb that is killed leaves what those packages leave.
//
// Results go to stdout, one fact per line; messages for people go to stderr as
// "netsky: …". The exit status is 0 for done, 1 for failed, 2 for wrong usage,
// bad input or not allowed, 3 for partly done or not yet.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/cli/spell"
	"netsky/cli/view"
	"netsky/config"
	"netsky/fleet"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/link/ssh"
	"netsky/spawn"
)

// Version is set when the binary is built: -ldflags "-X netsky/cli.Version=…".
var Version = "0.1.0-dev"

// Changelog is CHANGELOG.md, which the program's main package has.
var Changelog string

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
	exitPartly = 3
)

// Main runs one command line and returns the exit status.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if f, ok := out.(*os.File); ok && os.Getenv(ssh.Piped) != "" {
		ctx = whileRead(ctx, f)
	}
	a := newApp(in, out, errs, os.Environ())
	if (commandTable{a}).completing(args) {
		return 0
	}
	err := a.run(ctx, args)
	if err == nil && (a.broken == nil || left(a.broken)) {
		return 0
	}
	err = cmp.Or(err, a.broken)
	a.complain(err)
	return status(err)
}

func (a *app) run(ctx context.Context, args []string) error {
	if host, line, ok := onHost(args[min(1, len(args)):]); ok {
		return hostVerbs{a}.on(ctx, host, line)
	}
	table := commandTable{a}.cli()
	if err := spell.Check(table, optionRules, args); err != nil {
		return exitError{exitUsage, err}
	}
	return table.RunContext(ctx, spell.FlagsFirst(table, args))
}

// app is what the verbs share: the streams, the environment, and what is loaded
// on demand.
type app struct {
	in      io.Reader
	out     io.Writer
	err     io.Writer
	getenv  func(string) string
	environ []string

	broken error // the error of a write to out
	deed   bool  // the verb changes something: its exit status is that of the change, printed or not

	bears config.Harm // a mistake in netsky.toml of at most this harm is only warned about

	mistake error // that was found and is borne
	harm    config.Harm

	once   sync.Once
	config config.Config
	cfgErr error
}

func newApp(in io.Reader, out, errs io.Writer, environ []string) *app {
	return &app{in: in, out: out, err: errs, getenv: func(name string) string { return execx.Value(environ, name) }, environ: environ}
}

// exitError is an error with the verb's exit status.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// errTold is returned when everything has been printed already.
var errTold = errors.New("told")

func status(err error) int {
	var e exitError
	if errors.As(err, &e) {
		return e.code
	}
	return fleet.Status(err)
}

// complain prints an error and what to do next.
func (a *app) complain(err error) {
	gone := errors.Is(a.broken, syscall.EPIPE) && errors.Is(err, syscall.EPIPE) // nobody reads it
	if gone || errors.Is(err, errTold) || errors.Is(err, fleet.ErrNotReady) || errors.Is(err, fleet.ErrStayed) {
		return
	}
	for line := range strings.SplitSeq(envelope.Plain(err.Error()), "\n") {
		if line != "" {
			fmt.Fprintln(a.err, "netsky:", line)
		}
	}
	a.advise(err)
}

// called returns the text with its commands as they work here.
func (a *app) called(text string) string { return view.Caller{Getenv: a.getenv}.Called(text) }

// advise prints what to do next about an error.
func (a *app) advise(err error) {
	for _, h := range a.hints(err) {
		fmt.Fprintln(a.err, a.called(h))
	}
}

// warn prints a message about something that does not stop the verb.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintln(a.err, "netsky:", envelope.Plain(fmt.Sprintf(format, args...)))
}

// print writes a line to stdout, safe for a terminal.
func (a *app) print(format string, args ...any) {
	fmt.Fprintln(a.stdout(), envelope.Plain(fmt.Sprintf(format, args...)))
}

// stdout returns out, for text that is not printed line by line. If the verb has
// changed something, text that out does not accept goes to stderr, unless the reader
// has gone; the exit status is that of the change.
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

// left reports whether a write failed because stdout is closed or has no reader left.
func left(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EBADF) }

// home returns netsky's home: a directory that is its own, or can become so. No
// verb does anything in another.
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

// madeHome returns the home with its directories and the owner's mailbox, to which
// an agent may write at any time, and repairs its mode.
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

// self returns who runs this netsky: the agent in AGENT_N, else the owner.
func (a *app) self() (agent.ID, error) {
	n := a.getenv("AGENT_N")
	if n == "" {
		return agent.Owner, nil
	}
	id, err := agent.Parse("agent" + n)
	if err != nil {
		return "", usagef("AGENT_N: %q is not an agent: must be 0, 1 to %d or infinity", n, agent.MaxClones)
	}
	return id, nil
}

// may refuses a deed that whoever runs the verb may not do.
func (a *app) may(deed string) error {
	id, err := a.self()
	if err != nil {
		return err
	}
	return fleet.May(id, deed)
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
	return fleet.NewBus(h, c), nil
}

// launcher returns what starts and stops agents.
func (a *app) launcher() (*spawn.Launcher, error) {
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	c, err := a.cfg()
	if err != nil {
		return nil, err
	}
	return fleet.NewLauncher(h, c, a.environ)
}

// fleetFor returns this netsky, on behalf of whoever runs the verb.
func (a *app) fleetFor(u fleet.UI) (*fleet.Fleet, error) {
	self, err := a.self()
	if err != nil {
		return nil, err
	}
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	if _, err := a.cfg(); err != nil {
		return nil, err
	}
	return fleet.New(h, &a.config, self, a.environ, Version, u)
}

// fleet returns this netsky for a verb that prints its own result.
func (a *app) fleet() (*fleet.Fleet, error) { return a.fleetFor(ui{a: a}) }

// fleetOf returns the netsky of a launcher.
func (a *app) fleetOf(l *spawn.Launcher) *fleet.Fleet {
	self, _ := a.self() // the verb has refused another
	return &fleet.Fleet{Home: l.Home, Config: &a.config, Launcher: l, Actor: self, Environ: a.environ, Version: Version, UI: ui{a: a}}
}

// A report prints the steps of a deed.
type report interface {
	Step(fleet.Step)
	Above(do func())
}

// A ui is the terminal of a verb.
type ui struct {
	a      *app
	report // nil: without steps
}

// lines is the report of a deed that prints lines.
type lines func(text string)

// Step prints a line.
func (l lines) Step(s fleet.Step) {
	if s.Line != "" {
		l(s.Line)
	}
}

// Above prints a message for people.
func (lines) Above(do func()) { do() }

// Ask asks on the terminal.
func (u ui) Ask(question string) (string, error) {
	_, in := view.Width(u.a.in)
	_, out := view.Width(u.a.err)
	if !in || !out {
		return "", fleet.ErrNobody
	}
	fmt.Fprint(u.a.err, envelope.Plain(question))
	ctx, stop := Signals(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var line string
	var err error
	read := make(chan struct{})
	go func() { // that of a question that is not answered ends with the process
		line, err = view.ReadLine(u.a.in)
		close(read)
	}()
	select {
	case <-read:
		return line, err
	case <-ctx.Done():
		fmt.Fprintln(u.a.err)
		return "", context.Cause(ctx)
	}
}

// Step prints what is done.
func (u ui) Step(s fleet.Step) {
	if u.report != nil {
		u.report.Step(s)
	}
}

// Warn prints what went wrong, and what to do next.
func (u ui) Warn(err error) {
	if u.report != nil {
		u.report.Above(func() { u.a.complain(err) })
		return
	}
	u.a.complain(err)
}

// planner returns what plans the starts of agents.
func (a *app) planner(l *spawn.Launcher) *plan.Planner {
	return &plan.Planner{Launcher: l, Config: &a.config, UserHome: a.getenv("HOME")}
}

func one(c *cli.Context, what string) (string, error) {
	if c.NArg() != 1 || c.Args().First() == "" {
		return "", usagef("%s: needs %s", verbOf(c), what)
	}
	return c.Args().First(), nil
}

// verbOf is the whole verb, such as "imessage send".
func verbOf(c *cli.Context) string { return strings.TrimPrefix(c.Command.HelpName, "netsky ") }

// oneAgent returns the verb's only argument, an agent.
func oneAgent(c *cli.Context, what string) (agent.ID, error) {
	return oneAgentBy(c, what, agent.ParseAgent)
}

// oneAgentBy is oneAgent for a verb that takes other names, too.
func oneAgentBy(c *cli.Context, what string, parse func(string) (agent.ID, error)) (agent.ID, error) {
	if c.NArg() > 1 {
		_, hint, ok := strings.Cut(what, ";")
		if ok {
			hint = ";" + hint
		}
		return "", usagef("%s: takes one agent, not %d%s", verbOf(c), c.NArg(), hint)
	}
	arg, err := one(c, what)
	if err != nil {
		return "", err
	}
	return parse(arg)
}
