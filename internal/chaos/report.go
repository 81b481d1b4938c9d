package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Result is how something went.
type Result string

// The results.
const (
	Passed   Result = "passed"
	Failed   Result = "failed"
	NotTried Result = "not tried"
	// NotProved is that of "nothing left" if nothing of the home's is found running, but
	// netsky can't exclude it: a keeper was killed, and the machine runs processes that are
	// younger and whose parents are gone.
	NotProved Result = "not proved"
)

// A Line is one fault or one check of a report.
type Line struct {
	Name    string  `json:"name"`
	Check   bool    `json:"check,omitempty"` // at the end, not a fault
	Result  Result  `json:"result"`
	Seconds float64 `json:"recovered_s,omitempty"` // from the fault's end until everything answered
	By      string  `json:"by,omitempty"`          // the verb that recovery needed; "": netsky itself
	Detail  string  `json:"detail,omitempty"`
}

// String returns the line as people read it.
func (l Line) String() string {
	text := fmt.Sprintf("%-10s  %-18s", l.Result, l.Name)
	if !l.Check && l.Result == Passed {
		text += fmt.Sprintf("  recovered in %.1fs", l.Seconds)
		if l.By != "" {
			text += " by " + l.By
		}
		text += ":"
	}
	return strings.TrimRight(text+"  "+l.Detail, " ")
}

// A Report is what a drill has done and found.
type Report struct {
	Seed     uint64         `json:"seed"`
	Agents   int            `json:"agents"`
	Took     float64        `json:"took_s"`
	Faults   map[string]int `json:"faults"` // done, by name
	Lines    []Line         `json:"lines"`
	Notices  int            `json:"notices"` // to the owner
	Held     int            `json:"held"`    // messages that senders were told are held
	Restarts int            `json:"restarts"`
	Messages struct {
		Sent         int `json:"sent"`
		Acknowledged int `json:"acknowledged"`
		Retries      int `json:"retries"`
		Delivered    int `json:"delivered"` // with those of the agents
		Answered     int `json:"answered"`
	} `json:"messages"`
}

// Has reports whether anything came out as that.
func (r *Report) Has(result Result) bool {
	return slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Result == result })
}

// ErrNotTried is returned by Err if nothing has failed, but something could not be tried.
var ErrNotTried = errors.New("something could not be tried or proved, see above; all else passed")

// Err returns nil if everything was tried and has passed.
func (r *Report) Err() error {
	switch {
	case r.Has(Failed):
		return fmt.Errorf("drill: something failed, see above; `netsky drill --seed %d` repeats its choices", r.Seed)
	case r.Has(NotTried) || r.Has(NotProved):
		return fmt.Errorf("drill: %w", ErrNotTried)
	}
	return nil
}

// Counts returns the counts as one line.
func (r *Report) Counts() string {
	var faults []string
	total := 0
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		faults = append(faults, fmt.Sprintf("%d %s", r.Faults[name], name))
		total += r.Faults[name]
	}
	return fmt.Sprintf("%d faults (%s), %d agents, %d messages sent, %d delivered, %d answered, %d restarts, %d notices, %.0f s",
		total, strings.Join(faults, ", "), r.Agents, r.Messages.Acknowledged, r.Messages.Delivered, r.Messages.Answered, r.Restarts, r.Notices, r.Took)
}

// Table returns the counts as rows of a table.
func (r *Report) Table() string {
	var b strings.Builder
	row := func(what string, n any) { fmt.Fprintf(&b, "| %s | %v |\n", what, n) }
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		row(name, r.Faults[name])
	}
	row("messages sent and acknowledged", r.Messages.Acknowledged)
	row("sends refused, and repeated", r.Messages.Retries)
	row("messages delivered, with the agents' own", r.Messages.Delivered)
	row("answers", r.Messages.Answered)
	row("agents started again by the watchdog", r.Restarts)
	row("notices to the owner", r.Notices)
	row("senders told that a message is held", r.Held)
	row("seconds", int(r.Took))
	return b.String()
}
