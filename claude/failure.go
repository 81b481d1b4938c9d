package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"netsky/agent"
)

const (
	recordPatience = 5 * time.Second // for the entry of a failed turn
	declineAgain   = 2 * time.Second // for a dialog to close
	openedWithin   = 10 * time.Second
)

// fault judges a StopFailure. Only the conversation's file names a plan's limit and its
// reset; Claude Code 2.1.329 writes it, or even begins it, in the moment it runs the hook.
func (h Hook) fault() *agent.Fault {
	var end agent.Event
	look := func() bool {
		end, _ = TurnEnd(h.Transcript, "", h.Turn)
		return end.Fault != nil
	}
	if h.Transcript != "" && h.Turn != "" && (look() || h.Error == "rate_limit" && until(context.Background(), recordPatience, look)) {
		return end.Fault
	}
	return FaultOf(Evidence{Kind: h.Error, Text: h.LastText, Details: h.Details, At: time.Now()})
}

// lastTry returns the retry that a conversation's file ends with.
func lastTry(transcript string) (r Retry, ok bool) {
	_ = backwards(transcript, chunk, func(data []byte) bool {
		if !bytes.Contains(data, systemMark) {
			return !bytes.Contains(data, assistantMark) && !bytes.Contains(data, userMark)
		}
		var e entry
		if json.Unmarshal(data, &e) == nil && e.Subtype == "api_error" {
			r, ok = e.Retry()
		}
		return !ok
	})
	return r, ok
}

// decline closes the dialog with which Claude Code 2.1.329 offers, after a usage limit, to
// wait for the reset or to upgrade, and behind which it takes no message. One Escape means
// neither; the message is offered again when the account serves. It is pressed only if the
// failed turn has opened the dialog, not a person.
func (s *Session) decline(ctx context.Context) {
	if !s.hands.TryLock() { // an interrupt takes its time
		return
	}
	defer s.hands.Unlock()
	if s.Pane == nil || time.Since(s.declined) < declineAgain {
		return
	}
	f := s.known()
	r, err := FindSession(s.ConfigDir, s.PID)
	if err != nil || r.Status != statusWaiting || f.failed.fault.Reason != agent.UsageLimit ||
		r.StatusMS < f.prompted || r.StatusMS > f.failed.ms+openedWithin.Milliseconds() {
		return
	}
	screen, err := s.Pane.Screen(ctx)
	if d, ok := Recognise(plain(screen)); err != nil || !ok || d.Name != limitDialog {
		return
	}
	s.declined = time.Now()
	_ = s.Pane.Keys(ctx, "Escape") // else it is pressed at the next look
}
