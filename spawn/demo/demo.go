// Package demo is an agent without a model: a program that runs in a pane, takes its
// mail like any other agent and answers it, for a first run of netsky and for its
// tests. It costs nothing.
//
// It answers plain messages, briefs, handoffs and cron's calls, and obeys the commands
// that "/help" lists, both in mail and at its pane. It never answers a reply, an error
// or an acknowledgement, so two demos do not talk forever.
//
// It may be killed at any moment. A courier delivers its mail, and for the courier it
// is the simplest possible program: it takes one message at a time, reports when it has
// finished, and remembers no conversation. What it has delegated is stored in
// state/demo/<agent>.json before it is sent, and is forgotten only when the answer has
// been passed on. What it edits and commits when told to is in a git worktree that netsky
// made for it, and nowhere else; a message that is offered again adds no second line and
// makes no second commit.
//
// It knows nothing of tmux, of the records, or of how it was started.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/home"
)

// Options configure the program. All but In are required.
type Options struct {
	Home  home.Dir
	Agent agent.ID
	Start string // the start id
	Bus   *bus.Bus
	In    io.Reader // the pane's keys; nil or at its end: nobody types
	Out   io.Writer // the pane
}

// Crash is the error of a demo that was told to crash, with the exit status it was
// given.
type Crash struct{ Status int }

func (c Crash) Error() string { return fmt.Sprintf("told to crash with status %d", c.Status) }

// A demo is the agent at work. Its fields belong to the goroutine of Run, unless noted
// otherwise.
type demo struct {
	Options
	look  func(context.Context) bool // makes the courier report the state
	over  chan struct{}              // closed when the courier has ended,
	ended error                      // and how, valid then
	stop  func()                     // ends the courier
	queue *courier.Queue
	pane  *pane // may be written from any goroutine
	keys  *keyboard
	jobs  *jobs
	step  func(name string) // called between two durable steps, so that a test can end the process there
	courierSide
}

// Run takes the agent's mail and the lines typed at its pane until it is asked to shut
// down (nil), ctx ends (ctx's error), it is told to crash (a Crash), or it can't
// continue. The error matches home.ErrLocked if another process holds the agent's
// mailbox. An unfinished message is offered again at the next start. A Read of In that
// is in progress when Run returns continues until In has something or ends.
func Run(ctx context.Context, o Options) error { return run(ctx, o, func(string) {}) }

func run(ctx context.Context, o Options, step func(string)) error {
	d, notice, err := newDemo(o, step)
	if err != nil {
		return err
	}
	mail := courier.New(courier.Options{
		Agent: o.Agent, Start: o.Start, Home: o.Home, Bus: o.Bus, Runtime: program{d}, Events: d.queue, Log: d.trouble,
	})
	d.look = mail.Look
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	couriers, stopCourier := context.WithCancel(working)
	d.stop = func() {
		stopCourier()
		<-d.over
	}
	defer d.stop()
	running.Go(func() {
		defer close(d.over)
		d.ended = mail.Run(couriers)
	})
	if !d.be(ctx, agent.Idle, "") {
		<-d.over
		return d.howEnded(ctx)
	}
	d.pane.banner()
	if notice != "" {
		d.pane.note(notice)
	}
	d.queue.Put(courier.Event{Event: agent.Event{Event: agent.EventSessionStart}})
	d.keys = readKeys(working, o.In)
	err = d.serve(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // whatever it interrupted
	}
	return err
}

// newDemo makes a demo that has no courier yet.
func newDemo(o Options, step func(string)) (d *demo, notice string, err error) {
	d = &demo{Options: o, pane: newPane(o.Out, o.Agent), step: step, queue: courier.NewQueue(o.Start), over: make(chan struct{})}
	d.offers, d.report.State, d.report.Evidence = make(chan courier.Offer, 1), agent.Starting, "demo"
	d.jobs, notice, err = loadJobs(o.Home, o.Agent)
	return d, notice, err
}

// trouble shows what the courier reports, besides the messages.
func (d *demo) trouble(what string, err error) {
	if err != nil {
		what += ": " + err.Error()
	}
	d.pane.note(what)
}

// howEnded returns how the demo ends when its courier does.
func (d *demo) howEnded(ctx context.Context) error {
	switch {
	case errors.Is(d.ended, bus.ErrShutdown):
		d.pane.note("asked to shut down: done")
		return nil
	case d.ended == nil: // only ctx ends it without an error
		return ctx.Err()
	}
	return d.ended
}

func (d *demo) serve(ctx context.Context) error {
	for {
		d.rest(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-d.over:
			return d.howEnded(ctx)
		case o := <-d.offers:
			if err := d.receive(ctx, o); err != nil {
				return err
			}
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

// rest reports that the demo is idle, and what it waits for.
func (d *demo) rest(ctx context.Context) {
	detail := ""
	if who := d.jobs.waiting(); who != "" {
		detail = "waiting for an answer from " + who
	}
	d.be(ctx, agent.Idle, detail)
	d.pane.prompt()
}
