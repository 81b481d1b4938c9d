package update

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
)

// tell sends the owner the outcome, once.
func (s *Supervisor) tell(ctx context.Context, state State) error {
	text := s.run.Outcome(state)
	if text == "" {
		return nil
	}
	_, _, err := s.Bus.SendOnce(ctx, envelope.Envelope{
		ID: s.run.ID + "-" + string(state), From: agent.Root, To: agent.Owner, Kind: envelope.KindNotice, Via: "code", Text: envelope.SafeText(text), Time: time.Now(),
	})
	if errors.Is(err, bus.ErrUsed) {
		err = nil
	}
	if state == Failed && s.Escalate != nil && s.run.StoppedMS > 0 { // else the daemon was left alone
		_, eerr := s.Escalate(ctx, "netsky's daemon does not operate", text)
		err = errors.Join(err, eerr)
	}
	return err
}

// Outcome says for the owner how the run ends in that state, "" if there is nothing to tell.
func (r Run) Outcome(s State) string {
	var b strings.Builder
	switch {
	case s == Undone:
		fmt.Fprintf(&b, "The %s to netsky %s was taken back: %s.\nnetsky %s runs again.", r.Kind, r.To.Version, strings.TrimSuffix(r.Why, "."), r.From.Version)
		if r.Aside != "" {
			fmt.Fprintf(&b, " The records are as they were before it; what it had recorded is in %s.", r.Aside)
		}
	case s == Failed && r.Kind == Restart:
		fmt.Fprintf(&b, "The daemon was restarted and does not operate: %s.\n`netsky doctor` looks for the cause; the agents and their mail go on.", r.Why)
	case s == Failed:
		fmt.Fprintf(&b, "The %s to netsky %s failed: %s.\n`netsky doctor` looks for the cause; the agents and their mail go on.", r.Kind, r.To.Version, r.Why)
	case s == Done && r.Kind == Update:
		fmt.Fprintf(&b, "netsky was updated from %s to %s.", r.From.Version, r.To.Version)
		if r.Why != "" {
			fmt.Fprintf(&b, " But %s.", strings.TrimSuffix(r.Why, "."))
		}
		if r.Changes != "" {
			fmt.Fprintf(&b, " What changes for you:\n\n%s", r.Changes)
		}
		fmt.Fprintf(&b, "\n\nAgents keep the build that they were started with; `netsky restart` renews them. `netsky self rollback` goes back to %s.", r.From.Version)
	case s == Done && r.Kind == Rollback:
		fmt.Fprintf(&b, "netsky is back at %s (it was %s).", r.To.Version, r.From.Version)
		if r.Aside != "" {
			fmt.Fprintf(&b, " The records are as they were before that; what was recorded since is in %s.", r.Aside)
		}
	}
	return b.String()
}

// Line describes a step of the run for people, "" if there is nothing to say.
func (r Run) Line(s Step) string {
	switch State(s.Name) {
	case Stopping:
		return "ending the daemon"
	case Copying:
		return "copying the records"
	case Installing:
		return "installing netsky " + r.To.Version
	case Starting:
		return "starting the daemon, and watching for some 10 s whether it operates"
	case Undoing:
		return "taking it back: " + r.Why
	}
	return ""
}
