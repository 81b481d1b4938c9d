package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// A Wish is what somebody wants to be sent, and when.
type Wish struct {
	Spec, Text string
	Target     agent.ID
	Who        agent.ID // who asks for it
	AtOnce     bool     // the first one is due now, not after the first interval
	Times      int      // 0: no limit
	Until      string   // a time or a duration; "" is no limit
}

// Plan checks a wish and returns the schedule, for store.AddSchedule, and when it is due
// first. others are the schedules that there are.
func Plan(w Wish, now time.Time, others []store.Schedule) (s store.Schedule, first time.Time, err error) {
	when, err := Parse(w.Spec)
	if err != nil {
		return s, first, err
	}
	if len(others) >= Most {
		return s, first, fmt.Errorf("there are %d schedules, and %d are allowed; `netsky cron rm ID` removes one", len(others), Most)
	}
	s = store.Schedule{
		ID: "c" + agent.NewStart()[:6], Spec: strings.TrimSpace(w.Spec), Target: w.Target, Text: w.Text, Who: string(w.Who),
		Created: store.At(now), First: store.At(now), Times: w.Times,
	}
	switch {
	case !w.Target.IsAgent():
		return s, first, fmt.Errorf("%s: is no agent", w.Target)
	case w.Times < 0:
		return s, first, fmt.Errorf("%d times: must be above 0", w.Times)
	}
	sample := envelope.Envelope{From: agent.Owner, To: w.Target, Kind: envelope.KindCron, Text: text(s), Time: now}
	if err := sample.Validate(); err != nil {
		return s, first, err
	}
	if len(w.Text) > maxText {
		return s, first, fmt.Errorf("the text has %d bytes; at most %d are allowed", len(w.Text), maxText)
	}
	if w.AtOnce {
		s.First = store.At(now.Add(-when.every))
	}
	if w.Until != "" {
		until, err := parseUntil(w.Until, now)
		if err != nil {
			return s, first, err
		}
		s.Until = store.At(until)
	}
	if first = Next(s, now); first.IsZero() {
		return s, first, errors.New("nothing would ever be sent: the end is before the first time")
	}
	return s, first, nil
}

const maxText = 16 << 10 // it is in the records, and sent again and again; all have room in a state file

// parseUntil parses "18:00" (the next time that the clock shows it), "2026-12-24 18:00",
// RFC 3339, or a duration from now.
func parseUntil(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, form := range []string{"15:04", "2006-01-02 15:04", "2006-01-02", time.RFC3339} {
		t, err := time.ParseInLocation(form, text, now.Location())
		if err != nil {
			continue
		}
		if form == "15:04" {
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
			if !t.After(now) {
				t = t.AddDate(0, 0, 1)
			}
		}
		if !t.After(now) {
			return t, fmt.Errorf("%s: is in the past", text)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%.80q is no time: want 18:00, \"2026-12-24 18:00\" or a duration such as 8h", text)
}
