package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
)

// A limit is what a vendor's limit would be: while it lasts no demo of this home answers.
// It is in state/demo/limit.json, so that it outlives the program, as a vendor's does.
type limit struct {
	Fault   agent.Fault `json:"fault"`
	SinceMS int64       `json:"since_ms"`
	EndMS   int64       `json:"end_ms"`
	Message string      `json:"message,omitempty"` // the one that asked for it
}

const limitFile = "state/demo/limit.json"

// account is the account of all demos.
const account = "demo"

// untold are the reasons whose end a vendor does not state.
const untold = "overloaded rate_limit network billing"

// limit makes a limit that ends after a time, and reports how it is now: a message that is
// handled once more after the end is answered.
func (d *demo) limit(q request, arg string) outcome {
	length, reason := split(arg)
	span, err := time.ParseDuration(length)
	f := agent.Fault{Reason: agent.Reason(strings.ReplaceAll(reason, " ", "_")), Account: account, Text: "the limit of /limit " + shorten(arg, 40)}
	if f.Reason == "" {
		f.Reason = agent.UsageLimit
	}
	stated := f.Reason == agent.UsageLimit
	if err != nil || span <= 0 || span > longest || !stated && !strings.Contains(untold, reason) {
		return outcome{failed: true, text: fmt.Sprintf("%s: not a time up to %s, then perhaps one of usage_limit %s", strings.TrimSpace("/limit "+shorten(arg, 40)), longest, untold)}
	}
	if l, err := home.Load[limit](d.Home, limitFile); err == nil && l.Message != "" && l.Message == q.mail.ID {
		return outcome{text: fmt.Sprintf("%s (demo): the limit of %s has passed", d.Agent, span)}
	}
	now := time.Now()
	end := now.Add(span).UnixMilli()
	if stated {
		f.UntilMS = end
	}
	if err := d.Home.Save(limitFile, limit{f, now.UnixMilli(), end, q.mail.ID}, true); err != nil {
		return outcome{failed: true, text: "/limit: " + err.Error()}
	}
	return outcome{fault: &f, text: f.String()}
}

// limited returns the limit that keeps messages from being answered now, or nil.
func (d *demo) limited() *agent.Fault {
	l, err := home.Load[limit](d.Home, limitFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil: // damaged: nobody is limited by it
		d.trouble("the limit", err)
		return nil
	}
	// One that has not begun is of another clock, which has been set back.
	if now := time.Now().UnixMilli(); l.EndMS <= now || l.SinceMS > now {
		return nil
	}
	return &l.Fault
}
