package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"netsky/daemon"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

// logFile is what supervisors print.
const logFile = home.LogDir + "/supervisor.log"

// Program returns the program to run in the place of binary: as long as a run is pending, the old one, which is known to
// work.
func Program(h home.Dir, binary string) string {
	if r, pending := Pending(h); pending && r.Previous != "" && r.From.is(r.Previous) {
		return r.Previous
	}
	return binary
}

// Finish has a supervisor carry out the pending run of a home, unless one does, in a process of its own that outlives the
// caller. It returns when that is started; [Follow] waits for it.
func Finish(h home.Dir, environ []string) error {
	r, pending := Pending(h)
	if !pending {
		return nil
	}
	// The lock itself may outlive whoever has released it for a moment.
	if who, held := h.LockHolder(home.SelfLock); held {
		ended := r.hangs() && who.Named() && len(proc.End(context.Background(), []proc.Process{who.Process}, time.Second)) == 0
		if !ended {
			return nil
		}
	}
	out, err := h.OpenAppend(logFile)
	if err != nil {
		return err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	program, err := r.supervisor()
	if err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	cmd := exec.Command(program, "daemon", "supervise-restart")
	cmd.Env, cmd.Dir = environ, h.Root()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	go cmd.Wait() // ends with it or with this process
	return nil
}

// hangsAfter is how long a supervisor takes for a step at most, a copy of large records and a checkout's hooks included.
const hangsAfter = 10 * time.Minute

// hangs reports whether the run is in one step for so long that its supervisor must hang. Another one goes on where it is.
func (r Run) hangs() bool { return time.Since(time.UnixMilli(r.step().AtMS)) > hangsAfter }

// ErrInterrupted is returned to whoever does not wait for the end.
var ErrInterrupted = advice.With(errors.New("interrupted: the supervisor continues"), "`netsky self status` shows how it went")

// beginsWithin is how long a supervisor may take until it has the run.
const beginsWithin = 15 * time.Second

// releasesWithin is how long a supervisor may take from the end of its run to its own.
const releasesWithin = 2 * time.Second

// Follow waits until the run is over, passes on each step that begins, and returns the run.
func Follow(ctx context.Context, h home.Dir, id string, tell func(Run, Step)) (r Run, err error) {
	told := 0
	for had := time.Now(); ; {
		if r, err = Load(h); err != nil {
			return r, err
		}
		if r.ID != id { // another one has begun since
			return r, fmt.Errorf("%s: another run has begun: %s", id, r.ID)
		}
		for ; told < len(r.Steps); told++ {
			tell(r, r.Steps[told])
		}
		held, err := h.Locked(home.SelfLock)
		switch {
		case err != nil:
			return r, err
		case r.State.Over() && (!held || time.Since(had) > releasesWithin): // the next run can begin
			return r, nil
		case r.State.Over():
		case held:
			had = time.Now()
		case !r.Idle && unwanted(h):
			return r, advice.With(errLeft, "`netsky up` starts it")
		case time.Since(had) > beginsWithin:
			return r, advice.With(fmt.Errorf("no supervisor carries it out; %s has what the last one printed", h.Path(logFile)),
				"`netsky up` starts another; the program is whole, and so are the records")
		}
		if proc.Sleep(ctx, 50*time.Millisecond) != nil {
			return r, ErrInterrupted
		}
	}
}

// leaveWithin is how long a supervisor takes to notice that its daemon is not wanted, and to end what it is at.
const leaveWithin = 10 * time.Second

// Leave waits until the supervisor of a home has ended, once the daemon is not wanted any more, and ends one that does not.
func Leave(ctx context.Context, h home.Dir) error {
	for end := time.Now().Add(leaveWithin); ; {
		held, err := h.Locked(home.SelfLock)
		if err != nil || !held {
			return err
		}
		if r, pending := Pending(h); !pending && r.State == Preparing {
			return nil // it is being prepared, in somebody's terminal
		}
		if who, ok := h.LockHolder(home.SelfLock); time.Now().After(end) && ok && who.Named() {
			if len(proc.End(ctx, []proc.Process{who.Process}, 2*time.Second)) > 0 {
				return fmt.Errorf("supervisor: process %d did not end", who.PID)
			}
			return nil
		}
		if err := proc.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// Starts waits until the supervisor of a home has brought a daemon up, or has ended. The error matches [daemon.ErrNotRunning]
// if none is up then.
func Starts(ctx context.Context, h home.Dir) (p daemon.Pong, err error) {
	for had := time.Now(); ; {
		r, pending := Pending(h)
		if !pending || r.State == Starting || r.State == Undoing {
			if p, err = daemon.Ping(ctx, h); err == nil || !pending {
				return p, err
			}
		}
		if held, err := h.Locked(home.SelfLock); err != nil || held {
			had = time.Now()
		} else if time.Since(had) > beginsWithin {
			return p, fmt.Errorf("daemon: %w", daemon.ErrNotRunning)
		}
		if err := proc.Sleep(ctx, 50*time.Millisecond); err != nil {
			return p, err
		}
	}
}
