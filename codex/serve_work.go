package codex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/codex/appserver"
)

// work is one message on its way through a turn.
type work struct {
	envelope envelope.Envelope
	text     string        // as the model is to read it
	delivery *bus.Delivery // nil: it was filed by an earlier process, or filed now
	accepted bool          // it stands in the thread
	losses   int           // how often the server has ended under it
}

// keep is what the next process must know to finish our work.
type keep struct {
	Envelope envelope.Envelope `json:"envelope"`
	Text     string            `json:"text"`
}

// deal brings a message through a turn and sends its answer. The message is
// filed when it stands in the thread; from then on the state file remembers it
// until it has been answered. An error means that we cannot go on.
func (s *sidecar) deal(ctx context.Context, w *work) error {
	turnEnds := s.mail.Turn()
	defer turnEnds()
	s.board.began(w.envelope.ID)
	defer s.board.began("")
	s.print.message(w.envelope)
	kept, err := json.Marshal(keep{w.envelope, w.text})
	if err != nil {
		return err
	}
	in := Input{ID: w.envelope.ID, Text: w.text, Keep: kept, Accepted: func() {
		w.accepted = true
		s.file(w)
	}}
	for {
		before := s.account()
		answer, err := s.turn(ctx, in)
		var trouble *appserver.TurnError
		switch {
		case err == nil:
			return s.settle(ctx, w, envelope.KindReply, ExtractReply(answer.Text))
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, bus.ErrShutdown):
			return err
		case errors.As(err, &trouble) && trouble.Trouble == appserver.TroubleLogin:
			err = s.blocked(ctx, err.Error(), before)
		case errors.Is(err, appserver.ErrHeld), errors.Is(err, appserver.ErrLost) && !w.accepted, errors.Is(err, appserver.ErrInterrupted) && w.losses < maxLosses && s.lost(ctx):
			w.losses++
			err = s.pause(ctx, beat, nil) // and try again, when the thread is to be had
		default:
			if trouble != nil && trouble.Trouble == appserver.TroubleQuota {
				s.gate = time.Now().Add(recheck)
			}
			return s.settle(ctx, w, envelope.KindError, err.Error())
		}
		if err == nil {
			err = s.ready(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// turn is Session.Deliver, broken off by a shutdown that would not wait longer.
func (s *sidecar) turn(ctx context.Context, in Input) (Answer, error) {
	short, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	s.group.Go(func() {
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				if s.mail.Obeyed() {
					cancel(bus.ErrShutdown)
					return
				}
			}
		}
	})
	answer, err := s.session.Deliver(short, in)
	close(over)
	if cause := context.Cause(short); err != nil && cause != nil && ctx.Err() == nil {
		err = cause
	}
	cancel(nil)
	return answer, err
}

// lost says whether the server is ending: it interrupts its turns before.
func (s *sidecar) lost(ctx context.Context) bool {
	if s.session.server == nil {
		return true
	}
	select {
	case <-s.session.server.Done():
		return true
	case <-time.After(grace / 20):
		return false
	case <-ctx.Done():
		return true
	}
}

// file confirms a message: the thread has it.
func (s *sidecar) file(w *work) {
	if w.delivery == nil {
		return
	}
	if err := w.delivery.Confirm(); err != nil {
		s.print.say("file message " + w.envelope.ID + ": " + err.Error())
		return // it is offered again at the next start, and recognised
	}
	w.delivery = nil
}

// settle sends the answer, if the message is to have one, and forgets it.
func (s *sidecar) settle(ctx context.Context, w *work, kind envelope.Kind, text string) error {
	if wantsAnswer(w.envelope) && !answered(ctx, s.Bus, s.Agent, w.envelope) {
		if err := s.answer(ctx, w.envelope, kind, text); err != nil {
			return err
		}
	}
	s.file(w) // what Codex refused is not in the thread, and filed now
	return s.session.Settled()
}

// braked is how often an answer that a brake holds up is tried again.
const braked = 24

func (s *sidecar) answer(ctx context.Context, q envelope.Envelope, kind envelope.Kind, text string) error {
	thread := ""
	if t := s.thread.Load(); t != nil {
		thread = t.ID()
	}
	for try := 0; ; try++ {
		refused, err := sendAnswer(ctx, s.Bus, s.Agent, q, kind, text, thread)
		switch {
		case err == nil && refused == nil:
			return nil
		case err == nil:
			return s.unsent(q, refused)
		case !errors.Is(err, bus.ErrBrake):
			return fmt.Errorf("answer %s: %w", q.ID, err)
		case try == braked:
			return s.unsent(q, err)
		}
		if err := s.pause(ctx, 5*time.Second, nil); err != nil {
			return err
		}
	}
}

// unsent tells of an answer that cannot be sent, ever.
func (s *sidecar) unsent(q envelope.Envelope, why error) error {
	text := fmt.Sprintf("%s got no answer: %v", q.From, why)
	s.print.say(text)
	s.board.log(q.ID, text, nil)
	return nil
}

// wantsAnswer says whether a message gets exactly one answer.
func wantsAnswer(e envelope.Envelope) bool {
	switch e.Kind {
	case envelope.KindReply, envelope.KindError, envelope.KindAck, envelope.KindApproval, envelope.KindApprovalAnswer:
		return false
	case envelope.KindBrief, envelope.KindHandoff, envelope.KindCron:
		return true
	}
	return e.From == agent.Owner || e.RequiresAck
}
