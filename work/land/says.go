package land

import (
	"fmt"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/words"
	"netsky/work/git"
	"netsky/work/record"
)

// Says says what a landing did, in words that follow the agent's name.
func Says(l record.Landing) string {
	target, unchecked := git.Branch(l.Target), ""
	if l.Evidence == "" {
		unchecked = ", unchecked"
	}
	switch l.State {
	case record.Begun:
		return "is landing on " + target + unchecked
	case record.Void:
		return "did not land on " + target
	case record.Pushed:
		return fmt.Sprintf("pushed %.7s for %s%s", l.Head, target, unchecked)
	}
	return fmt.Sprintf("landed on %s, %.7s to %.7s, by %s%s", target, l.Before, l.After, l.How, unchecked)
}

// Passed reports whether the check has.
func (c Checked) Passed() bool { return c.State == record.Passed }

// String says how the check ended, in words that follow the agent's name.
func (c Checked) String() string {
	what := fmt.Sprintf("%.7s merged into %s at %.7s", c.Merge.Head, git.Branch(c.Merge.Target), c.Merge.Onto)
	took := time.Duration(c.Ended-c.Started) * time.Millisecond
	switch {
	case c.Known:
		return fmt.Sprintf("passed %s ago: %s; --again runs it again", words.Ago(time.Since(c.Ended.Time())), what)
	case c.Passed():
		return fmt.Sprintf("passed in %v: %s", took.Round(100*time.Millisecond), what)
	case c.Reason != "":
		return fmt.Sprintf("%s, %s: %s", c.State, c.Reason, what)
	}
	return fmt.Sprintf("%s, exit status %d: %s", c.State, c.Status, what)
}

// Tail returns the last lines of what the check printed.
func (c Checked) Tail(h home.Dir) []string {
	data, err := h.ReadFile(c.Log, 4<<20)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return lines[max(0, len(lines)-20):]
}

// Not says what of an agent's work is not part of what was done.
func (l Loose) Not(id agent.ID, done string) string {
	what := "they are"
	switch {
	case l.Aside != "":
		what = "what is there is"
	case l.Files == 1 && l.Hidden == "":
		what = "it is"
	}
	return fmt.Sprintf("%s has %s; %s not %s", id, l, what, done)
}
