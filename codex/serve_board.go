package codex

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
	"netsky/store"
)

// A board says how the agent is, from what happens in its thread: to the state
// file, to the records, and to the receiver, which must know of turns that a
// person began.
type board struct {
	s    *sidecar
	stop func() // ends the subscription
	done chan struct{}

	mu      sync.Mutex // guards what follows
	now     agent.Report
	held    bool             // blocked until the login has been looked at again
	quota   bool             // blocked until a turn goes well
	message string           // in hand
	about   string           // the message of the running turn, else the thread
	turn    func()           // ends the turn for the receiver
	before  *appserver.Usage // the thread's tokens as last told
	spent   appserver.Usage  // of the running turn
}

const (
	evidence = "codex thread events"
	maxWords = 200 // bytes of a detail and of a log's text
)

func newBoard(s *sidecar) *board { return &board{s: s} }

// follow begins to read the events of a session.
func (b *board) follow(s *Session) {
	events, stop := s.Subscribe()
	b.stop, b.done = stop, make(chan struct{})
	go func() {
		defer close(b.done)
		for e := range events {
			b.event(e)
		}
	}()
}

func (b *board) close() {
	if b.stop != nil {
		b.stop()
		<-b.done
	}
}

// report writes the state file if there is news.
func (b *board) report(state agent.State, detail string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set(state, detail)
}

func (b *board) set(state agent.State, detail string) error {
	r := agent.Report{Start: b.s.Start, State: state, SinceMS: b.now.SinceMS, Evidence: evidence, Detail: words(detail)}
	if r == b.now {
		return nil
	}
	if b.now.State != state {
		r.SinceMS = time.Now().UnixMilli()
	}
	b.now = r
	if err := b.s.Home.SaveReport(b.s.Agent, r); err != nil {
		return errors.Join(errors.New("report the state"), err)
	}
	return nil
}

// ready says that mail can be taken, unless something else is known already.
func (b *board) ready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now.State == agent.Starting || b.now.State == agent.Blocked && !b.quota {
		return b.set(agent.Idle, "")
	}
	return nil
}

// hold keeps the state at blocked, whatever is told of the thread.
func (b *board) hold(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held = on
}

// began names the message in hand.
func (b *board) began(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.message = message
}

// inHand is the message of the running turn, "" if a person began that.
func (b *board) inHand() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.about != b.message {
		return ""
	}
	return b.message
}

// event takes in what has happened in the thread.
func (b *board) event(e appserver.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.Kind {
	case appserver.TurnStarted:
		b.about, b.spent = e.Thread, appserver.Usage{}
		if b.turn == nil {
			b.turn = b.s.mail.Turn()
		}
		b.state(agent.Busy, "turn")
	case appserver.Accepted:
		if e.Input != "" && e.Input == b.message {
			b.about = e.Input
		}
	case appserver.Message:
		b.s.print.heading(string(b.s.Agent), e.Text)
	case appserver.ToolStarted:
		b.s.print.heading(e.Tool, e.Text)
		b.state(agent.Busy, strings.TrimSpace(e.Tool+": "+e.Text))
		b.record(b.about, e.Tool+" started: "+e.Text, nil)
	case appserver.ToolFinished:
		b.state(agent.Busy, "turn")
		how := " finished: "
		if e.Failed {
			how = " failed: "
		}
		b.record(b.about, e.Tool+how+e.Text, nil)
	case appserver.ApprovalAsked:
		b.state(agent.Waiting, "approval: "+strings.TrimSpace(e.Tool+" "+e.Text))
	case appserver.ApprovalSettled:
		b.state(agent.Busy, "turn")
	case appserver.Retrying:
		b.state(agent.Busy, "turn; tries again: "+e.Text)
	case appserver.TokenUsage:
		b.count(e.Usage)
	case appserver.TurnCompleted, appserver.TurnInterrupted, appserver.TurnFailed, appserver.ThreadLost:
		b.ended(e)
	}
}

// state is what events make of the state. That it could not be written is said
// in the pane: the turn goes on.
func (b *board) state(state agent.State, detail string) {
	if b.held {
		return
	}
	if err := b.set(state, detail); err != nil {
		b.s.print.say(err.Error())
	}
}

// ended is the end of a turn, or of the connection.
func (b *board) ended(e appserver.Event) {
	running := b.turn != nil
	switch e.Kind {
	case appserver.TurnCompleted:
		b.quota = false
		b.state(agent.Idle, "")
	case appserver.TurnInterrupted:
		b.state(agent.Idle, "last turn interrupted")
	case appserver.TurnFailed:
		b.failed(e.Err)
	case appserver.ThreadLost:
		if running {
			b.state(agent.Busy, "codex is started again")
		}
	}
	if running {
		b.turn()
		b.turn = nil
		fields := map[string]any{"input": b.spent.Input, "output": b.spent.Output, "cached": b.spent.CachedInput}
		b.record(b.about, strings.ReplaceAll(string(e.Kind), "_", " "), fields)
	}
}

func (b *board) failed(err error) {
	text := err.Error()
	b.s.print.say("the turn failed: " + text)
	b.record(b.about, "turn failed: "+text, nil)
	var trouble *appserver.TurnError
	errors.As(err, &trouble)
	switch {
	case trouble != nil && trouble.Trouble == appserver.TroubleQuota:
		b.quota = true
		b.state(agent.Blocked, "quota: "+text)
	case trouble != nil && trouble.Trouble == appserver.TroubleLogin:
		b.state(agent.Blocked, text)
	default:
		b.state(agent.Idle, "last turn failed: "+text)
	}
}

// count adds up the running turn's tokens. Codex tells those of the whole
// thread, also when nothing has been spent.
func (b *board) count(u *appserver.Usage) {
	if b.before != nil && u.Total >= b.before.Total {
		b.spent.Input += u.Input - b.before.Input
		b.spent.CachedInput += u.CachedInput - b.before.CachedInput
		b.spent.Output += u.Output - b.before.Output
	} else if u.Total == u.Last { // the thread's first
		b.spent.Input += u.Input
		b.spent.CachedInput += u.CachedInput
		b.spent.Output += u.Output
	}
	b.before = u
}

// log puts a line on record.
func (b *board) log(about, text string, fields map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.record(about, text, fields)
}

// conversation puts down which thread the start has.
func (b *board) conversation(thread string) {
	if b.s.Records == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	b.s.Records.Record(ctx, store.SessionState{Start: b.s.Start, Actor: b.s.Agent, Thread: thread, Time: store.At(time.Now())})
}

func (b *board) record(about, text string, fields map[string]any) {
	if b.s.Records == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// What the database does not take waits in the spool, which others tell of.
	b.s.Records.Record(ctx, store.AddLog{
		Part: "codex", Actor: b.s.Agent, About: about, Text: words(text), Fields: fields, Time: store.At(time.Now()),
	})
}

// words makes a text one short line.
func words(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\ufffd")), " ")
	if len(text) > maxWords {
		text = envelope.Cut(text, maxWords-len("…")) + "…"
	}
	return text
}
