package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Rerun runs cmd, which is netsky itself, where [NewSandbox] can mount a small disk, and returns how
// it exited. Once ctx ends, cmd gets the signal that sig returns, and Rerun waits for its end
// nevertheless. A process that could not be started is ErrNotApart.
func Rerun(ctx context.Context, cmd *exec.Cmd, sig func() os.Signal) (status int, err error) {
	if err := apart(cmd); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotApart, err)
	}
	wait, err := start(cmd)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotApart, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(sig()) })
	defer stop()
	err = wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// ErrNotApart is returned if a process can't be given namespaces of its own here.
var ErrNotApart = errors.New("a process can't have a file system of its own here")
