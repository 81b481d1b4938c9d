// Package hang decides whether an agent hangs: whether it shows no sign of life for a time
// while work is pending.
//
// Work is pending while the agent is busy, while mail waits in its inbox or is claimed and
// not finished, and while its state is unknown. Signs of life are: a change of its
// receiver's report, a new line in its event file (each hook and each event of a turn
// writes one), mail that it takes, finishes or sends, and new words in its pane. Digits and
// spinners in a pane are no sign: a program that waits for an answer for ever turns its
// spinner for ever.
//
// Processor time is half a sign. While what the program has started uses at least a quarter
// of a processor, or would if others left it one, as a compiler or a test does that prints
// nothing, silence is not counted, for Computing at most: a tool that spins for ever is told of
// in the end. The program's own time is none: it draws the spinner. macOS does not report
// processor time.
//
// Silence is counted by the clock of this process, check by check, and a gap between two
// checks is not counted: neither a suspended machine nor a changed clock makes anything
// hang, and after such a jump agents have Grace to show signs of life. A daemon that is
// restarted continues the count if nothing has changed since the last one stored it; a time
// between them beyond a few checks is not counted. What it does not know, it does not count:
// then the silence has lasted "for at least" so long.
//
// state/watchdog/hangs/<agent>.json says that a start hangs, or how long it has been silent.
// The watchdog that holds the lock "watchdog" writes it and removes it with the next sign of
// life; nobody believes it while no process holds that lock.
package hang

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/words"
)

const (
	// Every is the time between two checks of an agent.
	Every = 30 * time.Second
	// Computing is how long processor time holds off the count of the silence.
	Computing = 2 * time.Hour
	// Grace is how long after a jump of the clock nothing counts as hung.
	Grace = 5 * time.Minute

	jump = 3 * Every
)

// Signs are what a living agent changes.
type Signs struct {
	Report  agent.Report
	Events  int64 // when its event file last changed
	Inbox   int
	Claimed int
	Outbox  int
	Owed    int64  // when its ledger last changed
	Screen  uint64 // see [Screen]
	// CPU is the processor time that the processes below the program have used or waited for; 0 if that
	// was not looked up.
	CPU time.Duration
}

// Screen returns what counts of a pane's lines: the words of at least three letters.
func Screen(lines []string) uint64 {
	sum := fnv.New64a()
	for _, line := range lines {
		for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return !unicode.IsLetter(r) }) {
			if len(word) >= 3 {
				sum.Write([]byte(word))
			}
		}
	}
	return sum.Sum64()
}

// A Watch counts the silence of one start. The zero Watch has seen nothing.
type Watch struct {
	last   Signs
	at     time.Time // of the last check; zero: none
	silent time.Duration
	worked time.Duration // of silence that was not counted, since the last sign
	grace  time.Time
	least  bool // it may have been silent for longer
}

// Screen returns the screen as of the last check.
func (w *Watch) Screen() uint64 { return w.last.Screen }

// Quiet reports whether nothing but the pane, which costs more to look at, may have changed
// since the last check: before the first, nobody has looked at the pane.
func (w *Watch) Quiet(s Signs) bool {
	s.Screen = w.last.Screen
	return w.at.IsZero() || !w.alive(s)
}

func (w *Watch) alive(s Signs) bool {
	was := w.last
	grown := s.Inbox > was.Inbox // that is others' doing
	if grown {
		was.Inbox = s.Inbox
	}
	s.CPU = was.CPU
	return s != was
}

// computes reports whether what the program has started was busy since the last check.
func computes(was, s Signs, gap time.Duration) bool {
	return was.CPU > 0 && gap > 0 && s.CPU-was.CPU >= gap/4
}

