package plan

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"netsky/spawn"
)

// weights are roughly what one agent needs, by runtime: processes, and memory in MB. A
// command of the owner's needs as much as demo for netsky, plus what it needs itself.
var weights = map[string]struct{ processes, memory int }{
	"demo":   {2, 5},
	"claude": {3, 250},
	"codex":  {4, 350},
}

// A Cost is what the start of many agents needs.
type Cost struct {
	Agents, Clones    int
	processes, memory int
	about             string
}

// CostOf adds up what the planned agents need.
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

// Fits returns, in words, what the agents need and what is available, or an error if
// there is no room for them.
func (c Cost) Fits(room Room) (string, error) {
	if room.Processes > 0 && c.processes > room.Processes {
		return "", &UsageError{Err: fmt.Errorf("up: %d agents need about %d processes, and you may have %d (ulimit -u); start fewer", c.Agents, c.processes, room.Processes)}
	}
	if room.PTYs >= 0 && c.Agents > room.PTYs {
		return "", &UsageError{Err: fmt.Errorf("up: %d agents need a terminal each, and %d are left on this machine; start fewer", c.Agents, room.PTYs)}
	}
	words := fmt.Sprintf("%d agents need %s %d processes and %d MB of memory", c.Agents, c.about, c.processes, c.memory)
	if room.Memory > 0 {
		words += fmt.Sprintf("; %d MB are free", room.Memory)
	}
	return words, nil
}

// A Room is what the machine has left. Unknown values are 0, for PTYs -1.
type Room struct{ Processes, PTYs, Memory int }

// RoomNow ignores the user's current processes: on some systems the limit also counts
// threads, so no sum would be right.
func RoomNow() Room {
	r := Room{PTYs: ptysLeft(), Memory: memoryLeft()}
	var limit unix.Rlimit
	if os.Geteuid() != 0 && unix.Getrlimit(unix.RLIMIT_NPROC, &limit) == nil && limit.Cur < 1<<31 {
		r.Processes = int(limit.Cur)
	}
	return r
}
