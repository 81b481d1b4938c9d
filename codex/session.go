package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/codex/appserver"
	"netsky/store"
)

// SessionOptions say how one agent's thread is kept.
type SessionOptions struct {
	Home    home.Dir
	Agent   agent.ID
	Connect func(context.Context) (*appserver.Server, error) // starts the server, or dials it
	Thread  appserver.ThreadOptions                          // ID is not read
	Startup string                                           // in front of a new thread's first text
	Limit   time.Duration                                    // of one turn; 0: none
	Records Recorder                                         // nil: nothing is recorded
	Say     func(text string)                                // tells a person what they should know, from any goroutine; nil: nobody
}

// A Session keeps the thread of one agent over the deaths of its servers. Its
// methods may be called from one goroutine at a time, but for Subscribe.
type Session struct {
	o      SessionOptions
	feed   appserver.Feed
	server *appserver.Server
	thread *appserver.Thread
	state  State
	saved  mark // what is on file
	rows   rows
}

// A mark is what makes a state worth saving.
type mark struct {
	thread, message, model string
	started                bool
}

func (s State) mark() mark { return mark{s.Thread, s.Message, s.Model, s.Started} }

// An Input is a message for a thread.
type Input struct {
	ID   string // the envelope's
	Text string // as the model is to read it
	// Keep is written down with the ID before the submit, and is in the state
	// until Settled.
	Keep json.RawMessage
	// Accepted, if not nil, is called when the text stands in the thread; once
	// for each attempt.
	Accepted func()
}

// An Answer is what came of an Input.
type Answer struct {
	appserver.Result
	Recovered bool // it was in the thread already: an earlier process had not got to use it
}

const (
	grace    = 10 * time.Second // what Codex gets to answer
	patience = 2 * time.Second  // what a Codex that is ending gets to let go of its thread
)

// maxLosses is how often a server may end under one message. A message that
// ends it each time is not tried for ever.
const maxLosses = 3

// NewSession reads the agent's state and connects to nothing. Close ends what
// Deliver connects to. The caller holds the agent's mailbox, and with it the
// right to its thread.
func NewSession(o SessionOptions) (*Session, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	state, err := o.load()
	if err != nil {
		return nil, err
	}
	return &Session{o: o, state: state, rows: rows{o: &o}}, nil
}

// load reads the agent's state and says if it could not be read.
func (o SessionOptions) load() (State, error) {
	state, aside, err := LoadState(o.Home, o.Agent)
	if aside != "" {
		o.Say("its state was unreadable and is now " + o.Home.Path(aside) + "; a fresh thread begins")
	}
	return state, err
}

// Subscribe is Thread.Subscribe over all connections of the session.
func (s *Session) Subscribe() (events <-chan appserver.Event, stop func()) { return s.feed.Subscribe() }

// Close ends the connection and waits for a server of our own to end.
func (s *Session) Close() error {
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.server, s.thread = nil, nil
	return err
}

