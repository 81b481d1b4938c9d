package codex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/codex/appserver"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

// SessionOptions configure a Session.
type SessionOptions struct {
	Home    home.Dir
	Agent   agent.ID
	Connect func(context.Context) (*appserver.Server, error) // starts the server, or dials it
	Thread  appserver.ThreadOptions                          // ID is not read
	Startup string                                           // for Deliver: in front of a new thread's first text
	Limit   time.Duration                                    // for Deliver: of one turn; 0: none
	Records courier.Recorder                                 // nil: nothing is recorded
	Say     func(text string)                                // prints a message for a person, from any goroutine; nil: nothing is printed
}

// A Session keeps the thread of one agent across restarts of its servers. Its methods
// may be called from one goroutine at a time, except submitting, refused and accepted.
type Session struct {
	o      SessionOptions
	server *appserver.Server
	thread *appserver.Thread
	events <-chan appserver.Event // of this connection's thread
	stop   func()                 // ends them
	within time.Duration          // for Codex to open the thread

	mu    sync.Mutex // guards the fields below
	state State
	saved State // saved in the file

	mute atomic.Bool // a failed record has been reported
}

// goals is the configuration of a server whose threads may have a goal, or may not. Codex begins
// turns of its own, one after the other without a pause, while a thread has one.
func goals(may bool) []string {
	if may {
		return nil
	}
	return []string{"features.goals=false"}
}

// An Input is a message for a thread.
type Input struct {
	ID   string // the envelope's
	Text string // as rendered for the model
}

// An Answer is the result of an Input.
type Answer struct {
	appserver.Result
	Recovered bool // it was in the thread already: an earlier process did not get to use it
}

// maxLosses is how often a server may end during one message. A message that makes it
// end each time is not retried forever.
const maxLosses = 3

const (
	grace    = 10 * time.Second // for Codex to answer
	openTime = time.Minute      // to open a thread, which takes it 0.2 s; a Codex that needs longer hangs
	patience = 2 * time.Second  // for a Codex that is exiting to let go of its thread
)

// NewSession reads the agent's state and connects to nothing. Close ends what Open
// connects to. The caller must have the right to the agent's thread.
func NewSession(o SessionOptions) (*Session, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	state, aside, err := loadState(o.Home, o.Agent)
	if aside != "" {
		o.Say("its state file was unreadable and was moved to " + o.Home.Path(aside) + "; starting a new thread")
	}
	if k := state.Keep; err == nil && k != nil {
		state.Keep = nil
		if err = courier.Owe(o.Home, o.Agent, k.Envelope); err == nil {
			err = state.save(o.Home, o.Agent, true)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Session{o: o, state: state, saved: state, stop: func() {}, within: openTime}, nil
}

// forget makes the next Open start a thread.
func (s *Session) forget() { s.state = State{} }

// Close ends the connection and waits for a server that it started to end.
func (s *Session) Close() error {
	if s.server == nil {
		return nil
	}
	err := s.server.Close()
	s.stop()
	s.server, s.thread = nil, nil
	return err
}

// Open connects and opens the thread, unless it is open. The error matches ErrHeld if
// another process has it, and ErrOld if this Codex is too old for an app-server.
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
	o.ID, o.Feed = s.state.Thread, new(appserver.Feed)
	s.events, s.stop = o.Feed.Subscribe()
	within, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	thread, err := s.openFreed(within, o)
	if errors.Is(err, appserver.ErrGone) {
		thread, err = s.openFresh(within, o)
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("codex did not open the thread within %v: %w", s.within, err)
	}
	if err == nil {
		err = s.opened(thread)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	s.thread = thread
	return thread, nil
}

// opened records which thread is open. A new one is saved before its first text, if it
// is on disk already.
func (s *Session) opened(thread *appserver.Thread) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Thread != thread.ID() {
		s.state = State{Thread: thread.ID()}
		if s.o.Thread.Name != "" {
			if err := s.save(false); err != nil {
				return err
			}
		}
	}
	s.state.Model = thread.Model()
	return nil
}

// save saves the state, unless it is unchanged. The caller holds mu.
func (s *Session) save(sync bool) error {
	if s.state == s.saved {
		return nil
	}
	err := s.state.save(s.o.Home, s.o.Agent, sync)
	if err == nil {
		s.saved = s.state
	}
	return err
}

// openFreed opens a thread; if a server that is exiting still has it, openFreed waits
// for that.
func (s *Session) openFreed(ctx context.Context, o appserver.ThreadOptions) (*appserver.Thread, error) {
	deadline := time.Now().Add(patience)
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		thread, err := s.server.Open(ctx, o)
		if !errors.Is(err, appserver.ErrHeld) || time.Now().After(deadline) {
			return thread, err
		}
		if proc.Sleep(ctx, wait) != nil {
			return nil, ctx.Err()
		}
	}
}

// openFresh starts a thread in place of a thread that is gone.
func (s *Session) openFresh(ctx context.Context, o appserver.ThreadOptions) (*appserver.Thread, error) {
	s.mu.Lock()
	old := s.state
	s.mu.Unlock()
	if old.Started {
		s.o.Say("codex session not found for thread " + old.Thread + "; starting fresh thread")
	}
	if old.Message != "" {
		s.put(ctx, old.Thread, old.Message, store.InputCancelled, "the thread is gone")
	}
	o.ID = ""
	thread, err := s.server.Open(ctx, o)
	if err == nil && old.Started {
		s.o.Say("new codex thread_id=" + thread.ID() + " (was " + old.Thread + ")")
	}
	return thread, err
}

