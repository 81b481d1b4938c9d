// This file makes a netsky home that lasts no longer than the process that made it:
// its directory, its tmux server and everything that runs there are apart from the user's,
// and end and disappear with [Sandbox.Close]. If the process is killed instead, a process beside
// it, [Mind], does the same, so a crash at any moment leaves nothing running. It removes only
// the directory that [NewSandbox] created, and leaves it where it is after [Sandbox.Keep].
//
// On Linux, the home can be on a small file system of its own, in the namespaces in which [Rerun]
// runs a process; the machine's other processes do not see it.

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/proc"
)

// SandboxOptions configure a Home.
type SandboxOptions struct {
	What    string    // what it is for: "tour"; a part of the directory's name
	Binary  string    // netsky itself
	Environ []string  // inherited by its verbs
	Err     io.Writer // of the process beside it
	Disk    int64     // put it on a file system of that many bytes; 0: no
	// Rough says that keepers are killed in it, after which netsky can't always prove that
	// nothing is left; then it counts that no process has the home in its environment.
	Rough bool
}

// A Sandbox is a netsky home in a temporary directory.
type Sandbox struct {
	home.Dir
	Environ []string // of its verbs
	Socket  string   // of its tmux server
	// NoDisk is why it is not on a file system of its own, if it should be.
	NoDisk error

	o       SandboxOptions
	keep    bool
	mounted bool
	beside  *exec.Cmd
	pipe    *os.File // tells the process beside it that this one has ended
}

const prefix = "netsky-"

// homeName is the home's name in its directory, kept where a copy of it is saved from a file
// system that ends.
const homeName, kept = "home", "kept"

// NewSandbox makes a home and starts the process that minds it.
func NewSandbox(o SandboxOptions) (t *Sandbox, err error) {
	dir, err := os.MkdirTemp("", prefix+o.What+"-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	h, err := home.At(filepath.Join(dir, homeName))
	if err != nil {
		return nil, err
	}
	t = &Sandbox{Dir: h, o: o, Socket: filepath.Join(dir, "tmux")}
	t.Environ = append(execx.Without(o.Environ, "NETSKY_HOME", "NETSKY_TMUX_SOCKET", "NETSKY_LISTEN"),
		"NETSKY_HOME="+h.Root(), "NETSKY_TMUX_SOCKET="+t.Socket, "NETSKY_LISTEN=127.0.0.1:0")
	if err := t.mind(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(h.Root(), 0o700); err != nil {
		t.dismiss()
		return nil, err
	}
	if o.Disk > 0 {
		t.NoDisk = Mount(h.Root(), o.Disk)
		t.mounted = t.NoDisk == nil
	}
	return t, nil
}

// Command returns a verb in the home, as a person would run it.
func (t *Sandbox) Command(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.o.Binary, words...)
	cmd.Env = t.Environ
	cmd.Dir = t.Root()
	// Asked to end, not killed: an up undoes what it has half done.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = waitDelay
	return cmd
}

// Keep makes Close leave the home where it is, for somebody to look at.
func (t *Sandbox) Keep() { t.keep = true }

// Beside returns the number of the process beside this one.
func (t *Sandbox) Beside() int { return t.beside.Process.Pid }

// Close ends everything that runs in the home, and removes it. The error says what could not
// be ended; then the process beside this one has tried, too.
func (t *Sandbox) Close(ctx context.Context) error {
	out, err := t.clear(ctx)
	unproved := partlyDone(err)
	if err != nil {
		err = fmt.Errorf("cleaning up: %w: %s", err, out)
	}
	if err != nil && !unproved && !t.keep {
		t.dismiss() // with the home there, it tries again
		return err
	}
	err = errors.Join(err, t.settle())
	if t.keep {
		_, werr := t.pipe.WriteString(keepWord)
		err = errors.Join(err, werr)
	} else {
		err = errors.Join(err, os.RemoveAll(filepath.Dir(t.Root())))
	}
	t.dismiss()
	return err
}

// settle ends the home's file system. What is kept of it is copied to the directory below.
func (t *Sandbox) settle() error {
	if !t.mounted {
		return nil
	}
	dir := filepath.Dir(t.Root())
	var err error
	if t.keep {
		err = copyFiles(t.Root(), filepath.Join(dir, kept))
	}
	if err = errors.Join(err, Unmount(t.Root())); err != nil || !t.keep {
		return err
	}
	if err := os.Remove(t.Root()); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, kept), t.Root())
}

// copyFiles copies directories and regular files; a home's sockets mean nothing elsewhere.
func copyFiles(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dest := to + strings.TrimPrefix(path, from)
		switch {
		case d.IsDir():
			return os.Mkdir(dest, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.WriteFile(dest, data, 0o600); err != nil {
			return err
		}
		return os.Chtimes(dest, info.ModTime(), info.ModTime())
	})
}

// clear ends everything in the home. The signals that end this process, and arrive again
// with a second Ctrl-C or from a closing terminal, must not end this.
func (t *Sandbox) clear(ctx context.Context) (string, error) {
	if !exists(t.Root()) {
		return "", nil
	}
	cmd := t.Command(context.WithoutCancel(ctx), "down", "--all", "--force", "--verify")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == partly && (!proc.Reaps || t.o.Rough && t.empty()) {
		err = nil // that nothing is left can't be proved there
	}
	return strings.TrimRight(string(out), "\n"), err
}

// empty reports whether no process of the home's is running but the one beside it.
func (t *Sandbox) empty() bool {
	var keep []int
	if t.beside != nil {
		keep = append(keep, t.Beside())
	}
	list, err := proc.Descendants(0, "NETSKY_HOME="+t.Root(), keep...)
	return err == nil && len(list) == 0
}

// partly is the exit status of a verb that has done its work, but not seen or proved all of its effect.
const partly = 3

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
