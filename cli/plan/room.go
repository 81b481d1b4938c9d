package plan

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"netsky/spawn"
)

// weights are roughly what one agent takes, by its runtime: processes, and memory in
// MB. A command of the owner's takes these of netsky's own, and what it takes itself.
var weights = map[string]struct{ processes, memory int }{
	"demo":   {2, 5},
	"claude": {3, 250},
	"codex":  {4, 350},
}

// A Cost is what the start of many agents takes.
type Cost struct {
	Agents, Clones    int
	processes, memory int
	about             string
}

// CostOf adds up what the planned agents take.
func CostOf(plans []spawn.Plan) Cost {
	c := Cost{Agents: len(plans), about: "about"}
	for _, p := range plans {
		if p.Agent.IsClone() {
			c.Clones++
		}
		w, ok := weights[p.Runtime.Name()]
		if !ok {
			w, c.about = weights["demo"], "at least"
		}
		c.processes, c.memory = c.processes+w.processes, c.memory+w.memory
	}
	return c
}

// Fits is an error if this machine has no room for them; else it is what they take and
// what is there, in words.
func (c Cost) Fits() (string, error) {
	room := roomNow()
	if room.processes > 0 && c.processes > room.processes {
		return "", &UsageError{fmt.Errorf("up: %d agents take about %d processes, and you may have %d (ulimit -u): start fewer", c.Agents, c.processes, room.processes)}
	}
	if room.ptys >= 0 && c.Agents > room.ptys {
		return "", &UsageError{fmt.Errorf("up: %d agents take a terminal each, and %d are left on this machine: start fewer", c.Agents, room.ptys)}
	}
	words := fmt.Sprintf("%d agents take %s %d processes and %d MB of memory", c.Agents, c.about, c.processes, c.memory)
	if room.memory > 0 {
		words += fmt.Sprintf("; %d MB are free", room.memory)
	}
	return words, nil
}

// A room is what the machine has left; what is not known is below 1, of ptys below 0.
type room struct{ processes, ptys, memory int }

// roomNow leaves out the processes that the user has now: the limit counts threads
// too on some systems, so that no sum is right.
func roomNow() room {
	r := room{ptys: ptysLeft(), memory: memoryLeft()}
	var limit unix.Rlimit
	if os.Geteuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &limit) == nil && limit.Cur < 1<<31 {
		r.processes = int(limit.Cur)
	}
	return r
}
