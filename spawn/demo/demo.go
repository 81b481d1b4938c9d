// Package demo is an agent without a model: a program that stands in a pane,
// takes its mail like any other agent and answers it, for a first run of netsky
// and for its tests. It spends nothing.
//
// It answers plain messages, briefs, handoffs and cron's calls, and obeys the
// commands that "/help" lists, in mail as at its pane. It never answers a
// reply, an error or an acknowledgement, so two demos do not talk for ever.
//
// It may be killed at any moment. Each message has one answer, whose id comes
// from the message's: a message that is offered again after a crash is answered
// with the same id, and the recipient drops the second. What it has delegated
// stands in state/demo/<agent>.json before it is sent, and is forgotten only
// when the answer has been passed on.
//
// It knows nothing of tmux, of the records, or of how it was started.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
)

// Options are what the program needs. All but In are required.
type Options struct {
	Home  home.Dir
	Agent agent.ID
	Start string // the start id
	Bus   *bus.Bus
	In    io.Reader // the pane's keys; nil or at its end: nobody types
	Out   io.Writer // the pane
}

// Crash is the error of a demo that was told to crash, with the exit status it
// was told.
type Crash struct{ Status int }

func (c Crash) Error() string { return fmt.Sprintf("told to crash with status %d", c.Status) }

// A demo is the agent at work. Its fields belong to the goroutine of Run, but
// for pane, which may be written to from any.
type demo struct {
	Options
	mail   *bus.Receiver
	pane   *pane
	keys   *keyboard
	jobs   *jobs
	state  agent.State
	since  time.Time
	detail string
	step   func(name string) // called between two durable steps, so that a test can end us there

	mu     sync.Mutex
	ending chan agent.ID // guarded by mu: who interrupts the running turn; nil between turns
}

// turn begins a turn, which an interrupt may end until done is called. One that
// comes between two turns is about none.
func (d *demo) turn() (done func()) {
	ends := d.mail.Turn()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ending = make(chan agent.ID, 1) // the first word is enough
	return func() {
		d.mu.Lock()
		d.ending = nil
		d.mu.Unlock()
		ends()
	}
}

// interrupt is told of a cancel that has come.
func (d *demo) interrupt(e envelope.Envelope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.ending <- e.From:
	default: // no turn, or one that is ending
	}
}

// interrupts is where the running turn hears that it shall end.
func (d *demo) interrupts() <-chan agent.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ending
}

// Run takes the agent's mail and the lines typed at its pane until it is asked
// to shut down (nil), ctx ends (ctx's error), it is told to crash (a Crash), or
// it can go on no more. A message that was not dealt with to its end is offered
// again at the next start. A Read of In that is under way when Run returns goes
// on until In has something or ends.
func Run(ctx context.Context, o Options) error { return run(ctx, o, func(string) {}) }

func run(ctx context.Context, o Options, step func(string)) error {
	d := &demo{Options: o, pane: newPane(o.Out, o.Agent), step: step}
	r, err := o.Bus.Receive(ctx, o.Agent, bus.ReceiveOptions{Start: o.Start, Report: d.trouble, Cancel: d.interrupt})
	if err != nil {
		return err
	}
	defer r.Close()
	d.mail = r
	if err := d.report(ctx, agent.Idle, ""); err != nil {
		return err
	}
	d.pane.banner()
	var notice string
	if d.jobs, notice, err = loadJobs(o.Home, o.Agent); err != nil {
		return err
	}
	if notice != "" {
		d.pane.note(notice)
	}
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	d.keys = readKeys(working, o.In)
	mail := make(chan taken)
	resume := make(chan struct{}, 1) // at most one word for the one message in hand
	running.Go(func() { fetch(working, r, mail, resume) })
	err = d.serve(ctx, mail, resume)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // whatever it was broken off at
	}
	return err
}

// trouble is told by the receiver what went wrong beside the messages.
func (d *demo) trouble(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	d.pane.note(what)
}

// taken is what one call of Next gave.
type taken struct {
	delivery *bus.Delivery
	err      error
}

// fetch hands over one message at a time and claims none before it hears that
// the one in hand has been filed.
func fetch(ctx context.Context, r *bus.Receiver, mail chan<- taken, resume <-chan struct{}) {
	for {
		var t taken
		t.delivery, t.err = r.Next(ctx)
		select {
		case mail <- t:
		case <-ctx.Done():
			return
		}
		select {
		case <-resume:
		case <-ctx.Done():
			return
		}
	}
}

func (d *demo) serve(ctx context.Context, mail <-chan taken, resume chan<- struct{}) error {
	for {
		if err := d.rest(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case t := <-mail:
			switch {
			case errors.Is(t.err, bus.ErrShutdown):
				d.pane.note("asked to shut down: done")
				return nil
			case t.err != nil:
				return t.err
			}
			if err := d.receive(ctx, t.delivery); err != nil {
				return err
			}
			resume <- struct{}{}
		case chunk, open := <-d.keys.C:
			d.keys.add(chunk, open)
			for line, ok := d.keys.line(); ok; line, ok = d.keys.line() {
				if err := d.typed(ctx, line); err != nil {
					return err
				}
			}
		}
	}
}

// rest says that nothing is going on, and what is waited for.
func (d *demo) rest(ctx context.Context) error {
	detail := ""
	if who := d.jobs.waiting(); who != "" {
		detail = "waits for an answer of " + who
	}
	if err := d.report(ctx, agent.Idle, detail); err != nil {
		return err
	}
	d.pane.prompt()
	return nil
}

// report writes the state file if there is news.
func (d *demo) report(ctx context.Context, state agent.State, detail string) error {
	if d.state == state && d.detail == detail {
		return nil
	}
	if d.state != state {
		d.since = time.Now()
	}
	d.state, d.detail = state, detail
	err := d.durable(ctx, func() error {
		return d.Home.SaveReport(d.Agent, agent.Report{
			Start: d.Start, State: state, SinceMS: d.since.UnixMilli(), Evidence: "demo", Detail: detail,
		})
	})
	if err != nil {
		return fmt.Errorf("report the state: %w", err)
	}
	return nil
}
