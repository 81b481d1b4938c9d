package chaos

import (
	"errors"
	"os/exec"
)

var errLinux = errors.New("a small file system of a process's own exists on Linux only")

// apart prepares cmd to run where it may mount file systems of its own: on Linux only.
func apart(*exec.Cmd) error { return errLinux }

// start starts cmd, and wait waits for its end.
func start(cmd *exec.Cmd) (wait func() error, err error) { return cmd.Wait, cmd.Start() }

// Mount mounts a small file system: on Linux only.
func Mount(string, int64) error { return errLinux }

// Unmount ends it.
func Unmount(string) error { return nil }
