package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/codex/appserver"
	"netsky/home"
)

// ServeOptions configure Serve.
type ServeOptions struct {
	Agent agent.ID
	Start string // the start id
	Fresh bool   // forget the thread and start another

	Model       string // from the flag; takes precedence over AGENT_CODEX_MODEL and ConfigModel
	ConfigModel string // from the configuration
	Sandbox     string // "" is Codex's own setting
	Approval    string // likewise
	Compact     bool   // a thread that is full is compacted
	Goals       bool   // the model may set itself a goal, on which Codex works in turns of its own

	Instructions string // the agent's rendered prompt
	Startup      string // put in front of a new thread's first message
	Memory       courier.Memory
	Config       map[string]any // configuration of the thread, such as mcp_servers
	Dir          string         // where the model works; absolute
	Limit        time.Duration  // of a turn; 0: none

	// Approve decides what Codex asks. If nil, a person at the TUI does; headless,
	// everything is declined.
	Approve Approver
	// Edited is told of each file that the model has changed; it may be nil.
	Edited func(name string)
	// Headless prints a transcript on Out instead of showing Codex's TUI. That is also
	// the case if standard input is not this process's terminal.
	Headless bool

	Home    home.Dir
	Bus     *bus.Bus
	Records courier.Recorder // nil: nothing is recorded
	Program string           // the native Codex; "" looks for it on the PATH of Env
	Env     []string         // the whole environment
	Out     io.Writer        // the pane; nil is standard output
}

// A resident is a resident agent at work: the courier's Runtime. Its own goroutine
// keeps the thread open and turns what happens there into the courier's events; see
// keep.
type resident struct {
	ServeOptions
	condition
	program string
	env     []string
	lock    *home.Lock // held while this process keeps the agent
	print   *transcript
	tui     *tui // nil: headless
	group   sync.WaitGroup

	// Used only by keep, except that Offer records in the session what it submits.
	server  *appserver.Listener
	session *Session
	seen    []string // what Codex's screen need not announce, as of the server seenBy
	seenBy  *appserver.Server
	spent   appserver.Usage  // of the running turn
	before  *appserver.Usage // the thread's token count reported last
	shrunk  bool             // the thread was compacted because it was full, and the model has said nothing since
	spoke   bool             // the model has said something in the running turn
	asked   bool             // it is known whether somebody asked for the running turn
	asks    []string         // what the running turn waits for a person to allow
	renew   chan struct{}    // asks keep for a Codex that reads its login again

	offering sync.Mutex // held by Offer
}

// Serve is the program in the pane of a resident Codex agent. A courier brings the
// agent's mail to its thread, sends the answers and reports its state; Codex's own TUI
// shows the same thread, where a person can watch and type.
//
// It returns nil after a shutdown message, and after SIGTERM, SIGHUP or the end of ctx,
// which interrupt a turn; nothing it started is left behind then. The error matches
// ErrMissing, ErrOld, home.ErrLocked or the error that makes it impossible to continue.
// Anything else that dies is restarted and continued; a message in progress is
// recognised, also by the next process.
//
// Serve uses the whole process: standard input and output if they are a terminal, and
// its signal handling.
func Serve(ctx context.Context, o ServeOptions) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	r := newResident(o)
	err := r.begin(ctx)
	if err == nil {
		err = r.run(ctx)
	}
	r.end()
	if ctx.Err() != nil || errors.Is(err, bus.ErrShutdown) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Agent, err)
	}
	return nil
}

// Resident starts what Serve runs, without a courier: the caller drives the runtime and
// reads its events. stop ends it, and waits.
func Resident(ctx context.Context, o ServeOptions) (r courier.Runtime, events courier.Source, stop func(), err error) {
	return residentWithin(ctx, o, openTime)
}

// residentWithin is Resident for a Codex that has so long to open the thread.
func residentWithin(ctx context.Context, o ServeOptions, within time.Duration) (courier.Runtime, courier.Source, func(), error) {
	r := newResident(o)
	if err := r.begin(ctx); err != nil {
		r.end()
		return nil, nil, nil, err
	}
	r.session.within = within
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		r.keep(ctx)
		close(over)
	}()
	return r, r.queue, func() { cancel(); <-over; r.end() }, nil
}

func newResident(o ServeOptions) *resident {
	if o.Out == nil {
		o.Out = os.Stdout
	}
	return &resident{
		ServeOptions: o, condition: condition{now: agent.Report{State: agent.Starting}, queue: courier.NewQueue(o.Start)},
		print: &transcript{w: o.Out, id: o.Agent}, renew: make(chan struct{}, 1),
	}
}

