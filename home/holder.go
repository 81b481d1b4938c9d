package home

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"netsky/internal/proc"
)

// A heldError is an ErrLocked of which the holder is known.
type heldError struct {
	name string
	who  Holder
}

func (heldError) Unwrap() error { return ErrLocked }

func (e heldError) Error() string {
	switch e.name {
	case UpLock:
		return fmt.Sprintf("%s, pid %d, is starting or ending agents", e.who.Program, e.who.PID)
	case LandingLock:
		return fmt.Sprintf("%s, pid %d, is landing work or taking it back", e.who.Program, e.who.PID)
	}
	return fmt.Sprintf("%s: %v: %s, pid %d", e.name, ErrLocked, e.who.Program, e.who.PID)
}

// A Role says what kind of holder has a lock, where holders differ.
type Role string

// Passing is the Role of a process that drains a mailbox and leaves. Any other holder of a
// mailbox is its receiver.
const Passing Role = "passing"

// Ending is the Role of a holder of UpLock that starts no agent.
const Ending Role = "ending"

// A Holder identifies who took a lock, as written in its file.
type Holder struct {
	proc.Process
	Program  string `json:"program"`
	Role     Role   `json:"role,omitempty"`
	Released bool   `json:"released,omitempty"` // it has released the lock
}

// Passing reports whether the holder of a mailbox is not its receiver. In versions that
// wrote no roles, only `netsky channel` was such a holder.
func (who Holder) Passing() bool {
	return who.Role == Passing || who.Role == "" && strings.HasSuffix(who.Program, " channel")
}

// ownHolder returns this process as the holder of a lock.
func ownHolder(role Role) Holder {
	me := Holder{Process: proc.Self(), Program: filepath.Base(os.Args[0]), Role: role}
	if len(os.Args) > 1 {
		me.Program += " " + os.Args[1]
	}
	return me
}

// write replaces the content of the lock's file with the holder.
func (who Holder) write(f *os.File) error {
	line, err := json.Marshal(who)
	if err != nil {
		return err
	}
	// In place, then truncated: a concurrent reader sees JSON with a tail, decodes the
	// first value, and is right either way.
	if _, err := f.WriteAt(append(line, '\n'), 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(line) + 1))
}
