package claude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/home"
)

// A Pane is the terminal that a session runs in.
type Pane interface {
	// Screen returns what it shows, with the escape sequences of its colours and
	// attributes.
	Screen(ctx context.Context) (string, error)
	// Keys presses keys, by tmux's names for them.
	Keys(ctx context.Context, keys ...string) error
	// Paste inserts text as a paste, without an Enter.
	Paste(ctx context.Context, text string) error
}

// A Session reaches a running Claude Code from another process. What it reports rests on
// Claude Code's own registry first, then on what the hooks left in the agent's events, and
// on the screen if neither says.
//
// Its methods may be called concurrently; those that press keys run one at a time.
type Session struct {
	Home      home.Dir
	Agent     agent.ID
	Start     string // the start id; events of other starts are ignored
	PID       int    // Claude Code's process
	ConfigDir string
	Pane      Pane // nil if there is none to reach

	hands    sync.Mutex // held while keys are pressed
	declined time.Time  // when [Session.decline] pressed one; guarded by hands

	mu        sync.Mutex // guards the fields below
	tail      *home.EventTail
	facts     facts
	glance    string     // the screen at the last look,
	glanced   time.Time  // when that was,
	glancedAt Registered // and what the registry said then
	compared  time.Time  // when the screen was last compared with the registry,
	doubted   bool       // and whether it contradicted it
	login     *Login
}

// Close closes what is open. The session can be used again.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tail == nil {
		return nil
	}
	tail := s.tail
	s.tail, s.facts = nil, facts{}
	return tail.Close()
}

// Push passes a text to the session as another session's message, whatever it is doing:
// Claude Code takes it up when it can. nil means that the bytes were accepted, no more. An
// error with a method Refused means that this way is closed.
func (s *Session) Push(ctx context.Context, text string) error {
	r, err := FindSession(s.ConfigDir, s.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return Closed{Err: err}
	}
	if err != nil {
		return err
	}
	return Push(ctx, r.Socket, s.PID, text)
}

// Holds reports whether the conversation already holds the envelope.
func (s *Session) Holds(id string) bool { return Holds(s.transcript(), id) }

// transcript returns the conversation's file, "" if unknown.
func (s *Session) transcript() string {
	if file := s.known().transcript; file != "" {
		return file
	}
	// No hook of this start has named it; for a resumed conversation it is known.
	if state, err := LoadState(s.Home, s.Agent); err == nil && state.Start == s.Start {
		return state.Transcript
	}
	return ""
}

// usagePatience limits the wait for a conversation's file.
const usagePatience = 5 * time.Second

// Usage returns what the turn that ended with the event, an EventStop or
// EventStopFailed, has used. Claude Code writes the conversation's file a moment
// after its hooks ran; Usage waits for it, and otherwise returns what is there.
func (s *Session) Usage(ctx context.Context, e agent.Event) agent.Usage {
	if e.Usage != nil && e.Usage.Requests > 0 {
		return *e.Usage
	}
	var u agent.Usage
	until(ctx, usagePatience, func() bool {
		turn, err := ReadTurn(e.Transcript, e.ID)
		u = turn.Usage
		if errors.Is(err, fs.ErrNotExist) { // of a first turn it is not there yet
			return e.Transcript == ""
		}
		return err != nil || turn.endsWith(e.Text)
	})
	if e.Usage != nil {
		u.ContextFull = e.Usage.ContextFull
	}
	return u
}

const (
	// interruptPatience limits the wait for a turn to end.
	interruptPatience = 5 * time.Second
	// keyPatience is how long a key may take to end a turn before another is pressed, if there
	// is another.
	keyPatience = 1500 * time.Millisecond
	// beginPatience limits the wait for a turn that has just begun to be in the file.
	beginPatience = 2 * time.Second
)

// ErrIdle is returned by Interrupt when no turn runs.
var ErrIdle = errors.New("no turn is running")

