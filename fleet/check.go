package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/config"
	"netsky/daemon"
	"netsky/work/land"
)

// A CheckDone is what became of a check that runs without a terminal.
type CheckDone struct {
	land.Checked
	Said []string `json:"said,omitempty"` // what was warned of meanwhile
}

// checkRuns are the last of this process, one for each state of a work and a branch. They end with it,
// not with whoever asked for them.
type checkRuns struct {
	mu   sync.Mutex
	last map[checkKey]*checkRun // guarded by mu
}

// A checkKey is what is checked: an agent's work, merged into a branch.
type checkKey struct {
	agent agent.ID
	onto  string
}

type checkRun struct {
	of    string        // the tree that is checked, and the command
	heard bool          // somebody has waited for it; guarded by checkRuns.mu
	over  chan struct{} // closed when the fields below are set
	ended time.Time
	done  CheckDone
	err   error
}

func (c *checkRun) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// answers reports whether the run is the answer to who asked then: it ended later, or nobody has waited for it.
func (c *checkRun) answers(asked time.Time, again bool) bool {
	return !c.isOver() || asked.Before(c.ended) || !c.heard && !again
}

// check runs a check, or waits for the same one that runs. What nobody has waited for is the answer to
// the next who asks, unless that is to check again, or the work or the command is another now.
func (k *checkRuns) check(ctx context.Context, f *Fleet, r CheckRequest) (CheckDone, error) {
	what, asked := checkKey{cmp.Or(r.Agent, f.Actor), r.Onto}, time.Now()
	_, of, _ := land.Current(context.WithoutCancel(ctx), f.Home, what.agent) // also of work that can't land as it is
	of += CheckOf(*f.Config).Digest()
	if err := ctx.Err(); err != nil {
		return CheckDone{}, err // whoever asked has gone; the check that they did not wait for may have ended since, so this would be one more
	}
	k.mu.Lock()
	one := k.last[what]
	if one == nil || one.of != of || !one.answers(asked, r.Again) {
		one = &checkRun{of: of, over: make(chan struct{})}
		maps.DeleteFunc(k.last, func(_ checkKey, c *checkRun) bool { return c.heard && time.Since(c.ended) > time.Minute })
		if k.last == nil {
			k.last = make(map[checkKey]*checkRun)
		}
		k.last[what] = one
		go func() {
			defer func() {
				one.ended = time.Now()
				close(one.over)
			}()
			u := new(collector)
			g := *f
			g.UI = u
			one.done.Checked, one.err = Work{&g}.Check(context.WithoutCancel(ctx), r)
			one.done.Said = u.said
		}()
	}
	k.mu.Unlock()
	select {
	case <-one.over:
	case <-ctx.Done():
		return CheckDone{}, ctx.Err()
	}
	k.mu.Lock()
	one.heard = true
	k.mu.Unlock()
	return one.done, one.err
}

// check is Check for a caller that may go away meanwhile.
func (f over) check(ctx context.Context, r CheckRequest) (v CheckDone, err error) {
	if r.Set != nil {
		return v, usagef("check: set: changes netsky.toml; `netsky check --set` does it")
	}
	if err := f.agreed("check", r.Yes); err != nil {
		return v, err
	}
	return f.checks.check(ctx, f.Fleet, r)
}

// Checks runs the owner's check for the model of an agent: in the daemon, which outlives the model's
// tools; without one, here.
type Checks struct {
	*Fleet
	Patience time.Duration // 0 is 45 s

	here checkRuns
}

// patience is how long a model is kept waiting: its program gives up on a tool after a minute.
const patience = 45 * time.Second

// Check says in words what the check of an agent's work has found, or that it still runs.
func (k *Checks) Check(ctx context.Context, id agent.ID, again bool) (string, error) {
	within, cancel := context.WithTimeout(ctx, cmp.Or(k.Patience, patience))
	defer cancel()
	r := CheckRequest{Agent: id, Again: again}
	var v CheckDone
	err := call(within, k.Home, "/deeds/check", r, &v, func(said) {})
	if errors.Is(err, daemon.ErrNotRunning) {
		var c config.Config
		var f *Fleet
		if c, _, err = config.Load(k.Home); err == nil {
			f, err = k.rebuilt(&c, k.Environ, nil)
		}
		if err == nil {
			v, err = k.here.check(within, f, r)
		}
	}
	switch {
	case ctx.Err() == nil && within.Err() != nil:
		return fmt.Sprintf("the check of %s is not done: call work_check again to wait for it", id), nil
	case err != nil:
		return "", errors.New(strings.Join(append(v.Said, plainly(err)), "\n"))
	}
	return strings.Join(append(v.Said, k.words(v.Checked)...), "\n"), nil
}

// words says what a check has found.
func (k *Checks) words(v land.Checked) []string {
	lines := []string{fmt.Sprintf("%s: %s", v.Agent, v)}
	if v.Loose.Any() {
		lines = append(lines, v.Loose.Not(v.Agent, "checked"))
	}
	lines = append(lines, v.Notes...)
	if !v.Passed() {
		lines = append(append(lines, v.Tail(k.Home)...), "its output: "+k.Home.Path(v.Log))
	}
	return lines
}
