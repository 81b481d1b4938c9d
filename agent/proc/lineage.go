package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// A Lineage is what a process hangs below: the processes that may become the
// parents of what its descendants leave behind. The zero Lineage is not known.
type Lineage struct {
	Ancestors []Process `json:"ancestors,omitempty"` // the parent first
	Space     string    `json:"pid_ns,omitempty"`    // the process namespace that the numbers are of
}

// OwnLineage is this process's lineage; zero where the system does not tell it.
func OwnLineage() Lineage {
	space, err := procSpace()
	if err != nil {
		return Lineage{}
	}
	for range 3 { // a parent that ends meanwhile leaves a gap
		if list, err := ancestors(os.Getpid()); err == nil {
			return Lineage{list, space}
		}
	}
	return Lineage{}
}

func ancestors(pid int) (list []Process, err error) {
	const most = 100
	for len(list) < most {
		s, err := procStat(pid)
		if err != nil {
			return nil, err
		}
		if len(list) > 0 {
			list[len(list)-1].Start = s.start
		}
		if s.parent <= 0 { // the first process, or one that came from outside
			return list, nil
		}
		list = append(list, Process{PID: s.parent})
		pid = s.parent
	}
	return nil, fmt.Errorf("process %d: more than %d ancestors", pid, most)
}

// ErrUntold reports that it can't be known what has survived a process.
var ErrUntold = errors.New("can't be told")

// A Descent is a process that has died, with its lineage.
type Descent struct {
	First Process
	Lineage
}

// Survivors lists, for each of the descents, the processes that may descend from
// its first one. Where a list is empty, nothing that the first one or anything
// below it ever started runs any more, wherever that had gone. known are processes
// that descend from none of them. The error matches ErrUntold if this process
// can't see all there is.
//
// Why an empty list is a proof (Linux): a process whose parent dies gets as its
// next parent the nearest living ancestor that takes in orphans (a subreaper), or
// else process 1 of its namespace. So of what has survived a dead process, the
// topmost ones have one of that process's own ancestors as their parent, or
// process 1. They can't be older than the dead process, and neither a new session,
// a double fork, another user nor an emptied environment changes their birth or
// their parent. The ancestors were recorded while the process lived; later they
// can only become fewer, as each one's death leaves its children to a further one.
// Which of them take in orphans the kernel does not tell, so each counts as one
// that does, and so does everybody's process: what one of them has started itself
// since then, as process 1 does with services, is listed too. What a service does
// on request (cron, systemd-run, a container) never descended from who asked.
func Survivors(list []Descent, known ...Process) ([][]Process, error) {
	space, err := procSpace()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntold, err)
	}
	for _, d := range list {
		if !d.First.Named() || d.Space == "" || d.Space != space {
			return nil, fmt.Errorf("process %d: what it hung below is not known here: %w", d.First.PID, ErrUntold)
		}
	}
	all, err := procTable()
	if err != nil {
		return nil, err
	}
	known = append([]Process{Self()}, known...)
	lists := make([][]Process, len(list))
	for i, d := range list {
		lists[i] = survivors(all, d, known)
	}
	return lists, nil
}

func survivors(all []procEntry, d Descent, known []Process) (list []Process) {
	known = append(slices.Clone(known), d.Ancestors...) // an ancestor that is as young as the first is none below it
	adopts := map[int]bool{1: true}
	f := forest{children: make(map[int][]procEntry), seen: make(map[int]bool)}
	for _, e := range all {
		f.children[e.parent] = append(f.children[e.parent], e)
		p := Process{PID: e.pid, Start: e.start}
		if slices.Contains(d.Ancestors, p) {
			adopts[e.pid] = true
		}
		if slices.Contains(known, p) {
			f.seen[e.pid] = true
		}
	}
	for _, e := range all {
		if adopts[e.parent] && e.start >= d.First.Start && !f.seen[e.pid] {
			f.seen[e.pid] = true
			list = append(append(list, Process{PID: e.pid, Start: e.start}), f.below(e.pid)...)
		}
	}
	return list
}

// Since lists the processes of this user that were started at that time or later,
// but for known and those below them. It is what to look through where Survivors
// can't tell.
func Since(t time.Time, known ...Process) (list []Process, err error) {
	all, err := procTable()
	if err != nil {
		return nil, err
	}
	known = append([]Process{Self()}, known...)
	f := forest{children: make(map[int][]procEntry), seen: make(map[int]bool)}
	for _, e := range all {
		f.children[e.parent] = append(f.children[e.parent], e)
	}
	for _, k := range known {
		f.seen[k.PID] = true
		f.below(k.PID)
	}
	for _, e := range all {
		if f.seen[e.pid] {
			continue
		}
		began, err := procBegan(e.start)
		if err != nil {
			return nil, err
		}
		// The clock may have been set by some seconds since: rather too many.
		if uid, ok := procUser(e.pid); ok && uid == os.Getuid() && !began.Before(t.Add(-5*time.Second)) {
			list = append(list, Process{PID: e.pid, Start: e.start})
		}
	}
	return list, nil
}

// Began is when the process was started, as far as the system's clock tells.
func (p Process) Began() (time.Time, error) { return procBegan(p.Start) }

// Command is the process's command line, or its name where no more is told; "" if
// it is gone.
func (p Process) Command() string {
	text := procCommand(p.PID)
	if !p.Alive() {
		return ""
	}
	return text
}
