package cli

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/spawn"
)

// maxUnasked is how many clones an up starts without asking.
const maxUnasked = 50

// weights are roughly what one agent takes, by its runtime: processes, and memory in
// MB. A command of the owner's takes these of netsky's own, and what it takes itself.
var weights = map[string]struct{ processes, memory int }{
	"demo":   {2, 5},
	"claude": {3, 250},
	"codex":  {4, 350},
}

// agreeToMany makes sure that somebody wants so many agents: on the terminal, or by
// --yes. More than this machine has room for are refused in any case.
func (a *app) agreeToMany(plans []spawn.Plan, yes bool) error {
	clones, processes, memory := 0, 0, 0
	about := "about"
	for _, p := range plans {
		if p.Agent.IsClone() {
			clones++
		}
		w, ok := weights[p.Runtime.Name()]
		if !ok {
			w, about = weights["demo"], "at least"
		}
		processes, memory = processes+w.processes, memory+w.memory
	}
	if clones <= maxUnasked {
		return nil
	}
	room := roomNow()
	if room.processes > 0 && processes > room.processes {
		return usagef("up: %d agents take about %d processes, and you may have %d (ulimit -u): start fewer", len(plans), processes, room.processes)
	}
	if room.ptys >= 0 && len(plans) > room.ptys {
		return usagef("up: %d agents take a terminal each, and %d are left on this machine: start fewer", len(plans), room.ptys)
	}
	cost := fmt.Sprintf("%d agents take %s %d processes and %d MB of memory", len(plans), about, processes, memory)
	if room.memory > 0 {
		cost += fmt.Sprintf("; %d MB are free", room.memory)
	}
	if yes {
		return nil
	}
	_, in := terminal(a.in)
	_, out := terminal(a.err)
	if !in || !out {
		return usagef("up: %s: more than %d clones need --yes", cost, maxUnasked)
	}
	fmt.Fprintf(a.err, "%s.\nStart them? [y/N] ", cost)
	answer, err := readLine(a.in)
	if err != nil && answer == "" {
		return usagef("up: nothing was chosen: nothing started")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return usagef("up: not confirmed: nothing started")
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