// Deliver brings a message through a turn and returns what the model said last. A
// server that ends meanwhile is restarted, and the message continued. The error is a
// *TurnError, or matches ErrTimeout, ErrInterrupted, ErrHeld, ErrLost or ctx's. After
// any of these Deliver may be called again with the same input, also by another
// process: what has been done is not done again.
func (s *Session) Deliver(ctx context.Context, in Input) (Answer, error) {
	again := s.state.Message == in.ID // an earlier process may have submitted it
	written := make(chan error, 1)
	if old := s.state.Thread; old != "" {
		go func() { written <- s.submitting(ctx, old, in.ID) }() // while Codex is still starting
	} else {
		written <- nil
	}
	thread, err := s.Open(ctx)
	if unwritten := <-written; unwritten != nil {
		return Answer{}, unwritten
	}
	for losses := 0; ; again = true {
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
		s.o.Say(err.Error() + "; restarting it")
		thread, err = s.Open(ctx)
	}
}

// deliver brings a message through a turn. If again is set, the thread may contain it
// already.
func (s *Session) deliver(ctx context.Context, thread *appserver.Thread, in Input, again bool) (Answer, error) {
	defer thread.Hold()()
	text := in.Text
	if !s.state.Started && s.o.Startup != "" {
		text = s.o.Startup + "\n\n" + text
	}
	if again {
		past, err := thread.Find(ctx, in.ID, "")
		switch {
		case err != nil:
			return Answer{}, err
		case past == nil:
		case past.Running != nil:
			s.accepted(ctx, in.ID)
			res, err := past.Running.Wait(ctx, s.o.Limit)
			return Answer{Result: res}, err
		default:
			s.accepted(ctx, in.ID)
			if past.Err == nil {
				return Answer{Result: past.Result, Recovered: true}, nil
			}
			text = brokenOff(in, past.Err)
		}
	}
	if err := s.submitting(ctx, thread.ID(), in.ID); err != nil {
		return Answer{}, err
	}
	turn, err := thread.Submit(ctx, in.ID, text)
	if err != nil {
		s.refused(ctx, thread, in.ID, err)
		return Answer{}, err
	}
	s.accepted(ctx, in.ID)
	res, err := turn.Wait(ctx, s.o.Limit)
	return Answer{Result: res}, err
}

// submitting records that a message is about to be submitted, so that the next process
// looks for it in the thread.
func (s *Session) submitting(ctx context.Context, thread, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Thread != thread || s.saved.Thread == thread && s.saved.Message == id {
		return nil // it is gone, or that is recorded
	}
	s.state.Message = id
	if err := s.save(true); err != nil {
		return err
	}
	s.put(ctx, thread, id, store.InputPending, "")
	return nil
}

// refused records that a submit failed. After a lost connection it is unknown whether
// the message was accepted: its row waits for the next attempt, which looks.
func (s *Session) refused(ctx context.Context, thread *appserver.Thread, id string, err error) {
	if !errors.Is(err, appserver.ErrLost) && ctx.Err() == nil {
		s.put(ctx, thread.ID(), id, store.InputCancelled, err.Error())
	}
}

// accepted records that the thread shows a message.
func (s *Session) accepted(ctx context.Context, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Started = true
	if err := s.save(false); err != nil {
		s.o.Say(err.Error()) // at worst the thread gets the startup text twice
	}
	s.put(ctx, s.state.Thread, id, store.InputConsumed, "")
}

// put records a message's state. Records never stop a turn: what the database does not
// accept waits in the spool, and that is reported elsewhere.
func (s *Session) put(ctx context.Context, thread, message, state, reason string) {
	if s.o.Records == nil {
		return
	}
	err := s.o.Records.Record(context.WithoutCancel(ctx), store.UpsertInput{
		Actor: s.o.Agent, Thread: thread, Message: message, State: state, Reason: reason, Time: store.At(time.Now()),
	})
	if err != nil && !errors.Is(err, store.ErrSpooled) && s.mute.CompareAndSwap(false, true) {
		s.o.Say(err.Error())
	}
}

// brokenOff is the text for a model whose turn on a message was cut off. The thread
// contains the message already. After a fault of the vendor's the message is repeated: the
// model may never have seen it, and its answer is to be one to the message.
func brokenOff(in Input, err error) string {
	if appserver.FaultOf(err).Reason != "" {
		return fmt.Sprintf("[netsky] Your turn on the message with the id %s failed before you answered it. "+
			"It follows once more; what you have already done for it need not be done again.\n\n%s", in.ID, in.Text)
	}
	why := "netsky or Codex stopped before it ended"
	if !errors.Is(err, appserver.ErrInterrupted) {
		why = "it failed: " + err.Error()
	}
	return fmt.Sprintf("[netsky] Your turn on the message with the id %s was interrupted: %s. Check what is already done, "+
		"then continue with that message until it is finished. It is not sent again.", in.ID, why)
}
