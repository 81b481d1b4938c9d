package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent/home"
	"netsky/agent/proc"
)

// mind starts the process that cleans up if this one is killed, and returns the
// function that ends it. It notices by a pipe, whose other end only this process has,
// and gets a descriptor of the directory that this process has created: it removes no
// other.
func (t *tour) mind() (dismiss func(), err error) {
	dir, err := os.Open(filepath.Dir(t.home.Root()))
	if err != nil {
		return func() {}, err
	}
	defer dir.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}, err
	}
	defer r.Close()
	cmd := exec.Command(t.Binary, "demo", "mind")
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = t.Environ, "/", r, t.Err
	cmd.ExtraFiles = []*os.File{dir} // tourFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return func() {}, err
	}
	return func() {
		w.Close()
		_ = cmd.Wait()
	}, nil
}

// tourFD is the descriptor through which the directory of a tour is passed on.
const tourFD = 3

// madeByTour reports whether the directory is the one that a tour has passed on.
func madeByTour(dir string) bool {
	var handed, there unix.Stat_t
	return strings.HasPrefix(filepath.Base(dir), dirPrefix) &&
		unix.Fstat(tourFD, &handed) == nil && unix.Lstat(dir, &there) == nil &&
		handed.Mode&unix.S_IFMT == unix.S_IFDIR && handed.Dev == there.Dev && handed.Ino == there.Ino
}

// ErrNotBeside is returned by [Mind] in a process that no tour has started.
var ErrNotBeside = errors.New("only netsky runs this, beside a tour")

// Mind waits until the tour in whose home h it runs has ended, as the end of in shows,
// and cleans up if the tour has not; cleared reports that.
func Mind(ctx context.Context, h home.Dir, in io.Reader, o Options) (cleared bool, err error) {
	dir := filepath.Dir(h.Root())
	if filepath.Base(h.Root()) != "home" || !madeByTour(dir) {
		return false, ErrNotBeside
	}
	_, _ = io.Copy(io.Discard, in)
	if !exists(dir) {
		return false, nil
	}
	t := &tour{Options: o, home: h}
	ctx = context.WithoutCancel(ctx) // it ends with the tour, or when it has cleaned up
	for try := 1; exists(h.Root()); try++ {
		out, err := t.clear(ctx)
		// A verb that outlived the tour may still be starting something.
		rest, lerr := proc.Descendants(0, "NETSKY_HOME="+h.Root(), os.Getpid())
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == partly {
			err = nil // an up that was cut off can't prove it, and the tour's agents leave nothing
		}
		if err = errors.Join(err, lerr); err == nil && len(rest) == 0 {
			break
		}
		if try == 10 {
			return false, fmt.Errorf("the tour was killed, and the processes it started in %s do not end: %w: %s", h.Root(), err, out)
		}
		if try >= 3 {
			proc.End(ctx, rest, 2*time.Second)
			continue
		}
		time.Sleep(time.Second)
	}
	if !madeByTour(dir) {
		return false, fmt.Errorf("%s: is no longer the tour's directory: not removed", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return false, err
	}
	return true, nil
}

// partly is the exit status of a verb that could not prove that everything ended.
const partly = 3

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// clear ends everything that the tour has started. The signals that end the tour, and
// arrive again with a second Ctrl-C or from a closing terminal, must not end this.
func (t *tour) clear(ctx context.Context) (string, error) {
	cmd := t.command(context.WithoutCancel(ctx), "down", "--all", "--force", "--verify")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !proc.Reaps && errors.As(err, &exit) && exit.ExitCode() == partly {
		err = nil // that nothing is left can't be proved there
	}
	return strings.TrimRight(string(out), "\n"), err
}
