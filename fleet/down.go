package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/daemon"
	"netsky/daemon/update"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/spawn"
)

// A DownRequest asks for agents to be ended: those that are named, else agent0 and the clones.
type DownRequest struct {
	Agents []agent.ID `json:"agents,omitempty"`
	Force  bool       `json:"force,omitempty"`  // at once
	All    bool       `json:"all,omitempty"`    // also agentinfinity, the ticker and the daemon
	Verify bool       `json:"verify,omitempty"` // prove that nothing of them is left
}

// A DownResult is what a Down did.
type DownResult struct {
	Ended int `json:"ended"` // agents, ticker and daemon
}

// ErrNotProved is matched by the error of a Down after which nothing is known to be left, but that is
// not proved.
var ErrNotProved = errors.New("not proved")

// A downer carries out one Down.
type downer struct {
	*Fleet
	DownRequest
	ctx    context.Context
	tried  []string // sessions about which something was done
	failed bool     // not everything is known to have ended
	result DownResult
}

// Down ends agents with all their processes. No file is removed. An error that is a
// *[spawn.InterruptedError] says that the context ended while agents were still working: what was asked
// for stays in force. A crash leaves what [spawn.Launcher.Down] leaves.
func (f *Fleet) Down(ctx context.Context, r DownRequest) (DownResult, error) {
	if err := f.May("down"); err != nil {
		return DownResult{}, err
	}
	if r.All && len(r.Agents) > 0 {
		return DownResult{}, usagef("down: --all means every agent; leave the names out")
	}
	d := &downer{Fleet: f, DownRequest: r, ctx: ctx}
	err := d.run()
	return d.result, err
}

func (d *downer) run() (err error) {
	never := d.Launcher.NeverUp(d.ctx)
	if !never {
		err = d.end()
	}
	if stopped := new(spawn.InterruptedError); errors.As(err, &stopped) {
		d.failed = true
		return err
	}
	d.ctx = context.WithoutCancel(d.ctx) // what was ended is reported and verified in any case
	if !d.All && !never {
		if werr := daemon.Wake(d.ctx, d.Home); werr != nil {
			d.warn("%v", werr)
		}
	}
	var strangers []error
	for _, id := range d.Agents {
		switch {
		case slices.Contains(d.tried, string(id)) || err != nil: // with an error it is not known
		case !d.Launcher.Bus.Exists(id):
			strangers = append(strangers, advice.With(fmt.Errorf("%s: was never started", id), "`netsky status` lists the agents"))
		default:
			d.note("%s: was not running", id)
		}
	}
	d.failed = err != nil || len(strangers) > 0
	err = errors.Join(append(strangers, err)...)
	if d.result.Ended == 0 && err == nil && len(d.Agents) == 0 {
		d.note("nothing was running")
	}
	if d.Verify {
		err = errors.Join(err, d.verify())
	}
	if len(d.Agents) == 0 && !d.All {
		d.stillUp()
	}
	if err != nil && (d.result.Ended > 0 || errors.Is(err, ErrNotProved) && !d.failed) {
		return partly(err)
	}
	return err
}

// end ends them.
func (d *downer) end() error {
	o := spawn.DownOptions{Agents: d.Agents, Force: d.Force, All: d.All, By: string(d.Actor), Report: d.report}
	if d.All {
		o.Within = d.withDaemon
	}
	_, err := d.Launcher.Down(d.ctx, o)
	return err
}

func (d *downer) report(p spawn.DownProgress) {
	d.tried = append(d.tried, p.What)
	if p.Step == spawn.DownEnded {
		d.result.Ended++
	}
	d.UI.Step(Step{Down: &p})
}

func (d *downer) note(format string, args ...any) {
	d.UI.Step(Step{Line: fmt.Sprintf(format, args...)})
}

// withDaemon also ends the daemon and keeps it ended, while no up can start or find it.
func (d *downer) withDaemon(end func(...agent.ID) error) error {
	desired, err := home.Desired(d.Home).Load(agent.DaemonName)
	was := err != nil || desired.Up
	var unwritten error
	if was {
		unwritten = home.Desired(d.Home).Set(agent.DaemonName, false, string(d.Actor))
	}
	if unwritten != nil { // it is ended all the same
		unwritten = fmt.Errorf("could not save that the daemon stays down; it may be started again: %w", unwritten)
	}
	err = end()
	if stopped := new(spawn.InterruptedError); errors.As(err, &stopped) {
		if was {
			if werr := home.Desired(d.Home).Set(agent.DaemonName, true, string(d.Actor)); werr != nil {
				return errors.Join(err, werr)
			}
		}
		d.note("daemon: still up, because agents are still working")
		return err
	}
	ended, derr := stopDaemon(context.WithoutCancel(d.ctx), d.Home)
	if ended {
		d.note("daemon: ended")
		d.result.Ended++
	}
	err = errors.Join(err, unwritten, derr)
	if unwritten == nil {
		err = errors.Join(err, daemonUnwanted(d.Home))
	}
	return err
}

