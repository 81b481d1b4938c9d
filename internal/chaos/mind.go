package chaos

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

	"netsky/home"
	"netsky/internal/proc"
)

const (
	waitDelay = 15 * time.Second

	// keepWord is what the process beside a home reads if its maker has ended well and
	// leaves the home where it is.
	keepWord = "keep"

	// dirFD is the descriptor through which the home's directory is passed on.
	dirFD = 3
)

// mind starts the process that cleans up if this one is killed. It notices by a pipe, whose
// other end only this process has, and gets a descriptor of the directory that this process
// has created: it removes no other.
func (t *Sandbox) mind() error {
	dir, err := os.Open(filepath.Dir(t.Root()))
	if err != nil {
		return err
	}
	defer dir.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(t.o.Binary, "demo", "mind")
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = t.Environ, "/", r, t.o.Err
	cmd.ExtraFiles = []*os.File{dir} // dirFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return err
	}
	t.beside, t.pipe = cmd, w
	return nil
}

// dismiss has the process beside this one clean up what is left, and waits for it.
func (t *Sandbox) dismiss() {
	t.pipe.Close()
	_ = t.beside.Wait()
}

// partlyDone reports whether a verb has done its work, but can't prove it or has not seen all of its effect yet.
func partlyDone(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == partly
}

// madeHere reports whether the directory is the one that its maker has passed on.
func madeHere(dir string) bool {
	var handed, there unix.Stat_t
	return strings.HasPrefix(filepath.Base(dir), prefix) &&
		unix.Fstat(dirFD, &handed) == nil && unix.Lstat(dir, &there) == nil &&
		handed.Mode&unix.S_IFMT == unix.S_IFDIR && handed.Dev == there.Dev && handed.Ino == there.Ino
}

// ErrNotBeside is returned by [Mind] in a process that no [NewSandbox] has started.
var ErrNotBeside = errors.New("only netsky runs this, beside a temporary home")

// Mind waits until the maker of the home h has ended, as the end of in shows, and cleans up
// if the maker has not; then it returns what the home was for.
func Mind(ctx context.Context, h home.Dir, in io.Reader, o SandboxOptions) (what string, err error) {
	dir := filepath.Dir(h.Root())
	if filepath.Base(h.Root()) != homeName || !madeHere(dir) {
		return "", ErrNotBeside
	}
	what, _, _ = strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
	word, _ := io.ReadAll(io.LimitReader(in, int64(len(keepWord))))
	if string(word) == keepWord || !exists(dir) {
		return "", nil
	}
	t := &Sandbox{Dir: h, Environ: o.Environ, o: o}
	ctx = context.WithoutCancel(ctx) // it ends with the home, or when it has cleaned up
	wake(h)
	for try := 1; exists(h.Root()); try++ {
		out, err := t.clear(ctx)
		// A verb that outlived the maker may still be starting something.
		rest, lerr := proc.Descendants(0, "NETSKY_HOME="+h.Root(), os.Getpid())
		if partlyDone(err) {
			err = nil // an up that was cut off can't prove it, and demo agents leave nothing
		}
		if err = errors.Join(err, lerr); err == nil && len(rest) == 0 {
			break
		}
		if try == 10 {
			return "", fmt.Errorf("the %s was killed, and the processes it started in %s do not end: %w: %s", what, h.Root(), err, out)
		}
		if try >= 3 {
			proc.End(ctx, rest, 2*time.Second)
			continue
		}
		time.Sleep(time.Second)
	}
	if !madeHere(dir) {
		return "", fmt.Errorf("%s: is no longer the %s's directory: not removed", dir, what)
	}
	_ = Unmount(h.Root()) // if anything is mounted there
	return what, os.RemoveAll(dir)
}

// wake lets what the maker had stopped go on: a tmux server that is stopped does not answer
// those who end it.
func wake(h home.Dir) {
	list, _ := proc.Descendants(0, "NETSKY_HOME="+h.Root(), os.Getpid())
	for _, p := range list {
		_ = p.Signal(unix.SIGCONT) // it may have ended
	}
}
