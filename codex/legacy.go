package codex

import (
	"context"
	"errors"
	"fmt"

	"netsky/codex/appserver"
	"netsky/store"
)

// legacy brings messages through `codex mcp-server`. A saved thread is tried once and
// then replaced.
type legacy struct {
	o      SessionOptions
	server appserver.ServerOptions
	state  State
	put    func(ctx context.Context, thread, message, state, reason string) // a row
}

// Deliver brings a message through a turn of a server of its own.
func (l *legacy) Deliver(ctx context.Context, in Input) (Answer, error) {
	call := ctx
	if l.o.Limit > 0 {
		var cancel context.CancelFunc
		call, cancel = context.WithTimeout(ctx, l.o.Limit)
		defer cancel()
	}
	answer, err := l.deliver(call, in)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		// The server never answers a cancelled call; closing it here ended it.
		err = fmt.Errorf("%w: over %v", appserver.ErrTimeout, l.o.Limit)
	}
	return answer, err
}

func (l *legacy) deliver(ctx context.Context, in Input) (Answer, error) {
	s, err := appserver.StartLegacy(ctx, l.server, l.o.Say)
	if err != nil {
		return Answer{}, err
	}
	defer s.Close()
	old := l.state
	if old.Thread == "" {
		return l.begin(ctx, s, in)
	}
	l.put(ctx, old.Thread, in.ID, store.InputPending, "")
	res, err := s.Reply(ctx, old.Thread, in.Text)
	if !errors.Is(err, appserver.ErrGone) {
		l.put(ctx, old.Thread, in.ID, store.InputConsumed, "")
		return Answer{Result: res}, err
	}
	l.put(ctx, old.Thread, in.ID, store.InputCancelled, "the thread is gone")
	l.o.Say("codex session not found for thread " + old.Thread + "; starting fresh thread")
	answer, err := l.begin(ctx, s, in)
	if err == nil {
		l.o.Say("new codex thread_id=" + answer.Thread + " (was " + old.Thread + ")")
	}
	return answer, err
}

// begin starts a thread with the message.
func (l *legacy) begin(ctx context.Context, s *appserver.Legacy, in Input) (Answer, error) {
	text := in.Text
	if l.o.Startup != "" {
		text = l.o.Startup + "\n\n" + text
	}
	res, err := s.Begin(ctx, l.o.Thread, text)
	if err != nil {
		return Answer{}, err
	}
	l.put(ctx, res.Thread, in.ID, store.InputConsumed, "") // before, the thread had no name
	l.state = State{Thread: res.Thread, Model: l.o.Thread.Model, Started: true, Message: in.ID}
	return Answer{Result: res}, l.state.save(l.o.Home, l.o.Agent, true)
}