// StopDaemon ends the daemon, which stays down. It reports whether it was running; with an error that
// is a *[PartlyError] it is started again.
func (f Daemon) StopDaemon(ctx context.Context) (ended bool, err error) {
	if err := f.May("daemon stop"); err != nil {
		return false, err
	}
	unwritten := home.Desired(f.Home).Set(agent.DaemonName, false, string(f.Actor))
	if unwritten != nil {
		f.UI.Warn(unwritten)
	}
	ended, err = stopDaemon(ctx, f.Home)
	if err == nil && unwritten == nil {
		err = daemonUnwanted(f.Home)
	}
	return ended, err
}

// stopDaemon ends the daemon of a home, after a supervisor that has it.
func stopDaemon(ctx context.Context, h home.Dir) (ended bool, err error) {
	left := update.Leave(ctx, h)
	ended, err = daemon.Stop(ctx, h)
	return ended, errors.Join(left, err)
}

// daemonUnwanted returns an error if the daemon's desired state is up again.
func daemonUnwanted(h home.Dir) error {
	if d, err := home.Desired(h).Load(agent.DaemonName); err == nil && d.Up {
		return partly(errors.New("daemon: a concurrent `netsky up` or `netsky dashboard` starts it again"))
	}
	return nil
}

// stillUp notes what a down has left running on purpose.
func (d *downer) stillUp() {
	var up []string
	list, err := d.Launcher.Inspect(d.ctx)
	switch st := list.Find(agent.Infinity); {
	case st.State == agent.Unknown && err != nil:
		if st.Start != "" {
			up = append(up, fmt.Sprintf("perhaps %s (%s)", st.Agent, st.Evidence))
		}
	case st.Alive(): // by its process, where tmux does not answer
		up = append(up, string(st.Agent))
	}
	if on, _ := d.Launcher.TickerUp(d.ctx); on {
		up = append(up, spawn.TickerSession)
	}
	if _, err := daemon.Ping(d.ctx, d.Home); err == nil {
		up = append(up, "daemon")
	}
	if len(up) > 0 {
		d.note("still up: %s (`netsky down --all` ends them)", strings.Join(up, ", "))
	}
}

// TellUnproved warns of starts of which something may still run.
func (f *Fleet) TellUnproved(list []spawn.Remnant) {
	for _, r := range list {
		f.warn("not proved: %s", r.What)
	}
	if len(list) > 0 {
		f.warn("%s", unprovedHint(list))
	}
}

// DownLine says what one step of a down did.
func DownLine(p spawn.DownProgress) string {
	switch p.Step {
	case spawn.DownAsked:
		return p.What + ": asked to finish"
	case spawn.DownUnasked:
		return fmt.Sprintf("%s: could not be asked (%v); ending it", p.What, p.Err)
	case spawn.DownClosed:
		return p.What + ": closed by itself"
	case spawn.DownAcked:
		return p.What + ": finished"
	case spawn.DownUnfinished:
		return fmt.Sprintf("%s: not finished after %v; its message goes to its next start", p.What, p.After.Round(time.Second))
	case spawn.DownLeft:
		return p.What + ": asked to finish, still running"
	case spawn.DownTimeout:
		return fmt.Sprintf("%s: no answer within %v; ending it", p.What, p.After)
	case spawn.DownEnded:
		return p.What + ": ended"
	case spawn.DownFailed:
		return fmt.Sprintf("%s: not ended: %v", p.What, p.Err)
	case spawn.DownWarning:
		return fmt.Sprintf("%s: %v", cmp.Or(p.What, "down"), p.Err)
	}
	return ""
}

// ending says why ending an agent takes time, and how not to wait.
func (f *Fleet) ending(st spawn.Status) func(spawn.DownProgress) {
	return func(p spawn.DownProgress) {
		switch p.Step {
		case spawn.DownAsked:
			if st.State == agent.Busy {
				f.warn("%s is busy; waiting up to %v for its running turn to end (`netsky down %[1]s --force` in another terminal ends it at once)", p.What, spawn.DownWithin)
			}
		case spawn.DownUnfinished, spawn.DownTimeout, spawn.DownUnasked, spawn.DownWarning:
			f.warn("%s", DownLine(p))
		}
	}
}