// begin acquires what only one process may have and starts everything that runs besides
// keep. end undoes it, as far as it got.
func (r *resident) begin(ctx context.Context) (err error) {
	r.env, r.program = childEnv(r.Env, r.Agent, r.Home), r.Program
	r.login = &login{env: r.env}
	if r.program == "" {
		if r.program, err = appserver.Find(getenv(r.env, "PATH")); err != nil {
			return err
		}
	}
	version, err := appserver.Probe(ctx, r.program, r.env)
	if err != nil {
		return err
	}
	if version.Legacy() {
		return fmt.Errorf("update Codex: %v is %w", version, appserver.ErrOld)
	}
	if r.lock, err = r.Home.Lock(ResidentLock(r.Agent)); err != nil {
		return err
	}
	if r.session, err = NewSession(r.options()); err != nil {
		return err
	}
	if r.Fresh {
		r.session.forget()
	}
	if !r.Headless {
		r.tui, err = newTUI(r)
	}
	return err
}

// run delivers mail until it is told to end.
func (r *resident) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	mail := courier.New(courier.Options{
		Agent: r.Agent, Start: r.Start, Home: r.Home, Bus: r.Bus, Runtime: r, Events: r.queue, Records: r.Records,
		Startup: r.Startup, Fresh: !r.session.state.Started, Memory: r.Memory, Log: r.log,
	})
	kept := make(chan error, 1)
	go func() {
		defer cancel()
		kept <- r.keep(ctx)
	}()
	err := mail.Run(ctx)
	cancel()
	if over := <-kept; err == nil && !errors.Is(over, context.Canceled) {
		err = over
	}
	return err
}

// end ends what begin started, in the order that loses nothing.
func (r *resident) end() {
	if t := r.opened(); t != nil && t.Running() != nil {
		t.Running().BreakOff()
	}
	if r.tui != nil {
		r.tui.close()
		r.print.mute.Store(false)
	}
	if r.session != nil {
		r.session.Close()
	}
	r.endServer()
	r.group.Wait()
	if r.lock != nil {
		r.lock.Unlock()
	}
}

func (r *resident) options() SessionOptions {
	return SessionOptions{
		Home: r.Home, Agent: r.Agent, Records: r.Records, Say: r.print.say, Connect: r.connect,
		Thread: appserver.ThreadOptions{
			Name: string(r.Agent), Dir: r.Dir, Model: ChooseModel(r.Model, r.Env, r.ConfigModel),
			Instructions: r.Instructions + residentWords(r.Agent),
			Sandbox:      r.Sandbox, Approval: r.Approval, Config: r.Config, Approve: r.decide,
		},
	}
}

// connect connects the session to the listening server, which it restarts if it has
// ended.
func (r *resident) connect(ctx context.Context) (*appserver.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*grace)
	defer cancel()
	if r.server != nil && r.server.Over() {
		r.endServer()
	}
	if r.server == nil {
		r.mu.Lock()
		r.read, r.refused = r.login.state(), false
		r.mu.Unlock()
		l, err := appserver.Listen(ctx, r.Home, r.Agent, appserver.ServerOptions{
			Program: r.program, Config: slices.Concat(appserver.Trust(r.Dir, r.Sandbox), goals(r.Goals), appserver.Overrides(r.Config)), Env: r.env, Dir: r.Dir,
		})
		if err != nil {
			return nil, err
		}
		r.server = l
	}
	server, err := r.server.Connect(ctx)
	if err != nil {
		r.endServer()
	}
	return server, err
}

// endServer ends the server, if there is one.
func (r *resident) endServer() {
	if r.server != nil {
		r.server.Close()
		r.server = nil
	}
}

// decide answers what Codex asks, or leaves it to a person at the TUI.
func (r *resident) decide(ctx context.Context, a Approval) (Decision, func(Taken)) {
	r.mu.Lock()
	a.Message = r.message
	r.mu.Unlock()
	switch {
	case r.Approve != nil:
		return r.Approve(ctx, a)
	case r.tui != nil:
		return Leave, nil
	}
	what := strings.TrimSpace(a.Tool + " " + a.Text)
	r.record("declined because nobody can answer: " + what)
	r.print.say("declined: " + what)
	return Decline, nil
}

// log prints what the courier reports.
func (r *resident) log(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
		r.record(what)
	}
	r.print.say(what)
}

// residentWords is what a model must know about being used in this way.
func residentWords(id agent.ID) string {
	more := ""
	if id.IsClone() {
		more = " Do not start or stop agents."
	}
	return fmt.Sprintf(`

---

You are %s. Messages from others reach you one at a time, each in a <channel> element that names its sender and has an
id. When such a message wants an answer, the last thing you write in the turn is sent to its sender automatically; if
only a part of it should be sent, put that part between %s and %s. Or answer immediately with
`+"`netsky reply ID TEXT`"+`; then the last thing you write is sent to nobody. Text without a <channel> element
was typed by a person at your own pane, who reads your answer there.%s`, id, replyOpen, replyClose, more)
}
