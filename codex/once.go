package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
	"netsky/home"
)

// ErrUsage is returned for invalid OnceOptions.
var ErrUsage = errors.New("wrong usage")

type usageError string

func (e usageError) Error() string        { return string(e) }
func (e usageError) Is(target error) bool { return target == ErrUsage }

// ErrEmpty is returned if there is no message to drain.
var ErrEmpty = errors.New("no pending envelope")

// ErrNotYet is returned if the vendor's account can't be used now. The error says why, and
// until when if that is known.
var ErrNotYet = errors.New("not yet")

// envModel is the variable that names the model if no flag does.
const envModel = "AGENT_CODEX_MODEL"

// OnceOptions configure Once.
type OnceOptions struct {
	Agent  agent.ID
	Prompt *string // a message from agent0; or
	Drain  bool    // the next one of the agent's inbox
	Fresh  bool    // forget the thread and start another

	Model       string // from the flag; takes precedence over AGENT_CODEX_MODEL and ConfigModel
	ConfigModel string // from the configuration
	Sandbox     string // "" is Codex's own setting
	Approval    string // likewise; every request is declined
	Goals       bool   // the model may set itself a goal, on which Codex works in turns of its own

	Instructions string         // the agent's rendered prompt
	Startup      string         // put in front of a new thread's first message
	Config       map[string]any // configuration of the thread, such as mcp_servers
	Dir          string         // where the model works; absolute
	Limit        time.Duration  // of the turn; 0: none

	Home    home.Dir
	Bus     *bus.Bus
	Records courier.Recorder // nil: nothing is recorded
	Program string           // the native Codex; "" looks for it on the PATH of Env
	Env     []string         // the whole environment

	Out      io.Writer // the last line, and the answer
	Err      io.Writer // messages for a person
	Terminal bool      // Out is a terminal: the answer is shown too
}

// ChooseModel returns the model from the flag, else the environment, else the
// configuration, else "", which is the thread's or Codex's own.
func ChooseModel(flag string, env []string, config string) string {
	if flag != "" {
		return flag
	}
	if m := getenv(env, envModel); m != "" {
		return m
	}
	return config
}

// Once brings one message through a turn of the agent's Codex thread, sends the model's
// answer to the message's sender, and only then files the message. It names the thread
// on Out.
//
// If another process keeps the agent, or has its thread open, a prompt goes to its
// inbox instead, which is reported on Out. After an error a drained message is offered
// again, and nothing of it is done twice; but one whose sender must not be answered is
// filed with that error. While the account's breaker keeps it from being used, nothing is
// claimed. The error matches ErrUsage, ErrEmpty, ErrNotYet, ErrMissing, ErrHeld,
// home.ErrLocked, envelope.ErrInvalid or an error of Session.Deliver.
func Once(ctx context.Context, o OnceOptions) error {
	if !o.Agent.IsClone() {
		return usageError("only clones process one message at a time: agent1, agent2, …")
	}
	if (o.Prompt != nil) == o.Drain {
		return usageError("codex needs exactly one of --prompt, --drain and --serve")
	}
	for _, id := range []agent.ID{o.Agent, agent.Root} {
		if err := o.Bus.Make(id); err != nil {
			return err
		}
	}
	w := &once{OnceOptions: o}
	if o.Drain {
		return w.drain(ctx)
	}
	return w.prompt(ctx)
}

// once is one message being processed.
type once struct {
	OnceOptions
	delivery *bus.Delivery // nil: it was not on the bus
	envelope envelope.Envelope
	rendered string
	mu       sync.Mutex // one line at a time on Err
}

func (w *once) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.Err, "[codex] %s: %s\n", w.Agent, envelope.Plain(text))
}

