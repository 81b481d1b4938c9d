// Package chaos breaks a running netsky on purpose and checks that it recovers: it kills,
// stops, fills and limits what a home consists of while mail flows, waits after each fault
// until everything is up and answers again, and accounts for every message at the end. It
// drives netsky as a person does, through its verbs, and reads the mailboxes themselves.
//
// It is given a [World] that nobody else uses and that its caller removes; it ends
// everything there, and signals only processes of that home. A crash of the drill leaves the
// home's processes as they are, perhaps stopped, and frees what it had filled; whoever made
// the home ends them.
package chaos

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/home"
)

// A World is the netsky that a drill breaks.
type World struct {
	Home   home.Dir
	Socket string // of its tmux server
	// Command returns a verb in the home; the environment of its result names the home.
	Command func(ctx context.Context, words ...string) *exec.Cmd
	Up      []string   // the verb that starts everything: "up", "3", …
	Agents  []agent.ID // those that are up; all but agentinfinity get mail
	Demos   []agent.ID // those of them that obey a demo's commands
	NoDisk  error      // why the home is not on a small file system; nil: it is
	Spare   []int      // processes of the home's environment that are never stopped
}

// Options configure a drill.
type Options struct {
	World
	Faults []Fault       // each is done once, in random order
	For    time.Duration // then random ones follow until this has passed
	Burst  int           // how many are done at once at most, after the first round; 0: 1
	Seed   uint64
	Every  time.Duration // between two messages
	Within time.Duration // for each recovery; 0: two minutes
	Say    func(Line)    // each line of the report, as it is known
	Trace  io.Writer     // what the verbs print; may be nil
}

// Run runs a drill. The error says why it could not be done to its end; what has failed or
// could not be tried is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.Within = cmp.Or(o.Within, 2*time.Minute)
	d := &Drill{
		Options: o, began: time.Now(), deaths: make(map[agent.ID][]time.Time),
		rng:    rand.New(rand.NewPCG(o.Seed, 1)),
		ledger: &ledger{boxes: make(map[agent.ID]*box)},
		report: &Report{Seed: o.Seed, Agents: len(o.Agents), Faults: make(map[string]int)},
	}
	err := d.run(ctx)
	d.report.Took = time.Since(d.began).Round(100 * time.Millisecond).Seconds()
	return d.report, err
}

// A Drill is a drill in progress, as a fault sees it.
type Drill struct {
	Options
	began  time.Time
	rng    *rand.Rand
	ledger *ledger
	report *Report
	deaths map[agent.ID][]time.Time // by the drill's hand, in the last ten minutes
	owed   []Notice
}

func (d *Drill) run(ctx context.Context) error {
	if out, err := d.up(ctx); err != nil {
		return fmt.Errorf("netsky %s: %w: %s", strings.Join(d.Up, " "), err, out)
	}
	if _, err := d.recover(ctx, Hit{}, time.Now()); err != nil {
		return fmt.Errorf("before the first fault: %w", err)
	}
	mailing, stop := context.WithCancel(ctx)
	var mail sync.WaitGroup
	mail.Go(func() { d.traffic(mailing) })
	err := d.faults(ctx)
	stop()
	mail.Wait()
	if err != nil {
		return err
	}
	d.account(ctx)
	d.end(ctx)
	return ctx.Err()
}

// faults does each fault once, then random ones while there is time.
func (d *Drill) faults(ctx context.Context) error {
	order := d.rng.Perm(len(d.Faults))
	for _, i := range order {
		if line, ok := d.round(ctx, d.Faults[i:i+1]); ok {
			d.tell(line)
		}
	}
	for len(d.Faults) > 0 && time.Since(d.began) < d.For && ctx.Err() == nil {
		var some []Fault
		for range 1 + d.rng.IntN(max(d.Burst, 1)) {
			f := d.Faults[d.rng.IntN(len(d.Faults))]
			if f.When != Sudden && slices.ContainsFunc(some, func(other Fault) bool { return other.Name == f.Name }) {
				continue // twice at once is once
			}
			some = append(some, f)
		}
		slices.SortStableFunc(some, func(a, b Fault) int { return cmp.Compare(a.When, b.When) })
		line, ok := d.round(ctx, some)
		switch {
		case ok && line.Result != NotTried:
			d.tell(line)
		case ok: // it could be once; now there is nobody left to kill
			d.hold(ctx, Hit{Hold: time.Second})
		}
	}
	return ctx.Err()
}

// round does some faults, one upon the other, ends them and waits for the recovery from all of
// them. ok is false if ctx has ended.
func (d *Drill) round(ctx context.Context, some []Fault) (line Line, ok bool) {
	var names, what []string
	var all Hit
	var undo []func()
	var why error
	for _, f := range some {
		if ctx.Err() != nil || all.Alone || all.Up {
			break
		}
		hit, err := f.Do(ctx, d)
		if hit.Undo != nil {
			undo = append(undo, hit.Undo)
		}
		if err != nil {
			why = cmp.Or(why, err)
			continue // of several, what one has done can keep the next from being done
		}
		d.report.Faults[f.Name]++
		names, what = append(names, f.Name), append(what, hit.On)
		all.add(hit)
	}
	for _, n := range all.Owes {
		n.may = all.Up || all.Mute && n.Passes // an `up` is the owner's own
		d.owed = append(d.owed, n)
	}
	if all.Hold > 0 {
		d.hold(ctx, all)
	}
	slices.Reverse(undo)
	for _, f := range undo {
		f()
	}
	if len(names) == 0 {
		return Line{Name: some[0].Name, Result: NotTried, Detail: fmt.Sprint(why)}, ctx.Err() == nil
	}
	ended := time.Now()
	line = Line{Name: strings.Join(names, "+"), Result: Passed, Detail: strings.Join(what, "; ")}
	if all.Up {
		line.By = "netsky " + strings.Join(d.Up, " ")
		if out, err := d.up(ctx); err != nil {
			line.Result, line.Detail = Failed, fmt.Sprintf("%s; %s: %v: %s", line.Detail, line.By, err, out)
			return line, ctx.Err() == nil
		}
	}
	took, err := d.recover(ctx, all, ended)
	if line.Seconds = took.Seconds(); err != nil {
		line.Result, line.Detail = Failed, fmt.Sprintf("%s; not recovered in %s: %v", line.Detail, d.Within, err)
	}
	return line, ctx.Err() == nil
}

// up starts everything. That some of it is not ready yet when the verb returns is no fault: recover waits for it.
func (d *Drill) up(ctx context.Context) (out string, err error) {
	if out, err = d.netsky(ctx, d.Up...); partlyDone(err) {
		err = nil
	}
	return out, err
}

func (d *Drill) tell(l Line) {
	d.report.Lines = append(d.report.Lines, l)
	d.Say(l)
}

// hold keeps a fault up, and sees to it that it stays what it is.
func (d *Drill) hold(ctx context.Context, hit Hit) {
	end := time.NewTimer(hit.Hold)
	defer end.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case <-tick.C:
			if hit.Again != nil {
				hit.Again()
			}
		}
	}
}
