package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
)

// A CancelRequest asks for a message to be cancelled.
type CancelRequest struct {
	Message string `json:"message"` // its ID, or the beginning
}

// A CancelResult says what was done.
type CancelResult struct {
	Message string `json:"message"` // its ID
	How     string `json:"how"`
}

// Cancel cancels a message on behalf of its sender, or of an actor that may cancel anything: one that
// waits in the inbox is filed unread, one that the agent holds is given up by the agent. One that was
// cancelled before is no error. A crash leaves the message as it was, or cancelled.
func (m Mail) Cancel(ctx context.Context, r CancelRequest) (v CancelResult, err error) {
	if v.Message, err = m.wholeID(ctx, r.Message); err == nil {
		v.How, err = cancel(ctx, m.Launcher, m.Actor, v.Message)
	}
	return v, err
}

func cancel(ctx context.Context, l *spawn.Launcher, by agent.ID, id string) (how string, err error) {
	found, err := l.Bus.Locate(ctx, id)
	if err != nil {
		return "", err
	}
	var m *bus.Entry
	for i, e := range found {
		mine := e.Envelope.From == by || !by.IsClone()
		received := e.Place != bus.Sent && e.Place != bus.Outbox && e.Place != bus.Poison
		switch {
		case e.Err != nil || !received || !mine:
		case m != nil && (m.Envelope.ID != e.Envelope.ID || m.Mailbox != e.Mailbox || m.Envelope.From != e.Envelope.From):
			return "", fmt.Errorf("%s: several messages have that id: nothing was cancelled", id)
		default:
			m = &found[i]
		}
	}
	if m == nil {
		return "", advice.With(fmt.Errorf("%s: there is no such message of yours", id), "`netsky inbox --sent` lists those you have sent")
	}
	to := m.Mailbox
	switch m.Place {
	case bus.Inbox:
		n, err := l.Bus.Retract(ctx, to, func(e envelope.Envelope) bool { return e.ID == m.Envelope.ID && e.From == m.Envelope.From })
		if err != nil {
			return "", err
		}
		if n > 0 {
			return "cancelled before " + string(to) + " took it", nil
		}
	}
	if how, at := before(ctx, l, m); how != "" {
		return "already cancelled " + how + at, nil
	}
	r, _ := l.Home.LoadReport(to)
	switch state := courier.ReadLedger(l.Home, to).StateOf(*m); {
	case state == courier.StateHeld, m.Place != bus.Delivered && r.State != agent.Busy:
		return giveUp(ctx, l, by, m)
	case state.Over():
		return "", fmt.Errorf("%s: %s has finished it: nothing was cancelled", id, to)
	}
	return "", advice.With(fmt.Errorf("%s: %s has it: nothing was cancelled", id, to), "`netsky interrupt %s` ends its turn", to)
}

// before returns how a message was cancelled before, "" if it was not, and when, if that is
// known.
func before(ctx context.Context, l *spawn.Launcher, m *bus.Entry) (how, at string) {
	if m.Place != bus.Delivered {
		return "", ""
	}
	to, e := m.Mailbox, m.Envelope
	if m.Reason == mailbox.Retracted {
		if info, err := os.Lstat(l.Home.Path(home.Mailbox(to), string(m.Place), envelope.WhyName(m.Name))); err == nil {
			at = ", at " + agent.Clock(info.ModTime(), time.Now())
		}
		return "before " + string(to) + " took it", at
	}
	a, ok, err := l.Bus.FindAnswer(ctx, to, e.From, e.ID, e.Time)
	if err == nil && ok && a.Envelope.Cancelled() {
		return "while " + string(to) + " held it", ", at " + agent.Clock(a.Envelope.Time, time.Now())
	}
	return "", ""
}

// giveUp has the agent give up a message that it holds, and waits until it has.
func giveUp(ctx context.Context, l *spawn.Launcher, by agent.ID, m *bus.Entry) (how string, err error) {
	to, id := m.Mailbox, m.Envelope.ID
	sent, err := l.Bus.Send(ctx, envelope.Envelope{From: by, To: to, Kind: envelope.KindCancel, InReplyTo: id, Text: "cancel", Via: "cli", Time: time.Now()})
	if err != nil {
		return "", fmt.Errorf("not cancelled: %w", err)
	}
	for began := time.Now(); time.Since(began) < limit; {
		now, err := l.Bus.Find(to, m.Name)
		if err == nil && courier.ReadLedger(l.Home, to).StateOf(now).Over() {
			return "cancelled while " + string(to) + " held it", nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	_, err = l.Bus.Retract(context.WithoutCancel(ctx), to, func(e envelope.Envelope) bool { return e.ID == sent.ID })
	return "", errors.Join(fmt.Errorf("%s: %s did not react within %v: not cancelled", id, to, limit), err)
}
