package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
)

// ServeOptions say whom Serve is, and with what.
type ServeOptions struct {
	Agent agent.ID
	Start string // the start id
	Fresh bool   // forget the thread and begin another

	Model       string // asked for; before EnvModel and ConfigModel
	ConfigModel string // as configured
	Sandbox     string // "" is as Codex is configured
	Approval    string // likewise

	Instructions string         // the agent's rendered prompt
	Startup      string         // in front of a fresh thread's first message
	Config       map[string]any // configuration of the thread, such as mcp_servers
	Dir          string         // where the model works; absolute
	Limit        time.Duration  // of a turn; 0: none

	// Approve decides what Codex asks. nil: a person at the TUI does; headless,
	// everything is declined.
	Approve Approver
	// Headless shows a transcript on Out in place of Codex's TUI. It is so, too,
	// where standard input is no terminal of ours.
	Headless bool

	Home    home.Dir
	Bus     *bus.Bus
	Records Recorder  // nil: nothing is recorded
	Program string    // the native Codex; "" looks for it on the PATH of Env
	Env     []string  // the whole environment
	Out     io.Writer // the pane; nil is standard output
}

// A sidecar is the resident agent at work. Its fields belong to the goroutine of
// Serve, but for those that say otherwise.
type sidecar struct {
	ServeOptions
	program string
	env     []string
	lock    *home.Lock // says that somebody keeps the agent
	mail    *bus.Receiver
	server  *appserver.Listener
	session *Session
	thread  atomic.Pointer[appserver.Thread] // for interrupting, from any goroutine
	board   *board
	tui     *tui     // nil: headless
	seen    []string // what Codex's screen need not announce, by the server seenBy
	seenBy  *appserver.Server
	print   *transcript
	gate    time.Time // no message is tried before; after a quota was used up
	group   sync.WaitGroup
}

// Serve is the program in the pane of a resident Codex agent. It takes the
// agent's mail, brings each message through a turn of the agent's thread, sends
// the answers, reports the agent's state, and shows Codex's own TUI on the same
// thread, where a person can look on and type.
//
// It returns nil after an obeyed shutdown, and after SIGTERM, SIGHUP or the end
// of ctx, which break a turn off; nothing it started is left behind then. The
// error matches ErrMissing, ErrOld, agent.ErrLocked or is what makes going on
// impossible. Whatever dies meanwhile is started again and gone on with; a
// message that was under way is recognised, by the next process too.
//
// Serve uses the whole process: standard input and output if they are a
// terminal, and how signals are taken.
func Serve(ctx context.Context, o ServeOptions) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	s := &sidecar{ServeOptions: o}
	if s.Out == nil {
		s.Out = os.Stdout
	}
	s.print = &transcript{w: s.Out, id: o.Agent}
	err := s.begin(ctx)
	if err == nil {
		err = s.run(ctx)
	}
	s.end()
	if ctx.Err() != nil || errors.Is(err, bus.ErrShutdown) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Agent, err)
	}
	return nil
}

// begin takes what belongs to one process at a time and starts what runs beside
// us. end undoes it, as far as it has got.
func (s *sidecar) begin(ctx context.Context) (err error) {
	s.env, s.program = childEnv(s.Env, s.Agent, s.Home), s.Program
	if s.program == "" {
		if s.program, err = appserver.Find(getenv(s.env, "PATH")); err != nil {
			return err
		}
	}
	version, err := appserver.Probe(ctx, s.program, s.env)
	if err != nil {
		return err
	}
	if version.Legacy() {
		return fmt.Errorf("update Codex: %v is %w", version, appserver.ErrOld)
	}
	if err := s.Bus.Make(s.Agent); err != nil {
		return err
	}
	if s.lock, err = s.Home.Lock(ResidentLock(s.Agent)); err != nil {
		return err
	}
	s.board = newBoard(s)
	if err := s.board.report(agent.Starting, ""); err != nil {
		return err
	}
	s.mail, err = s.Bus.Receive(ctx, s.Agent, bus.ReceiveOptions{
		Start: s.Start, MaxText: MaxText - reserve, Report: s.told, Cancel: s.cancel,
	})
	if err != nil {
		return err
	}
	if s.session, err = NewSession(s.options()); err != nil {
		return err
	}
	if s.Fresh {
		s.session.forget()
	}
	s.board.follow(s.session)
	if !s.Headless {
		s.tui, err = newTUI(s)
	}
	return err
}