// turn does everything for a message that this process has to process.
func (w *once) turn(ctx context.Context) error {
	if err := w.allowed(ctx); err != nil {
		return err
	}
	began := time.Now()
	answer, end, err := w.answer(ctx)
	defer end()
	if err := w.account(ctx, began, answer, err); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w.Agent, err)
	}
	reply := ExtractReply(answer.Text)
	refused, err := w.reply(ctx, answer, reply)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Agent, err)
	}
	if w.delivery != nil {
		if err := w.delivery.Confirm(); err != nil {
			return fmt.Errorf("%s: file message %s: %w", w.Agent, w.envelope.ID, err)
		}
	}
	if w.Terminal || refused != nil {
		fmt.Fprintln(w.Out, envelope.Plain(reply))
	}
	fmt.Fprintf(w.Out, "[codex] %s: delivered via codex thread %s (%d bytes reply)\n", w.Agent, answer.Thread, len(reply))
	if refused != nil {
		return fmt.Errorf("%s: answer not sent: %w", w.Agent, refused)
	}
	return nil
}

// answer returns the installed Codex's answer to the message. end waits until Codex has
// exited, which takes it 30 ms, in which the answer can be sent.
func (w *once) answer(ctx context.Context) (a Answer, end func(), err error) {
	end = func() {}
	env, program := childEnv(w.Env, w.Agent, w.Home), w.Program
	if program == "" {
		if program, err = appserver.Find(getenv(env, "PATH")); err != nil {
			return a, end, err
		}
	}
	if w.Fresh {
		if err := w.Home.Remove(StateFile(w.Agent)); err != nil {
			return a, end, err
		}
	}
	o := w.session(program, env)
	s, err := NewSession(o)
	if err != nil {
		return a, end, err
	}
	in := Input{ID: w.envelope.ID, Text: w.rendered}
	a, err = s.Deliver(ctx, in)
	if old(ctx, program, env, err) {
		l := &legacy{o: o, state: s.state, put: s.put, server: appserver.ServerOptions{Program: program, Env: env, Dir: w.Dir}}
		a, err = l.Deliver(ctx, in)
	}
	ended := make(chan struct{})
	go func() {
		s.Close()
		close(ended)
	}()
	return a, func() { <-ended }, err
}

// old reports whether a message was not delivered because this Codex is driven through
// mcp-server. One that could not even start an app-server may be older than that.
func old(ctx context.Context, program string, env []string, err error) bool {
	if errors.Is(err, appserver.ErrLost) {
		v, probed := appserver.Probe(ctx, program, env)
		return probed == nil && v.Legacy()
	}
	return errors.Is(err, appserver.ErrOld)
}

// session returns the options of the agent's session.
func (w *once) session(program string, env []string) SessionOptions {
	return SessionOptions{
		Home: w.Home, Agent: w.Agent, Startup: w.Startup, Limit: w.Limit, Records: w.Records, Say: w.say,
		Thread: appserver.ThreadOptions{
			Dir: w.Dir, Model: ChooseModel(w.Model, w.Env, w.ConfigModel), Instructions: w.Instructions + adapter(w.Agent),
			Sandbox: w.Sandbox, Approval: w.Approval, Config: w.Config, Approve: w.decline,
		},
		Connect: func(ctx context.Context) (*appserver.Server, error) {
			// Otherwise a turn without a network would never end.
			config := append(slices.Concat(appserver.Trust(w.Dir, w.Sandbox), goals(w.Goals)), "features.unbounded_connection_retries=false")
			return appserver.StartServer(ctx, appserver.ServerOptions{Program: program, Config: config, Env: env, Dir: w.Dir})
		},
	}
}

// decline declines and prints that it did: nobody is here to approve.
func (w *once) decline(_ context.Context, a Approval) (Decision, func(Taken)) {
	w.say("declined: " + envelope.Cut(strings.TrimSpace(a.Tool+" "+a.Text), 200))
	return Decline, nil
}

// adapter is what a model must know about being used in this way.
func adapter(id agent.ID) string {
	return fmt.Sprintf(`

---

You are %s. netsky gives you one message at a time, in a <channel> element that names its sender; nobody sees what
you write while you work, and nobody can answer a question before you have finished. The last thing you write in the
turn is sent to that sender: keep it short, and write it once, between %s and %s. Do not start or stop agents.`, id, replyOpen, replyClose)
}
