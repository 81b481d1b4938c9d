// Package backoff decides when an agent that has died is started again.
//
// An agent's record, state/watchdog/restarts/<agent>.json, counts its deaths and the
// restarts that followed them. It is valid only under the desired state that the owner last
// set: each up and down makes it void, so no record outranks the owner's word. The record
// has one writer, the watchdog that holds the lock "watchdog"; everybody reads it. It is
// replaced as a whole: a crash leaves the old one or the new one. A missing or damaged
// record means that nothing has happened, and costs one early restart.
package backoff

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/words"
)

const (
	// Longest is the longest wait between two restarts outside of a crash loop; the first
	// is a second, each further one twice as long.
	Longest = 300 * time.Second
	// Healthy is how long a restarted agent must live for its earlier deaths to be
	// forgotten.
	Healthy = 10 * time.Minute
	// LoopDeaths deaths within LoopWithin are a crash loop, in which the agent is started
	// every LoopEvery.
	LoopDeaths = 5
	LoopWithin = 10 * time.Minute
	LoopEvery  = 30 * time.Minute
)

// Dir holds the records.
const Dir = "state/watchdog/restarts"

func file(id agent.ID) string { return Dir + "/" + string(id) + ".json" }

// A Record is what is known of an agent's deaths. All times are milliseconds.
type Record struct {
	WordMS   int64   `json:"word_ms"`             // when the owner set the desired state it is valid under
	Died     string  `json:"died,omitempty"`      // the start that died last
	How      string  `json:"how,omitempty"`       // it ended
	DeathsMS []int64 `json:"deaths_ms,omitempty"` // the latest, at most LoopDeaths
	Tries    int     `json:"tries,omitempty"`     // restarts since it was last healthy
	TriedMS  int64   `json:"tried_ms,omitempty"`  // the latest of them
	NextMS   int64   `json:"next_ms,omitempty"`   // when the next one is due
	From     string  `json:"from,omitempty"`      // the start that the latest replaces
	Failed   string  `json:"failed,omitempty"`    // why the latest did not start anything
	Held     string  `json:"held,omitempty"`      // why it can't be started now, though it is due
	LoopMS   int64   `json:"loop_ms,omitempty"`   // since when it is in a crash loop; 0: it is not
	Proved   string  `json:"proved,omitempty"`    // the restarted start that came to life
	ProvedMS int64   `json:"proved_ms,omitempty"` // when
	Stuck    string  `json:"stuck,omitempty"`     // the start that LoopDeaths restarts could not replace
}

// Zero reports whether nothing has happened.
func (r Record) Zero() bool { return r.Died == "" && r.Tries == 0 }

// Load returns the agent's record, and the zero Record if there is none under the present
// desired state. On an error nothing is known of the desired state.
func Load(h home.Dir, id agent.ID) (Record, error) {
	d, err := home.Desired(h).Load(string(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Record{}, err
	}
	r, err := home.Load[Record](h, file(id))
	if err != nil || r.WordMS != d.AtMS {
		r = Record{WordMS: d.AtMS}
	}
	return r, nil
}

// All returns the records that are valid, by agent. Without an error there are no others.
func All(h home.Dir) (map[agent.ID]Record, error) {
	ids, err := home.Agents(h, Dir)
	all := make(map[agent.ID]Record)
	for _, id := range ids {
		r, lerr := Load(h, id)
		if err = errors.Join(err, lerr); lerr == nil && !r.Zero() {
			all[id] = r
		}
	}
	return all, err
}

// Save replaces the agent's record.
func Save(h home.Dir, id agent.ID, r Record) error {
	if r.Zero() {
		return h.Remove(file(id))
	}
	return h.Save(file(id), r, false)
}

// Wait returns the time between a death and a restart, after so many restarts in a row.
func Wait(tries int) time.Duration { return min(time.Second<<min(max(tries, 0), 10), Longest) }

// A Cause is what a death is a sign of.
type Cause int

const (
	Crash   Cause = iota // of its program
	Whole                // all agents died at once
	Outside              // something killed it, and it had run well
)

// Ended counts the death of a start, and schedules the restart. Only crashes make a crash
// loop; looped reports whether one has just begun.
func (r *Record) Ended(start, how string, by Cause, now time.Time) (looped bool) {
	r.Died, r.How, r.Failed, r.Held, r.Proved, r.ProvedMS = start, how, "", "", "", 0
	if by == Outside && r.LoopMS == 0 {
		r.Tries = 0
	}
	if by == Crash {
		r.DeathsMS = slices.DeleteFunc(r.DeathsMS, func(ms int64) bool { return now.Sub(time.UnixMilli(ms)).Abs() > LoopWithin })
		r.DeathsMS = append(r.DeathsMS, now.UnixMilli())
		if len(r.DeathsMS) >= LoopDeaths && r.LoopMS == 0 {
			r.LoopMS, looped = now.UnixMilli(), true
		}
		r.DeathsMS = r.DeathsMS[max(len(r.DeathsMS)-LoopDeaths, 0):]
	}
	r.schedule(now)
	return looped
}

func (r *Record) schedule(now time.Time) {
	wait := Wait(r.Tries)
	if r.LoopMS != 0 {
		wait = LoopEvery
	}
	r.NextMS = now.Add(wait).UnixMilli()
}

// Begin counts a restart that is about to replace a start. The next is scheduled already,
// in case nobody lives to see how this one ends.
func (r *Record) Begin(from string, now time.Time) {
	r.Tries++
	r.From, r.TriedMS = from, now.UnixMilli()
	r.Failed, r.Held, r.Proved, r.ProvedMS = "", "", "", 0
	r.schedule(now)
}

// Fail records why the restart that has begun did not start anything.
func (r *Record) Fail(why string, now time.Time) {
	r.Failed = why
	if r.Tries >= LoopDeaths && r.LoopMS == 0 && r.Stuck == "" {
		r.Stuck = r.From
	}
	r.schedule(now)
}

// Hold puts the restart off until then, for a reason.
func (r *Record) Hold(why string, until time.Time) { r.Held, r.NextMS = why, until.UnixMilli() }

// Due reports whether to start the agent now. A time further away than any wait was
// written under another clock.
func (r Record) Due(now time.Time) bool {
	next := time.UnixMilli(r.NextMS)
	return !now.Before(next) || next.Sub(now) > LoopEvery+time.Minute
}

// Came records that a restarted agent has come to life.
func (r *Record) Came(start string, now time.Time) { r.Proved, r.ProvedMS = start, now.UnixMilli() }

// Well reports whether the agent has been healthy for long enough to forget its deaths.
func (r Record) Well(now time.Time) bool {
	return r.Proved != "" && now.Sub(time.UnixMilli(r.ProvedMS)) >= Healthy
}

// Words describes the next restart: "restart in 4s (attempt 3)"; "" if none is due.
func (r Record) Words(now time.Time) string {
	if r.Died == "" || r.NextMS == 0 {
		return ""
	}
	if r.Held != "" {
		return "started again when its account serves again (" + r.Held + ")"
	}
	words := r.Next(now)
	if r.underWay(now) {
		words = fmt.Sprintf("restarting now (attempt %d)", r.Tries)
	}
	switch {
	case r.LoopMS != 0:
		words = fmt.Sprintf("%d deaths in %s; %s", LoopDeaths, short(LoopWithin), words)
	case r.Failed != "":
		words = "restart failed: " + r.Failed + "; " + words
	}
	return words
}

// underWay reports whether the latest restart replaces the start that died, and has not ended.
func (r Record) underWay(now time.Time) bool {
	return r.Tries > 0 && r.From == r.Died && r.Failed == "" && !r.Due(now) && now.Sub(time.UnixMilli(r.TriedMS)) < soon
}

// Shown returns what status says about the restart of a start that has died: words, and
// whether it is in a crash loop.
func Shown(h home.Dir, id agent.ID, start string) (words string, loops bool) {
	r, err := Load(h, id)
	if err != nil || r.Died != start || start == "" {
		return "", false
	}
	if _, held := h.LockHolder(home.WatchdogLock); !held {
		return "not restarted while the daemon is not running; `netsky up` starts both", r.LoopMS != 0
	}
	return r.Words(time.Now()), r.LoopMS != 0
}

// Soon reports whether an agent that is wanted up, and whose start has died, is about to be
// started again.
func Soon(h home.Dir, id agent.ID, start string) bool {
	r, err := Load(h, id)
	if d, derr := home.Desired(h).Load(string(id)); err != nil || derr != nil || !d.Up || start == "" || r.LoopMS != 0 {
		return false
	}
	_, held := h.LockHolder(home.WatchdogLock)
	return held && (r.Died != start || time.Until(time.UnixMilli(r.NextMS)) < soon) // else it is counted in a moment
}

const soon = time.Minute

// Next describes when the next restart is due.
func (r Record) Next(now time.Time) string {
	text := "restarting now"
	if in := time.UnixMilli(r.NextMS).Sub(now); in > 0 {
		text = "restart in " + words.Span(max(in, time.Second))
	}
	return fmt.Sprintf("%s (attempt %d)", text, r.Tries+1)
}

func short(d time.Duration) string { return fmt.Sprintf("%.0f minutes", d.Minutes()) }

// Clear removes what an earlier run left about these agents, as the owner starts or ends
// them, and returns a line for each whose restarts had been held back.
func Clear(h home.Dir, ids ...agent.ID) (cleared []string) {
	for _, id := range ids {
		r, err := Load(h, id)
		if rerr := h.Remove(file(id)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			cleared = append(cleared, fmt.Sprintf("%s: its earlier deaths could not be cleared: %v", id, rerr))
			continue
		}
		switch {
		case err != nil || r.Zero():
		case r.LoopMS != 0:
			cleared = append(cleared, fmt.Sprintf("%s: cleared its crash loop (%d deaths in %s, last %s)", id, LoopDeaths, short(LoopWithin), r.How))
		case r.Died != "" && r.Proved == "" && r.Tries > 0:
			cleared = append(cleared, fmt.Sprintf("%s: cleared its back-off (%s, %s)", id, r.How, tries(r.Tries)))
		}
	}
	return cleared
}

func tries(n int) string {
	if n == 1 {
		return "1 restart"
	}
	return fmt.Sprintf("%d restarts", n)
}