// See takes the signs at a check, and returns for how long there was none. pending is false
// if nothing waits for the agent.
func (w *Watch) See(s Signs, pending bool, now time.Time) (silent time.Duration) {
	first, alive := w.at.IsZero(), w.alive(s)
	gap, wall := now.Sub(w.at), now.Round(0).Sub(w.at.Round(0))
	busy := computes(w.last, s, gap)
	w.last, w.at = s, now
	switch {
	case first, alive, !pending:
		w.silent, w.worked, w.least = 0, 0, first && pending
	case gap < 0, gap > jump, (wall - gap).Abs() > time.Minute:
		w.grace, w.least = now.Add(Grace), true
	case busy && w.worked < Computing:
		w.worked += gap
	default:
		w.silent += gap
	}
	return w.silent
}

// Hung reports whether the silence has lasted for that long.
func (w *Watch) Hung(after time.Duration, now time.Time) bool {
	return w.silent >= after && !now.Before(w.grace)
}

// AtLeast reports whether the silence may have lasted for longer than was counted.
func (w *Watch) AtLeast() bool { return w.least }

// A Silence is what another process needs to continue a Watch.
type Silence struct {
	Of      string `json:"of"` // the start
	AtMS    int64  `json:"at_ms"`
	Silent  int64  `json:"silent_ms"`
	Worked  int64  `json:"worked_ms,omitempty"`
	AtLeast bool   `json:"at_least,omitempty"`
	Signs   Signs  `json:"signs"`
}

// Kept returns what is to be kept of the Watch.
func (w *Watch) Kept(start string) Silence {
	return Silence{start, w.at.UnixMilli(), w.silent.Milliseconds(), w.worked.Milliseconds(), w.least, w.last}
}

// Resume returns the Watch of which that was kept; of the zero Silence, the zero Watch.
func (s Silence) Resume() Watch {
	if s.Of == "" {
		return Watch{}
	}
	return Watch{
		last: s.Signs, at: time.UnixMilli(s.AtMS), least: s.AtLeast,
		silent: time.Duration(s.Silent) * time.Millisecond, worked: time.Duration(s.Worked) * time.Millisecond,
	}
}

// LoadSilence returns what is kept of the agent's silence if it is about this start.
func LoadSilence(h home.Dir, id agent.ID, start string) Silence {
	s, err := home.Load[Silence](h, file(id))
	if err != nil || s.Of != start {
		return Silence{}
	}
	return s
}

// SaveSilence replaces the agent's record, which does not hang.
func SaveSilence(h home.Dir, id agent.ID, s Silence) error { return h.Save(file(id), s, false) }

// A Record says that a start hangs.
type Record struct {
	Start   string `json:"start"`
	SinceMS int64  `json:"since_ms"`           // when it last showed a sign of life
	What    string `json:"what"`               // is pending
	AtLeast bool   `json:"at_least,omitempty"` // or before: it is not known
}

// Dir holds the records.
const Dir = "state/watchdog/hangs"

func file(id agent.ID) string { return Dir + "/" + string(id) + ".json" }

// Load returns the agent's record if it is about this start, else the zero Record.
func Load(h home.Dir, id agent.ID, start string) Record {
	r, err := home.Load[Record](h, file(id))
	if err != nil || r.Start != start {
		return Record{}
	}
	return r
}

// Save replaces the agent's record; the zero Record removes it.
func Save(h home.Dir, id agent.ID, r Record) error {
	if r.Start == "" {
		return h.Remove(file(id))
	}
	return h.Save(file(id), r, false)
}

// Words describes the hang.
func (r Record) Words(now time.Time) string {
	least := ""
	if r.AtLeast {
		least = "at least "
	}
	return fmt.Sprintf("no sign of life for %s%s: %s", least, words.Span(now.Sub(time.UnixMilli(r.SinceMS))), r.What)
}

// Shown returns what status says of a start that runs: how it hangs, and since when.
func Shown(h home.Dir, id agent.ID, start string) (words string, since time.Time, hung bool) {
	r := Load(h, id, start)
	if r.Start == "" {
		return "", time.Time{}, false
	}
	if _, held := h.LockHolder(home.WatchdogLock); !held {
		return "", time.Time{}, false
	}
	return r.Words(time.Now()), time.UnixMilli(r.SinceMS), true
}