// Open connects and opens the thread, unless it is open. The error matches
// ErrHeld if another process has it, and ErrOld if this Codex is one that is
// driven otherwise.
func (s *Session) Open(ctx context.Context) (*appserver.Thread, error) {
	if s.thread != nil && s.server.Err() == nil {
		return s.thread, nil
	}
	s.Close()
	server, err := s.o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s.server = server
	if err := server.Recent(); err != nil {
		s.Close()
		return nil, err
	}
	o := s.o.Thread
	o.ID, o.Feed = s.state.Thread, &s.feed
	thread, err := s.openFreed(ctx, o)
	if errors.Is(err, appserver.ErrGone) {
		thread, err = s.openFresh(ctx, o)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	if s.state.Thread != thread.ID() {
		s.state = State{Thread: thread.ID(), Keep: s.state.Keep} // written down before its first text
		if o.Name != "" {                                        // it is on disk already
			if err := s.state.save(s.o.Home, s.o.Agent, false); err != nil {
				s.Close()
				return nil, err
			}
		}
	}
	s.thread, s.state.Model = thread, thread.Model()
	return thread, nil
}

// openFreed opens a thread and gives a server that is just ending the time to
// let go of it.
func (s *Session) openFreed(ctx context.Context, o appserver.ThreadOptions) (*appserver.Thread, error) {
	deadline := time.Now().Add(patience)
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		thread, err := s.server.Open(ctx, o)
		if !errors.Is(err, appserver.ErrHeld) || time.Now().After(deadline) {
			return thread, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// openFresh begins a thread in the place of one that is gone.
func (s *Session) openFresh(ctx context.Context, o appserver.ThreadOptions) (*appserver.Thread, error) {
	old := s.state
	if old.Started {
		s.o.Say("codex session not found for thread " + old.Thread + "; starting fresh thread")
	}
	if old.Message != "" {
		s.rows.put(ctx, s.state.Thread, old.Message, store.InputCancelled, "the thread is gone")
	}
	o.ID = ""
	thread, err := s.server.Open(ctx, o)
	if err == nil && old.Started {
		s.o.Say("new codex thread_id=" + thread.ID() + " (was " + old.Thread + ")")
	}
	return thread, err
}

// Deliver brings a message through a turn and returns what the model said last.
// A server that ends meanwhile is started again, and the message gone on with.
// The error is a *TurnError, or matches ErrTimeout, ErrInterrupted, ErrHeld,
// ErrLost or ctx's. After any of these Deliver may be called again with the same
// input, also by another process: what has been done is not done again.
func (s *Session) Deliver(ctx context.Context, in Input) (Answer, error) {
	again := s.state.Message == in.ID // an earlier process may have submitted it
	announced := s.announce(ctx, in)
	for losses := 0; ; again = true {
		thread, err := s.Open(ctx)
		if unwritten := announced(); unwritten != nil {
			return Answer{}, unwritten
		}
		var answer Answer
		if err == nil {
			answer, err = s.deliver(ctx, thread, in, again)
		}
		if err == nil || !errors.Is(err, appserver.ErrLost) || errors.Is(err, appserver.ErrTimeout) || ctx.Err() != nil {
			return answer, err
		}
		s.Close()
		if losses++; losses == maxLosses {
			return answer, err
		}
		s.o.Say(err.Error() + "; starting it again")
	}
}

// announce puts down that a message goes to the thread, while Codex is still
// starting. What it returns waits for that, and may be called again. Of a
// thread that has yet to begin there is nothing to put down.
func (s *Session) announce(ctx context.Context, in Input) (wait func() error) {
	if s.state.Thread == "" {
		return func() error { return nil }
	}
	s.state.Message, s.state.Keep = in.ID, in.Keep
	s.saved = s.state.mark()
	state, done := s.state, make(chan struct{})
	var err error
	go func() {
		defer close(done)
		s.rows.put(ctx, state.Thread, in.ID, store.InputPending, "")
		err = state.save(s.o.Home, s.o.Agent, true)
	}()
	return func() error { <-done; return err }
}

// deliver brings a message through a turn. again says that it may stand in the
// thread already.
func (s *Session) deliver(ctx context.Context, thread *appserver.Thread, in Input, again bool) (Answer, error) {
	defer thread.Hold()()
	text := in.Text
	if !s.state.Started && s.o.Startup != "" {
		text = s.o.Startup + "\n\n" + text
	}
	if again {
		past, err := thread.Find(ctx, in.ID)
		switch {
		case err != nil:
			return Answer{}, err
		case past == nil:
		case past.Running != nil:
			s.accepted(ctx, in)
			res, err := past.Running.Wait(ctx, s.o.Limit)
			return Answer{Result: res}, err
		default:
			s.accepted(ctx, in)
			if past.Err == nil {
				return Answer{Result: past.Result, Recovered: true}, nil
			}
			text = brokenOff(in.ID, past.Err)
		}
	}
	if s.saved.thread != thread.ID() || s.saved.message != in.ID {
		s.state.Message, s.state.Keep = in.ID, in.Keep
		s.saved = s.state.mark()
		if err := s.state.save(s.o.Home, s.o.Agent, true); err != nil {
			return Answer{}, err
		}
		s.rows.put(ctx, thread.ID(), in.ID, store.InputPending, "")
	}
	turn, err := thread.Submit(ctx, in.ID, text)
	if err != nil {
		// Of a loss nobody knows yet whether it was taken: the row waits for
		// the next attempt, which looks.
		if !errors.Is(err, appserver.ErrLost) && ctx.Err() == nil {
			s.rows.put(ctx, thread.ID(), in.ID, store.InputCancelled, err.Error())
		}
		return Answer{}, err
	}
	s.accepted(ctx, in)
	res, err := turn.Wait(ctx, s.o.Limit)
	return Answer{Result: res}, err
}

// accepted notes that a message stands in the thread.
func (s *Session) accepted(ctx context.Context, in Input) {
	s.state.Started = true
	if s.state.mark() != s.saved {
		s.saved = s.state.mark()
		if err := s.state.save(s.o.Home, s.o.Agent, false); err != nil {
			s.o.Say(err.Error()) // at worst the thread hears the startup text twice
		}
	}
	s.rows.put(ctx, s.state.Thread, in.ID, store.InputConsumed, "")
	if in.Accepted != nil {
		in.Accepted()
	}
}

// brokenOff is what a model is told whose turn on a message did not get to its
// end. The message itself stands in the thread already.
func brokenOff(id string, err error) string {
	why := "netsky or Codex ended in the middle of it"
	if !errors.Is(err, appserver.ErrInterrupted) {
		why = "it failed: " + err.Error()
	}
	return fmt.Sprintf("[netsky] Your turn on the message with the id %s was broken off: %s. See what is done already, "+
		"then go on with that message to its end. It is not sent again.", id, why)
}
