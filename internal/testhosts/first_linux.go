package testhosts

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstVar makes a test program the first process of the host whose directory it names.
const firstVar = "NETSKY_TEST_HOST"

// First reports whether this process was the first one of a host, after it has ended. A
// TestMain calls it before all else.
func First() bool {
	dir := os.Getenv(firstVar)
	if dir == "" {
		return false
	}
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	if err := settle(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() { // processes whose parents have ended are this one's children
		for range died {
			for {
				if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
					break
				}
			}
		}
	}()
	fmt.Println("up")
	io.Copy(io.Discard, os.Stdin) // until the test has ended
	return true
}

// settle makes this process's namespaces those of the host.
func settle(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("/run: %w", err)
	}
	for _, d := range []string{"/run/sshd", "/run/etc"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	name := filepath.Base(dir)
	files, err := filepath.Glob(filepath.Join(dir, "etc", "[^s]*")) // not sshd's
	if err != nil {
		return err
	}
	over := [][2]string{{"etc", "/run/etc"}, {"bin", "/usr/local/bin"}, {"home", "/home"}}
	for _, f := range files {
		over = append(over, [2]string{"etc/" + filepath.Base(f), "/etc/" + filepath.Base(f)})
	}
	for _, o := range append(over, [2]string{"tmp", "/tmp"}) { // last: the others may be below it
		err := unix.Mount(filepath.Join(dir, o[0]), o[1], "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, unix.ENOENT) { // a machine without that file has none
			return fmt.Errorf("%s: %w", o[1], err)
		}
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return err
	}
	return exec.Command("ip", "link", "set", "lo", "up").Run()
}
