// Package check runs the owner's own commands in worktrees: [work] setup and check. It runs none
// whose exact text the owner has not agreed to, and remembers what was agreed to by a digest.
//
// A command runs in a shell, in a session of its own, with a time limit, and without the variables
// by which netsky's own programs know whom they serve. When it ends, and when its time is over,
// what is left of its process group is killed, and, if that is wanted, what has made a group of its own,
// as a variable shows that all it starts inherit. Its output is kept in a log of bounded size. If netsky is killed, so
// is the process group; the log is not written.
package check

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/store"
)

// A Command is a shell command of the owner's.
type Command struct {
	What string // the key of [work] that it is
	Text string
}

// Digest identifies the exact text.
func (c Command) Digest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(c.Text)))[:16] }

// agreedFile holds what the owner has agreed to.
const agreedFile = "state/agreed.json"

// maxAgreed is how many commands are remembered; the oldest is asked about again.
const maxAgreed = 100

type consent struct {
	What string     `json:"what"`
	Text string     `json:"text"`
	Time store.Time `json:"time"`
}

// Agreed reports whether the owner has agreed to exactly this command.
func (c Command) Agreed(h home.Dir) (bool, error) {
	list, err := agreed(h)
	for _, a := range list {
		if a.What == c.What && a.Text == c.Text {
			return true, nil
		}
	}
	return false, err
}

// Agree records that the owner has agreed.
func (c Command) Agree(h home.Dir) error {
	list, err := agreed(h)
	if err != nil {
		return err
	}
	list = append(list, consent{c.What, c.Text, store.At(time.Now())})
	return h.Save(agreedFile, list[max(0, len(list)-maxAgreed):], true)
}

func agreed(h home.Dir) ([]consent, error) {
	list, err := home.Load[[]consent](h, agreedFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, err
}

// Options say how a command is run.
type Options struct {
	Home   home.Dir
	Dir    string        // where
	Log    string        // a file below the home, which is replaced; "" is none
	Env    []string      // what it inherits, before it is cleaned
	Extra  []string      // further variables
	Within time.Duration // how long it may take
	// Daemons says that what it leaves behind in groups of their own is ended, too.
	Daemons bool
	Out     io.Writer // gets the output, too, as it comes; nil is nothing
}

// A Result is how a command ended.
type Result struct {
	Status int    // its exit status; -1 if it has none
	Reason string // why it has none: "timed out after 15m0s"
	Took   time.Duration
}

// OK reports whether it has ended with status 0.
func (r Result) OK() bool { return r.Status == 0 && r.Reason == "" }

func (r Result) String() string {
	if r.Reason != "" {
		return r.Reason
	}
	return fmt.Sprintf("exit status %d", r.Status)
}

// guarded runs the command beside a guard, which ends the group when netsky's end of the pipe is gone:
// also if netsky was killed.
const guarded = `(trap '' HUP INT TERM; read _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec /bin/sh -c "$1" 3<&-`

// Run runs the command to its end, which the end of ctx is as well. An error says that it could not
// be started, or its output not be kept.
func (c Command) Run(ctx context.Context, o Options) (r Result, err error) {
	kept := &log{}
	alive, ours, err := os.Pipe()
	if err != nil {
		return r, err
	}
	defer ours.Close()
	cmd := exec.Command("/bin/sh", "-c", guarded, "sh", c.Text)
	cmd.ExtraFiles = []*os.File{alive}
	cmd.Dir = o.Dir
	mark := marking + rand.Text()
	cmd.Env = append(append(execx.Without(execx.Inherited(o.Env), "NETSKY_*", "GIT_*", "PWD"), "PWD="+o.Dir, mark), o.Extra...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout = kept
	if o.Out != nil {
		cmd.Stdout = io.MultiWriter(kept, o.Out)
	}
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = time.Second // for what holds its output open
	began := time.Now()
	err = cmd.Start()
	alive.Close()
	if err != nil {
		return r, fmt.Errorf("%s: %w", c.What, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	group := cmd.Process.Pid
	limit := time.NewTimer(o.Within)
	defer limit.Stop()
	select {
	case err = <-ended:
	case <-limit.C:
		r.Reason = fmt.Sprintf("timed out after %v", o.Within)
	case <-ctx.Done():
		r.Reason = "cut off"
	}
	if r.Reason != "" {
		_ = unix.Kill(-group, unix.SIGTERM) // not reaped yet, so the number is its
		select {
		case <-ended:
		case <-time.After(grace):
			_ = unix.Kill(-group, unix.SIGKILL)
			<-ended
		}
	}
	// The guard is left of the group, so the number is not given to another.
	_ = unix.Kill(-group, unix.SIGKILL)
	if o.Daemons {
		end(mark)
	}
	r.Took = time.Since(began)
	r.Status = cmd.ProcessState.ExitCode()
	switch ws, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); {
	case r.Reason != "":
		r.Status = -1
	case ws.Signaled():
		r.Reason = fmt.Sprintf("ended by %v", ws.Signal())
	}
	if ee := new(exec.ExitError); errors.As(err, &ee) || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if o.Log == "" {
		return r, err
	}
	return r, errors.Join(err, o.Home.WriteFile(o.Log, kept.bytes(), false))
}

// marking begins the variable that shows what a command has started.
const marking = "NETSKY_COMMAND="

// end kills what has the mark. What that starts meanwhile is looked for again.
func end(mark string) {
	for range 3 {
		left, err := proc.Descendants(0, mark)
		if err != nil || len(left) == 0 {
			return
		}
		proc.End(context.Background(), left, 0)
	}
}

// grace is how long a command may take to end after SIGTERM.
const grace = 5 * time.Second
