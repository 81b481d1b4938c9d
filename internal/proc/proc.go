package proc

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// A Process identifies one process for good: its number and when it was born. The
// system reuses numbers, so one without a birth is nobody: it never counts as alive and
// is never signalled.
type Process struct {
	PID   int   `json:"pid"`
	Start int64 `json:"pid_start"` // clock ticks since boot (Linux), microseconds since 1970 (macOS)
}

// Self returns this process.
func Self() Process {
	p, err := Find(os.Getpid())
	if err != nil {
		return Process{PID: os.Getpid()}
	}
	return p
}

// Find returns the process that has the number now. A zombie counts as gone: its error
// matches fs.ErrNotExist.
func Find(pid int) (Process, error) {
	s, err := procStat(pid)
	return Process{PID: pid, Start: s.start}, err
}

// Named reports whether p identifies a process: it has a number and a birth.
func (p Process) Named() bool { return p.PID > 0 && p.Start != 0 }

// Alive reports whether the process is known to run.
func (p Process) Alive() bool {
	if !p.Named() {
		return false
	}
	now, err := Find(p.PID)
	return err == nil && now.Start == p.Start
}

// Gone reports whether the process is known not to run any more. One that can't be
// examined, or has no birth, is neither alive nor gone.
func (p Process) Gone() bool {
	if !p.Named() {
		return false
	}
	now, err := Find(p.PID)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return now.Start != p.Start
}

// Group lists the living processes of the process group that p leads, p first. It is
// empty if p is gone, as its number may be another group's then.
func (p Process) Group() ([]Process, error) {
	if !p.Named() {
		return nil, nil
	}
	all, err := procTable()
	if err != nil {
		return nil, err
	}
	var list []Process
	for _, e := range all {
		switch q := (Process{PID: e.pid, Start: e.start}); {
		case e.group != p.PID:
		case q == p:
			list = append([]Process{q}, list...)
		default:
			list = append(list, q)
		}
	}
	if len(list) == 0 || list[0] != p || !p.Alive() {
		return nil, nil
	}
	return list, nil
}

// A Family is where a family of processes begins. PID 0 and Mark "" stand for none.
type Family struct {
	PID int
	// Mark is "NAME=value". If the system reports environments, a process whose
	// environment contains it belongs to the family whatever its parent is: it was
	// started by one that has died since.
	Mark string
}

// Descendants lists the living processes below pid and those with the mark,
// parents first. keep names processes to leave out with all below them.
func Descendants(pid int, mark string, keep ...int) ([]Process, error) {
	lists, err := Families([]Family{{pid, mark}}, keep...)
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// Families is Descendants for several families with one listing of all processes. One
// that could belong to two is listed once, with the family of its ancestor.
func Families(list []Family, keep ...int) ([][]Process, error) {
	all, err := procTable()
	if err != nil {
		return nil, err
	}
	f := forest{children: make(map[int][]procEntry), seen: map[int]bool{os.Getpid(): true}}
	for _, e := range all {
		f.children[e.parent] = append(f.children[e.parent], e)
	}
	for _, k := range keep {
		if k <= 0 { // nobody; and all descend from the number 0
			continue
		}
		f.seen[k] = true
		f.below(k)
	}
	lists := make([][]Process, len(list))
	marks := make(map[string]int)
	for i, family := range list {
		if family.PID > 0 {
			lists[i] = f.below(family.PID)
		}
		if family.Mark != "" {
			marks[family.Mark] = i
		}
	}
	for _, family := range list {
		f.seen[family.PID] = true // the first of a family is not listed
	}
	var reader markReader
	for _, e := range all {
		if f.seen[e.pid] {
			continue
		}
		if i, ok := reader.find(e.pid, marks); ok {
			f.seen[e.pid] = true
			lists[i] = append(append(lists[i], Process{PID: e.pid, Start: e.start}), f.below(e.pid)...)
		}
	}
	return lists, reader.err
}

// A forest holds all processes, and which of them have been listed or left out.
type forest struct {
	children map[int][]procEntry
	seen     map[int]bool
}

func (f forest) below(pid int) (list []Process) {
	for _, c := range f.children[pid] {
		if !f.seen[c.pid] {
			f.seen[c.pid] = true
			list = append(append(list, Process{PID: c.pid, Start: c.start}), f.below(c.pid)...)
		}
	}
	return list
}

type procEntry struct {
	pid, parent, group int
	start              int64
}

// CPU returns the processor time that these processes have used, with that of their
// children which have ended, and, on Linux, the time for which their threads waited for a
// processor; 0 if the system does not report it. It may be less than before, as what a thread has
// waited is forgotten with it.
func CPU(list []Process) (sum time.Duration) {
	for _, p := range list {
		sum += procCPU(p.PID)
	}
	return sum
}
