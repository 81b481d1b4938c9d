package watch

import (
	"context"
	"fmt"
	"os"
	"time"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/words"
	"netsky/store"
	"netsky/watch/hang"
)

// screenLines is how much of a pane is compared for signs of life.
const screenLines = 100

// saveSilence is how often a silence is stored at most: at every second check.
const saveSilence = hang.Every * 3 / 2

// hangEvery returns the time between two checks.
func hangEvery(after time.Duration) time.Duration {
	return max(min(hang.Every, after/10), tickEvery)
}

// A hangWatch is what is known of an agent's silence.
type hangWatch struct {
	watch  hang.Watch
	known  bool        // the record was looked for
	looked bool        // there was a check
	saved  time.Time   // when the silence was last stored; zero: it is not
	record hang.Record // zero: it does not hang
	stored bool        // the record is on disk
}

// hangs finds agents that show no sign of life.
type hangs struct{ *team }

// listen checks one agent for signs of life. The pane is captured, and processor time
// looked up, only if nothing else has changed.
func (l *hangs) listen(ctx context.Context, w *ward) {
	if l.o.Hang == 0 || !w.Alive() || !w.Wanted {
		return
	}
	c := &w.hang
	if !c.known {
		c.known, c.record = true, hang.Load(l.o.Launcher.Home, w.Agent, w.Start)
		c.stored = c.record.Start != ""
		if s := hang.LoadSilence(l.o.Launcher.Home, w.Agent, w.Start); s.Of != "" {
			c.watch, c.saved = s.Resume(), time.UnixMilli(s.AtMS)
		}
	}
	signs, what := l.signs(w), l.pending(w)
	if what == "" || w.Pane() == "" || !c.watch.Quiet(signs) {
		signs.Screen = c.watch.Screen()
		l.heard(ctx, w, signs, what)
		return
	}
	st := w.Status
	l.work(ctx, w, func(ctx context.Context) func() {
		within, cancel := context.WithTimeout(ctx, hang.Every/2)
		defer cancel()
		lines, err := l.o.Launcher.LastLines(within, st, screenLines)
		if below, err := proc.Descendants(st.PID, ""); err == nil && st.PID > 0 {
			signs.CPU = proc.CPU(below)
		}
		return func() {
			signs.Screen = c.watch.Screen()
			if err == nil {
				signs.Screen = hang.Screen(lines)
			}
			l.heard(ctx, w, signs, what)
		}
	})
}

func (l *hangs) signs(w *ward) hang.Signs {
	h := l.o.Launcher.Home
	changed := func(rel string) int64 {
		info, err := os.Lstat(h.Path(rel))
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	return hang.Signs{
		Report: w.Report, Events: changed(home.EventsDir + "/" + string(w.Agent) + ".jsonl"),
		Inbox: w.Inbox, Claimed: w.Claimed, Outbox: w.Outbox, Owed: changed(courier.JournalFile(w.Agent)),
	}
}

// pending returns what an agent has to do, "" if that is nothing, or if it can't go on for
// a reason that is known.
func (l *hangs) pending(w *ward) string {
	state := w.State
	if state == agent.Hung {
		if state = w.Report.State; state == "" {
			state = agent.Busy
		}
	}
	asks := state == agent.Waiting && w.Report.By != agent.ByWatchdog
	if asks || state == agent.Blocked || w.Report.Fault.Reason != "" {
		return ""
	}
	if why, _ := l.mayStart(w.Status, time.Now()); why != "" {
		return ""
	}
	mail := max(w.Inbox, 0) + max(w.Claimed, 0)
	switch {
	case state == agent.Unknown:
		return "its state is unknown: " + w.Evidence
	case state == agent.Busy && w.Report.Detail != "":
		return "busy: " + w.Report.Detail
	case state == agent.Busy && !w.Silent:
		return "busy"
	case mail == 1:
		return "1 message waits for it"
	case mail > 0:
		return fmt.Sprintf("%d messages wait for it", mail)
	}
	return ""
}

// heard acts on the signs of life at a check.
func (l *hangs) heard(ctx context.Context, w *ward, signs hang.Signs, what string) {
	c, now := &w.hang, time.Now()
	first := !c.looked
	c.looked = true
	silent := c.watch.See(signs, what != "", now)
	r := &c.record
	if r.Start == "" {
		l.keepSilence(w, silent, now)
	}
	switch {
	case first:
		return // whether it is still silent shows at the next check
	case silent == 0 && r.Start != "":
		l.event(ctx, fmt.Sprintf("alive-%s-%d", w.Start, r.SinceMS), store.LevelInfo, w.Agent, w.Start,
			"shows signs of life again, after "+words.Span(now.Sub(time.UnixMilli(r.SinceMS))))
		*r = hang.Record{}
	case r.Start == "" && c.watch.Hung(l.o.Hang, now):
		*r = hang.Record{Start: w.Start, SinceMS: now.Add(-silent).UnixMilli(), What: what, AtLeast: c.watch.AtLeast()}
		l.event(ctx, fmt.Sprintf("hang-%s-%d", w.Start, r.SinceMS), store.LevelError, w.Agent, w.Start, "hangs: "+r.Words(now))
	case r.Start == "" || c.stored:
		return
	}
	err := hang.Save(l.o.Launcher.Home, w.Agent, *r)
	if c.stored = err == nil && r.Start != ""; err != nil { // the next check tries it again
		l.o.Log.Warn("hang", "agent", w.Agent, "error", err)
	}
	l.Wake()
}

// keepSilence stores the silence of an agent that does not hang for the next daemon, about
// once a minute.
func (l *hangs) keepSilence(w *ward, silent time.Duration, now time.Time) {
	c, err := &w.hang, error(nil)
	switch {
	case silent > 0 && now.Sub(c.saved).Abs() >= min(saveSilence, l.o.Hang/4):
		c.saved, err = now, hang.SaveSilence(l.o.Launcher.Home, w.Agent, c.watch.Kept(w.Start))
	case silent == 0 && !c.saved.IsZero():
		c.saved, err = time.Time{}, hang.Save(l.o.Launcher.Home, w.Agent, hang.Record{})
	}
	if err != nil {
		l.o.Log.Warn("hang", "agent", w.Agent, "error", err)
	}
}
