package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is what Lock returns when another process holds the lock.
var ErrLocked = errors.New("held by another process")

// A Lock is an flock on a file in run/lock. The kernel drops it with the
// process, so a crash leaves none behind; the file stays and names the last
// holder. It is taken on the open file: a second Lock in the same process is
// refused like one in another.
type Lock struct{ f *os.File }

// A Holder is who took a lock, as written inside its file.
type Holder struct {
	Process
	Program string `json:"program"`
}

// Lock takes the lock name without waiting. When another holds it, the error
// matches ErrLocked and names the holder as far as it is known.
func (h Home) Lock(name string) (*Lock, error) {
	f, err := h.openFile(LockDir+"/"+name, unix.O_RDWR|unix.O_CREAT, true)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		f.Close()
		if who, ok := h.LockHolder(name); ok {
			return nil, fmt.Errorf("%s: %w: %s, pid %d", name, ErrLocked, who.Program, who.PID)
		}
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	me := Holder{Process: Self(), Program: filepath.Base(os.Args[0])}
	if len(os.Args) > 1 {
		me.Program += " " + os.Args[1]
	}
	line, err := json.Marshal(me)
	if err == nil {
		// Written over in place, then cut: a reader that comes between sees
		// JSON with a tail, takes the first value, and is right either way.
		_, err = f.WriteAt(append(line, '\n'), 0)
	}
	if err == nil {
		err = f.Truncate(int64(len(line) + 1))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return &Lock{f}, nil
}

// WaitLock takes the lock, waiting for it until ctx ends. blocked, if not nil,
// is called once with the refusal if it has to wait.
func (h Home) WaitLock(ctx context.Context, name string, blocked func(error)) (*Lock, error) {
	for wait := 2 * time.Millisecond; ; wait = min(wait*2, 100*time.Millisecond) {
		l, err := h.Lock(name)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		if blocked != nil {
			blocked(err)
			blocked = nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// Unlock gives the lock back. The file stays.
func (l *Lock) Unlock() error { return l.f.Close() }

// LockHolder says which living process was the last to take the lock.
// It takes no lock itself, so looking never makes another's attempt fail.
func (h Home) LockHolder(name string) (Holder, bool) {
	data, err := h.ReadFile(LockDir+"/"+name, 4096)
	if err != nil {
		return Holder{}, false
	}
	var who Holder
	if json.NewDecoder(bytes.NewReader(data)).Decode(&who) != nil || !who.Alive() {
		return Holder{}, false
	}
	return who, true
}