// end ends what begin started, in the order that loses nothing.
func (s *sidecar) end() {
	if s.tui != nil {
		s.tui.close()
		s.print.mute.Store(false)
	}
	if s.session != nil {
		s.session.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
	if s.board != nil {
		s.board.close()
	}
	s.group.Wait()
	if s.mail != nil {
		s.mail.Close()
	}
	if s.lock != nil {
		s.lock.Unlock()
	}
}

func (s *sidecar) options() SessionOptions {
	return SessionOptions{
		Home: s.Home, Agent: s.Agent, Startup: s.Startup, Limit: s.Limit, Records: s.Records, Say: s.print.say,
		Connect: s.connect,
		Thread: appserver.ThreadOptions{
			Name: string(s.Agent), Dir: s.Dir, Model: ChooseModel(s.Model, s.Env, s.ConfigModel),
			Instructions: s.Instructions + resident(s.Agent),
			Sandbox:      s.Sandbox, Approval: s.Approval, Config: s.Config, Approve: s.decide,
		},
	}
}

// connect gives the session its server: the one that listens, started again if
// it has ended.
func (s *sidecar) connect(ctx context.Context) (*appserver.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*grace)
	defer cancel()
	if s.server != nil && s.server.Over() {
		s.server.Close()
		s.server = nil
	}
	if s.server == nil {
		l, err := appserver.Listen(ctx, s.Home, s.Agent, appserver.ServerOptions{
			Program: s.program, Config: append(appserver.Trust(s.Dir, s.Sandbox), appserver.Overrides(s.Config)...), Env: s.env, Dir: s.Dir,
		})
		if err != nil {
			return nil, err
		}
		s.server = l
	}
	server, err := s.server.Connect(ctx)
	if err != nil {
		s.server.Close()
		s.server = nil
	}
	return server, err
}

// decide answers what Codex asks, or leaves it to whoever is at the TUI.
func (s *sidecar) decide(ctx context.Context, a Approval) Decision {
	a.Message = s.board.inHand()
	if s.Approve != nil {
		return s.Approve(ctx, a)
	}
	if s.tui != nil {
		return Leave
	}
	s.board.log(a.Message, "declined, as nobody can answer: "+strings.TrimSpace(a.Tool+" "+a.Text), nil)
	s.print.say("declined: " + strings.TrimSpace(a.Tool+" "+a.Text))
	return Decline
}

// told is what the receiver has to say beside messages.
func (s *sidecar) told(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	s.print.say(what)
}

// cancel ends the running turn: somebody on the bus wants that.
func (s *sidecar) cancel(envelope.Envelope) {
	if t := s.thread.Load(); t != nil {
		go func() { // ends with the answer, or with the connection
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			t.Interrupt(ctx)
		}()
	}
}

// resident is what a model must know about this way of being talked to.
func resident(id agent.ID) string {
	more := ""
	if id.IsClone() {
		more = " Start and stop no agents."
	}
	return fmt.Sprintf(`

---

You are %s. Messages of others reach you one at a time, each in a <channel> element that names its sender and has an
id. When such a message wants an answer, your last words of the turn go to its sender by themselves; if only a part of
them should, put that between %s and %s. Or answer at once with
`+"`netsky reply ID TEXT`"+`; then your last words go to nobody. What comes without a <channel> element has been typed
by a person at your own pane, who reads there.%s`, id, replyOpen, replyClose, more)
}
