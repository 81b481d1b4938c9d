package schedule

import (
	"fmt"
	"strings"
	"time"

	"netsky/home"
	"netsky/store"
)

// A View is a schedule as it is shown.
type View struct {
	store.Schedule
	Next    store.Time `json:"next,omitzero"`
	Warning string     `json:"warning,omitempty"` // why nothing is sent now
}

// Views returns the schedules as of now.
func Views(h home.Dir, list []store.Schedule, now time.Time) []View {
	views := []View{}
	for _, s := range list {
		v := View{Schedule: s, Next: store.At(Next(s, now))}
		if d, err := home.Desired(h).Load(string(s.Target)); s.Ended == 0 && (err != nil || !d.Up) {
			v.Warning = fmt.Sprintf("(nothing is sent: %s is down)", s.Target)
		}
		views = append(views, v)
	}
	return views
}

// Words says how often a schedule is due, and until when.
func Words(s store.Schedule) string {
	text := s.Spec
	if strings.ContainsAny(text[:1], "*0123456789") {
		text = "at " + text
	}
	if s.Times > 0 {
		text += fmt.Sprintf(", %d times", s.Times)
	}
	if s.Until != 0 {
		text += ", until " + clock(s.Until, Now())
	}
	return text
}

// clock returns a time in the location of now, without the year if it is this one.
func clock(t store.Time, now time.Time) string {
	at := t.Time().In(now.Location())
	if at.Year() == now.Year() {
		return at.Format("01-02 15:04")
	}
	return stamp(at)
}

// Line says when it is due and what became of the last run.
func (v View) Line() string {
	now := Now()
	text := Words(v.Schedule)
	switch {
	case v.Ended != 0:
		text += ", " + v.Why
	case v.Next != 0:
		text += ", next " + clock(v.Next, now)
	}
	if v.Last.Due != 0 {
		text += fmt.Sprintf(", last %s %s", clock(v.Last.Due, now), v.Last.Result)
		if v.Last.Note != "" {
			text += " (" + v.Last.Note + ")"
		}
	}
	return text + fmt.Sprintf(", %d sent", v.Sent)
}
