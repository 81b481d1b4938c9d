package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"netsky/home"
	"netsky/internal/proc"
)

// A Keeper runs the server of a home as a child of the daemon, as long as the home serves.
type Keeper struct {
	Home    home.Dir
	Command []string // ends when its standard input does
	Environ []string
	Log     *slog.Logger
}

const (
	settingsEvery = time.Second
	endsWithin    = 2 * time.Second
	longestPause  = 15 * time.Second // after a server that has failed
	steady        = time.Minute      // one that ran for so long is started again at once
)

// Run runs the server whenever the home serves, until ctx ends.
func (k Keeper) Run(ctx context.Context) error {
	for cleared, pause := false, settingsEvery; ctx.Err() == nil; {
		var err error
		began := time.Now()
		if k.Home.Mark(SettingsFile).Exists() {
			err, cleared = k.serve(ctx), false
		} else if !cleared {
			err, cleared = k.clear(), true
		}
		if err == nil || time.Since(began) > steady {
			pause = settingsEvery
		}
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("again", "service", "link server", "in", pause.String(), "error", err)
		}
		if proc.Sleep(ctx, pause) != nil {
			break
		}
		pause = min(2*pause, longestPause)
	}
	return nil
}

// clear removes what the server of a home has kept that does not serve any more: hosts that have
// another server send again there what this one had. The certificate stays, as hosts know it.
func (k Keeper) clear() error {
	if !k.Home.Mark(keptDir).Exists() {
		return nil
	}
	lock, err := k.Home.Lock(home.LinkServerLock)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return os.RemoveAll(k.Home.Path(keptDir))
}

// serve runs the server once. One of a daemon that was killed ends with its standard input;
// one that hangs is ended here.
func (k Keeper) serve(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	lock, err := k.Home.WaitLock(wait, home.LinkServerLock, nil)
	if err == nil {
		lock.Unlock()
	} else if who, held := k.Home.LockHolder(home.LinkServerLock); held && who.Named() && ctx.Err() == nil {
		k.Log.Warn("another link server runs; ending it", "pid", who.PID)
		if len(proc.End(ctx, []proc.Process{who.Process}, endsWithin)) > 0 {
			return fmt.Errorf("process %d did not end", who.PID)
		}
	}
	cmd := exec.Command(k.Command[0], k.Command[1:]...)
	cmd.Env, cmd.Dir = k.Environ, k.Home.Root()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	self, _ := proc.Find(cmd.Process.Pid) // not waited for yet, so its number is not reused
	ended := make(chan error, 1)
	go func() {
		last := k.log(out)
		if err := cmd.Wait(); err != nil {
			ended <- errors.Join(err, last)
		} else {
			ended <- nil
		}
	}()
	select {
	case err = <-ended:
		return err
	case <-ctx.Done():
	}
	in.Close()
	select {
	case <-ended:
	case <-time.After(endsWithin):
		proc.End(context.WithoutCancel(ctx), []proc.Process{self}, 0)
		<-ended
	}
	return nil
}

// log passes what the server prints on to the log, and returns its last line.
func (k Keeper) log(out io.Reader) (last error) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = errors.New(lines.Text())
		k.Log.Info("link server", "said", lines.Text())
	}
	_, _ = io.Copy(io.Discard, out) // of a line that is too long
	return last
}