// Interrupt ends the running turn by the key that does, mostly one Escape, and waits until it
// has ended. It presses no key unless Claude Code's registry shows a running turn: the key
// would mean something else. A turn in which the model has not said anything yet is undone:
// what the person had typed is back in the composer. Claude Code begins a turn that is
// ended too early once more, with the same prompt: so the Escape waits until the
// conversation's file holds that, and is pressed again if its hook runs again.
func (s *Session) Interrupt(ctx context.Context) error {
	s.hands.Lock()
	defer s.hands.Unlock()
	before := s.known()
	r, err := s.running()
	if err != nil {
		return err
	}
	if s.Pane == nil {
		return fmt.Errorf("%s: no pane", s.Agent)
	}
	began := r.StatusMS
	over := func() bool { // or it waits, or what runs is the next turn
		r, err = s.running()
		return err != nil || s.known().ended != before.ended
	}
	until(ctx, min(beginPatience, beginPatience-time.Since(time.UnixMilli(began))), func() bool {
		f := s.known()
		held, _ := TurnEnd(s.transcript(), "", f.turn)
		return f.prompted >= began && held.ID != "" || over()
	})
	last := s.known()
	var unpressed error
	stop := s.stopper(ctx)
	gone := over()
	if !gone {
		if err := stop.press(ctx, s.Pane); err != nil {
			return err
		}
		again := time.Now().Add(keyPatience)
		gone = until(ctx, interruptPatience, func() bool {
			if over() {
				return true
			}
			if f := s.known(); f.prompted != last.prompted {
				same := f.prompt == last.prompt
				last = f
				if same {
					unpressed = stop.again(ctx, s.Pane)
				}
			} else if time.Now().After(again) {
				again = time.Now().Add(keyPatience)
				unpressed = stop.press(ctx, s.Pane)
			}
			return unpressed != nil
		})
	}
	switch {
	case unpressed != nil:
		return unpressed
	case !gone:
		return fmt.Errorf("%s: still busy %v after %s%s", s.Agent, interruptPatience, strings.Join(stop.pressed, ", "), stop.why)
	case r.Status == statusWaiting:
		return err
	}
	return nil
}

// running returns what the registry shows of a running turn, and an error if there is none
// or it waits for an answer.
func (s *Session) running() (Registered, error) {
	r, err := FindSession(s.ConfigDir, s.PID)
	switch {
	case err != nil:
	case r.Status == statusWaiting:
		err = fmt.Errorf("%s: waiting for an answer (%s)", s.Agent, r.WaitingFor)
	case r.Status != statusBusy:
		err = fmt.Errorf("%s: %w", s.Agent, ErrIdle)
	}
	return r, err
}

// untilTick is how often until checks.
const untilTick = 50 * time.Millisecond

// until waits until ok returns true, and reports whether it did in time.
func until(ctx context.Context, patience time.Duration, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(untilTick)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ok()
		}
	}
}

// Account names the login that a turn would use now, as [Login] does.
func (s *Session) Account() (name string, changed time.Time) {
	s.mu.Lock()
	if s.login == nil {
		if l, err := s.Home.LoadLaunch(s.Agent); err == nil && l.Start == s.Start {
			s.login = loginOf(l.Env, l.Dir, s.Home.Path(settingsFile(s.Agent)))
		}
	}
	login := s.login
	s.mu.Unlock()
	return login.Account()
}

// Courier returns the session as the courier drives it.
func (s *Session) Courier() courier.Runtime { return conversation{s} }

type conversation struct{ *Session }

// Traits are measured on Claude Code: its messaging socket takes lines of JSON under 1
// MiB, in which each character may be written as two; it accepts 30 texts in a row and
// then one every two seconds, silently drops the rest, and for 30 s ignores a text equal
// to the last.
func (conversation) Traits() courier.Traits {
	return courier.Traits{
		Name: "claude", Batch: 30, BatchBytes: 200 << 10, Text: 480 << 10, Queues: true, Implicit: true,
		Pace: courier.Pace{
			Burst: 25, Every: 2200 * time.Millisecond,
			Unseen: []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second},
			Busy:   250 * time.Millisecond, Idle: time.Second,
			// No hook reports a turn that a person interrupts, or one whose hook was killed;
			// the conversation's file may, and it is written a moment later.
			Told: 2 * time.Second, Silent: 6 * time.Second,
			Begins: 10 * time.Second, Read: 10 * time.Second, Point: time.Minute,
		},
	}
}

// Offer writes the text to the messaging socket.
func (c conversation) Offer(ctx context.Context, o courier.Offer) error { return c.Push(ctx, o.Text) }

// State reports that a text can be offered whenever a session runs: Claude Code queues it.
func (c conversation) State(ctx context.Context) courier.Condition {
	r := c.Session.State(ctx)
	if r.Dialog == limitDialog {
		c.decline(ctx)
	}
	v := courier.Condition{Report: r, Takes: r.State == agent.Idle || r.State == agent.Busy || r.State == agent.Waiting}
	if r.State == agent.Idle {
		v.Works = c.Works()
	}
	return v
}

func (c conversation) Holds(_ context.Context, id string) (bool, error) {
	return c.Session.Holds(id), nil
}

func (c conversation) Ended(_ context.Context, id, turn string) (e agent.Event, ok bool, err error) {
	e, ok = c.Session.Ended(id, turn)
	return e, ok, nil
}

func (c conversation) Interrupt(ctx context.Context, _ agent.ID) error {
	return c.Session.Interrupt(ctx)
}

var (
	_ courier.Pointer    = conversation{}
	_ courier.Meter      = conversation{}
	_ courier.Subscriber = conversation{}
)
