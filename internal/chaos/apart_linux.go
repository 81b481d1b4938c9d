package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart prepares cmd to run in a user namespace and a mount namespace of its own, as the same
// user, where it and what it starts may mount file systems that no other process sees. It
// also gets a process group of its own, and SIGTERM if this process dies.
func apart(cmd *exec.Cmd) error {
	uid, gid := os.Getuid(), os.Getgid()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}, // in the new user namespace, so to mount
		Setpgid:     true,
		Pdeathsig:   syscall.SIGTERM,
	}
	return nil
}

// start starts cmd, and wait waits for its end. The thread that starts it stays until then:
// its death would count as this process's.
func start(cmd *exec.Cmd) (wait func() error, err error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return func() error { return <-ended }, <-started
}

// Mount mounts a file system of that many bytes, which ends with its last user, in a process
// that [Rerun] has started.
func Mount(dir string, size int64) error {
	err := unix.Mount("netsky", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0700", size))
	if err != nil {
		return fmt.Errorf("a small file system can't be mounted: %w", err)
	}
	return nil
}

// Unmount ends it.
func Unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }
