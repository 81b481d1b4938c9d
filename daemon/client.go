package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

// A Pong is the daemon's answer to GET /ping.
type Pong struct {
	PID     int    `json:"pid"`
	StartMS int64  `json:"start_ms"`
	Version string `json:"version"`
	Schema  int    `json:"schema"` // of meta.db, as known to this daemon
	Binary  string `json:"binary"` // the path of its program, which may have been removed
	Web     Web    `json:"web,omitzero"`
}

// ErrNotRunning is returned when no daemon is running; ErrHung, when one is but does not
// answer within HungAfter; ErrUnwanted, when it was ended or kept from starting because
// its desired state is down.
var (
	ErrNotRunning = advice.With(errors.New("not running"),
		"`netsky up` starts it")
	ErrHung = advice.With(errors.New("does not answer"),
		"`netsky up` ends it and starts another; `netsky daemon stop` only ends it")
	ErrUnwanted = advice.With(errors.New("ended by a concurrent `netsky down --all` or `netsky daemon stop`"),
		"`netsky up` starts it again; `netsky down --all` ends all that runs")
)

// unwanted returns ErrUnwanted if the daemon's desired state is down.
func unwanted(h home.Dir) error {
	d, err := home.Desired(h).Load(agent.DaemonName)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && d.Up:
		return nil
	case err != nil:
		return fmt.Errorf("daemon: cannot read its desired state: %w", err)
	}
	return fmt.Errorf("daemon: %w", ErrUnwanted)
}

// HungAfter is how long the daemon may take to answer.
const HungAfter = 2 * time.Second

// Do sends a request to the daemon of a home. Its error matches ErrNotRunning or ErrHung in those cases.
func Do(h home.Dir, r *http.Request) (*http.Response, error) {
	tr := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", h.Path(home.DaemonSocket))
		},
	}
	resp, err := tr.RoundTrip(r)
	switch {
	case err == nil:
		return resp, nil
	case isTimeout(err):
		return nil, fmt.Errorf("daemon: %w within %v", ErrHung, HungAfter)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF): // it is just ending
		return nil, fmt.Errorf("daemon: %w", ErrNotRunning)
	}
	return nil, fmt.Errorf("daemon: %w", err)
}

// call sends a request to the daemon of a home. Its error matches ErrNotRunning or ErrHung
// in those cases.
func call(ctx context.Context, h home.Dir, method, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, HungAfter)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://netsky"+path, nil)
	if err != nil {
		return err
	}
	resp, err := Do(h, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("daemon: %s %s: %s", method, path, resp.Status)
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(answer); err != nil {
		return fmt.Errorf("daemon: %s: %w", path, err)
	}
	return nil
}

// Ping asks the daemon for its identity.
func Ping(ctx context.Context, home home.Dir) (Pong, error) {
	var p Pong
	err := call(ctx, home, http.MethodGet, "/ping", &p)
	return p, err
}

// Wake makes the daemon look at the agents at once. It is no error if none is running: the
// next one looks anyway.
func Wake(ctx context.Context, home home.Dir) error {
	err := call(ctx, home, http.MethodPost, "/wake", nil)
	if errors.Is(err, ErrNotRunning) {
		return nil
	}
	return err
}

// outFile is what the daemon prints, as when it crashes; a long one is put aside.
const (
	outFile = home.LogDir + "/daemon.log"
	maxOut  = 1 << 20
)

// Started is what Start did: nothing if it is "".
type Started string

// What Start may do.
const (
	Began    Started = "started"
	Unhung   Started = "ended one that did not answer, started another"
	Replaced Started = "ended one whose program is gone, started another"
	// Supervised is what others do for it.
	Supervised Started = "its supervisor has started one"
)

// Start starts the daemon if none answers, as a process in its own session that outlives
// the caller, and waits until it answers: until ctx ends, which also ends that process, or
// for 10 s if ctx has no deadline. A daemon that hangs, or whose program has been removed,
// is ended first. argv[0] is the binary.
func Start(ctx context.Context, h home.Dir, argv, env []string) (Pong, Started, error) {
	did := Began
	p, err := Ping(ctx, h)
	switch {
	case err == nil && (p.Binary == argv[0] || !home.Removed(p.Binary)):
		return p, "", nil
	case err == nil:
		did = Replaced
	case errors.Is(err, ErrHung):
		did = Unhung
	}
	if did != Began {
		if _, err := Stop(ctx, h); err != nil {
			return p, "", err
		}
	}
	if info, err := os.Lstat(h.Path(outFile)); err == nil && info.Size() > maxOut {
		if err := os.Rename(h.Path(outFile), h.Path(outFile+".1")); err != nil {
			return p, "", err
		}
	}
	out, err := h.OpenAppend(outFile)
	if err != nil {
		return p, "", err
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return p, "", err
	}
	defer null.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, h.Root()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return p, "", fmt.Errorf("daemon: %w", err)
	}
	child, _ := proc.Find(cmd.Process.Pid) // not waited for yet, so its number is not reused
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }() // ends with the daemon or with this process
	var deadline <-chan time.Time
	if _, has := ctx.Deadline(); !has {
		deadline = time.After(10 * time.Second)
	}
	var end error // of our child
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if p, err = Ping(ctx, h); err == nil {
			if p.PID != cmd.Process.Pid {
				did = "" // another process has won the lock: any daemon that answers will do
			}
			return p, did, nil
		}
		select {
		case <-ctx.Done():
			err := ctx.Err()
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("daemon: started, but did not answer in time; see %s", out.Name())
			}
			if exited != nil { // our child, which nothing waits for any more
				err = errors.Join(err, stop(context.WithoutCancel(ctx), child, false))
			}
			return p, "", err
		case <-deadline:
			if end != nil {
				return p, "", fmt.Errorf("daemon: ended at once (%v); see %s", end, out.Name())
			}
			return p, "", fmt.Errorf("daemon: started, but %w; see %s", err, out.Name())
		case end = <-exited:
			if err := unwanted(h); errors.Is(err, ErrUnwanted) {
				return p, "", err
			}
			// Another daemon may have the lock, and will answer in a moment.
			if _, other := h.LockHolder(agent.DaemonName); !other {
				deadline = time.After(time.Second) // it has not even reported that it holds the lock
			}
			exited, end = nil, cmp.Or(end, errors.New("exit status 0"))
		case <-time.After(wait):
		}
	}
}

// Stop ends the daemon and returns when it is gone: by a request to the door, then by
// TERM, then by KILL. If none is running that is no error; Stop reports whether one was. A
// process is signalled only if the daemon's lock is held, or was when the process accepted
// the request, and names that process by number and birth.
func Stop(ctx context.Context, home home.Dir) (ended bool, err error) {
	first, running := home.LockHolder(agent.DaemonName)
	asked := call(ctx, home, http.MethodPost, "/stop", nil)
	for end := time.Now().Add(unnamed); ; time.Sleep(5 * time.Millisecond) {
		held, err := home.Locked(agent.DaemonName)
		if err != nil {
			return false, fmt.Errorf("daemon: %w", err)
		}
		if !held {
			if asked != nil && !errors.Is(asked, ErrNotRunning) {
				return false, asked
			}
			if asked == nil && running && first.Named() { // it releases its lock before it exits
				return true, stop(ctx, first.Process, true)
			}
			return asked == nil, nil
		}
		who, ok := home.LockHolder(agent.DaemonName)
		if ok && who.Named() {
			return true, stop(ctx, who.Process, asked == nil)
		}
		// If run/ was removed, it writes its identity again within a second.
		if time.Now().After(end) || ctx.Err() != nil {
			return false, fmt.Errorf("daemon: an unknown process holds its lock; find the process that has %s open and end it", home.Root())
		}
		if errors.Is(asked, ErrNotRunning) {
			asked = call(ctx, home, http.MethodPost, "/stop", nil)
		}
	}
}

// unnamed is how long a daemon may take to write its identity again.
const unnamed = 3 * time.Second

func stop(ctx context.Context, p proc.Process, asked bool) error {
	if asked && waitGone(ctx, p, 5*time.Second) {
		return nil
	}
	if len(proc.End(ctx, []proc.Process{p}, 2*time.Second)) > 0 {
		return fmt.Errorf("daemon: process %d did not end", p.PID)
	}
	return nil
}

func waitGone(ctx context.Context, p proc.Process, d time.Duration) bool {
	for end := time.Now().Add(d); p.Alive(); {
		if time.Now().After(end) || ctx.Err() != nil {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &ne) && ne.Timeout())
}
