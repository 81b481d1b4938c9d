package proc

import (
	"context"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killed is how long a process may take to vanish after SIGKILL before it
// counts as one that survives (sleeping in the kernel).
const killed = 2 * time.Second

// End ends the listed processes: SIGTERM (and SIGCONT, for those that are stopped) to
// all that are alive, and SIGKILL to those still alive after grace. It returns nothing
// when all are dead, else those still alive 2 s after SIGKILL or that could not be
// signalled. A process is signalled only if its number still means the one that was
// listed, on Linux through a pidfd, which no other process can take over; init and this
// process are never signalled. They are signalled in the order of the list: with
// parents first, as Descendants lists them, a parent has less opportunity to start
// another child. Processes started after the list was made are not on it: list again.
// When ctx ends, nothing more is signalled and those still alive are returned.
func End(ctx context.Context, list []Process, grace time.Duration) (left []Process) {
	w, err := NewWatcher()
	if err != nil {
		return living(list)
	}
	defer w.Close()
	open := make(map[string]bool)
	for i, p := range list {
		key := strconv.Itoa(i)
		if p.PID > 1 && p.PID != os.Getpid() && w.Add(key, p) == nil {
			open[key] = true
		}
	}
	signal := func(all ...unix.Signal) {
		for i := range list {
			for _, sig := range all {
				w.signal(strconv.Itoa(i), sig)
			}
		}
	}
	if ctx.Err() == nil {
		signal(unix.SIGTERM, unix.SIGCONT)
		await(ctx, w, open, grace)
	}
	if ctx.Err() == nil && len(open) > 0 {
		signal(unix.SIGKILL)
		await(ctx, w, open, killed)
	}
	return living(list)
}

// await receives deaths until open is empty or the time is over.
func await(ctx context.Context, w *Watcher, open map[string]bool, limit time.Duration) {
	over := time.NewTimer(limit)
	defer over.Stop()
	for len(open) > 0 {
		select {
		case d, ok := <-w.Deaths():
			if !ok {
				return
			}
			delete(open, d.Key)
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func living(list []Process) (alive []Process) {
	for _, p := range list {
		if p.Alive() {
			alive = append(alive, p)
		}
	}
	return alive
}
