// This file ends an agent's running turn: it sends the request, waits until the
// turn has ended, and withdraws a request that was not obeyed, as it would end some
// later turn. A crash in between leaves the request in the agent's inbox.

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/spawn"
	"netsky/store"
)

// ErrBusy is returned if the turn continues in spite of the request.
var ErrBusy = errors.New("asked to end its turn, but still busy")

// Working is implemented by a Runtime that knows whose turn an agent works on.
type Working interface {
	// Message returns the id of the message on whose turn the start works, "" if that
	// is unknown: a person may have typed at its pane.
	Message(id agent.ID, start string) string
}

const limit = 10 * time.Second

// An InterruptRequest asks for an agent's running turn to be ended.
type InterruptRequest struct {
	Agent agent.ID `json:"agent"`
	Text  string   `json:"text,omitempty"` // the agent's next message
}

// An InterruptResult is what an Interrupt did.
type InterruptResult struct {
	Ended   bool         `json:"ended"` // false: no turn was running
	Was     spawn.Status `json:"-"`     // the agent's state before
	Message string       `json:"message,omitempty"`
}

// Panes is what is done with agents' terminals: a turn is ended, the last lines are shown.
type Panes struct{ *Fleet }

// Interrupt ends the running turn of an agent, which stays up. Without an error, no turn of what it
// did before is running.
func (f Panes) Interrupt(ctx context.Context, r InterruptRequest) (v InterruptResult, err error) {
	if err := f.May("interrupt"); err != nil {
		return v, err
	}
	list, err := f.Launcher.Inspect(ctx)
	if err != nil {
		return v, err
	}
	st := list.Find(r.Agent)
	if v.Ended, err = f.endTurn(ctx, st); err != nil {
		busy := errors.Is(err, ErrBusy)
		if r.Text != "" {
			err = fmt.Errorf("%w; the text was not sent", err)
		}
		if busy {
			err = partly(err)
		}
		return v, err
	}
	if v.Was = st; r.Text == "" {
		return v, nil
	}
	sent, err := f.Launcher.Bus.Send(ctx, envelope.Envelope{From: f.Actor, To: r.Agent, Text: r.Text, Via: "cli", Time: time.Now()})
	if err != nil {
		return v, fmt.Errorf("interrupted, but the text was not sent: %w", err)
	}
	v.Message = sent.ID
	return v, nil
}

// endTurn ends the running turn of an agent with the status st. ended is false if there was none.
func (f Panes) endTurn(ctx context.Context, st spawn.Status) (ended bool, err error) {
	id, l := st.Agent, f.Launcher
	switch {
	case !st.Alive():
		return false, spawn.NeedsUp(st, "nothing to interrupt")
	case st.Silent:
		return false, fmt.Errorf("%s: runs a command of your own, which netsky can't interrupt; press its own keys in its pane", id)
	case st.State == agent.Unknown, st.State == agent.Waiting && !st.Asks():
		return false, fmt.Errorf("%s: is %s: nothing was interrupted", id, st.How())
	case st.State == agent.Waiting && st.Runtime == "claude":
		return false, approve.AtPane(id, fmt.Errorf("%s: is %s, and netsky does not answer questions: nothing was interrupted", id, st.How()))
	case st.State == agent.Idle, st.State == agent.Starting, st.State == agent.Blocked,
		st.State == agent.Waiting && st.Report.State == agent.Idle: // a dialog covers its pane, and behind it no turn runs
		return false, nil
	}
	about := ""
	if w, ok := f.runtimes()[st.Runtime].(Working); ok {
		about = w.Message(id, st.Start)
	}
	before, _ := l.Home.LoadReport(id) // without one, any report is new
	sent, err := l.Bus.Send(ctx, envelope.Envelope{From: f.Actor, To: id, Kind: envelope.KindCancel, Text: "end the running turn", Via: "cli", Time: time.Now()})
	if err != nil {
		return false, fmt.Errorf("not sent: %w", err)
	}
	if err := idle(ctx, l, st, before); err != nil {
		// Unclaimed, it would end some later turn.
		n, rerr := l.Bus.Retract(context.WithoutCancel(ctx), id, func(e envelope.Envelope) bool { return e.ID == sent.ID })
		if errors.Is(err, ErrBusy) {
			request := "the request stays in force"
			if n > 0 {
				request = "the request is withdrawn, as its program has not taken it"
			}
			err = advice.With(err, "`netsky peek %s` shows what it does, `netsky log` why its program did not obey; %s; `netsky down %[1]s --force` ends the agent at once", id, request)
		}
		return false, errors.Join(err, rerr)
	}
	_ = l.Journal.Record(context.WithoutCancel(ctx), store.AddLog{
		Part: "interrupt", Actor: id, About: about, Text: "turn ended by " + f.who() + ", with netsky interrupt",
	})
	return true, nil
}

// idle waits until the agent is no longer busy with what its report before shows. A
// demo may be at its next message by then; it reports busy once per turn, and a turn that
// waits at a dialog is not busy again.
func idle(ctx context.Context, l *spawn.Launcher, st spawn.Status, before agent.Report) error {
	for began := time.Now(); time.Since(began) < limit; {
		r, err := l.Home.LoadReport(st.Agent)
		if err == nil && (r.State != agent.Busy && r.State != agent.Waiting ||
			st.Runtime == "demo" && before.SinceMS != r.SinceMS && (before.State == r.State || before.State == agent.Waiting)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s: %w after %v", st.Agent, ErrBusy, limit)
}
