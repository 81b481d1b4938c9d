package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// A Lineage is a process's ancestors: the processes that may become the parents of what
// its descendants leave behind. The zero Lineage is unknown.
type Lineage struct {
	Ancestors []Process `json:"ancestors,omitempty"` // the parent first
	Space     string    `json:"pid_ns,omitempty"`    // the process namespace of the numbers
	Cgroup    string    `json:"cgroup,omitempty"`    // which descendants keep, unless something privileged moves them
}

// OwnLineage returns this process's lineage; it is zero if the system does not report
// it.
func OwnLineage() Lineage {
	space, err := procSpace()
	if err != nil {
		return Lineage{}
	}
	for range 3 { // a parent that ends meanwhile leaves a gap
		if list, err := Ancestors(os.Getpid()); err == nil {
			return Lineage{list, space, Self().Cgroup()}
		}
	}
	return Lineage{}
}

// Ancestors returns the processes above one, its parent first.
func Ancestors(pid int) (list []Process, err error) {
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

// ErrUntold is returned if it is unknown what has survived a process.
var ErrUntold = errors.New("cannot tell what has survived")

// A Descent is a process that has died, with its lineage.
type Descent struct {
	First Process
	Lineage
}

// Survivors lists, for each of the descents, the processes that may descend from its
// first one. An empty list means that nothing that the first one or anything below it
// ever started is still running, wherever it had gone. known are processes that descend
// from none of them. The error matches ErrUntold if this process can't see all
// processes.
//
// Why an empty list is a proof (Linux): a process whose parent dies gets as its next
// parent the nearest living ancestor that adopts orphans (a subreaper), or else process
// 1 of its namespace. So of the survivors of a dead process, the topmost ones have one
// of that process's own ancestors as their parent, or process 1. They can't be older
// than the dead process, and neither a new session, a double fork, another user nor an
// emptied environment changes their birth or their parent. The ancestors were recorded
// while the process lived; later they can only become fewer, as each one's death leaves
// its children to a further one. The kernel does not report which of them adopt
// orphans, so each counts as one that does, and so does process 1: what one of them has
// started itself since then, as process 1 does with services, is listed too. What a
// service does on request (cron, systemd-run, a container) never descended from the
// process that asked.
func Survivors(list []Descent, known ...Process) ([][]Process, error) {
	space, err := procSpace()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntold, err)
	}
	for _, d := range list {
		if !d.First.Named() || d.Space == "" || d.Space != space {
			return nil, fmt.Errorf("process %d: its ancestors are unknown here: %w", d.First.PID, ErrUntold)
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
// except known and those below them. It is for the cases in which Survivors returns
// ErrUntold.
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
		// The clock may have been set by some seconds since: better too many.
		if uid, ok := procUser(e.pid); ok && uid == os.Getuid() && !began.Before(t.Add(-5*time.Second)) {
			list = append(list, Process{PID: e.pid, Start: e.start})
		}
	}
	return list, nil
}

// Began returns when the process was started, according to the system's clock.
func (p Process) Began() (time.Time, error) { return procBegan(p.Start) }

// Command returns the process's command line, or its name if the system reports no
// more; "" if it is gone.
func (p Process) Command() string {
	text := procCommand(p.PID)
	if !p.Alive() {
		return ""
	}
	return text
}
