package spawn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"netsky/agent"
)

// A Remnant is something of this home that still runs.
type Remnant struct {
	What  string   // "tmux session agent1", "process 4711 of agent1"
	Agent agent.ID // "" for what belongs to none: the ticker, the hub
	PID   int
}

// Remnants lists the sessions of this home and the processes that any start on
// file left behind. An empty list proves that nothing of it runs, as far as the
// system tells environments (macOS does not).
func (l *Launcher) Remnants(ctx context.Context, keep ...int) ([]Remnant, error) {
	var list []Remnant
	panes, err := l.Tmux.Panes(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range panes {
		if p.Tags[TagHome] == l.Home.Dir() {
			id, _ := agent.Parse(p.Session) // "" for the ticker
			list = append(list, Remnant{What: "tmux session " + p.Session, Agent: id, PID: p.PID})
		}
	}
	ids, err := l.Bus.Mailboxes()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return list, err
	}
	for _, id := range ids {
		la, err := l.Home.LoadLaunch(id)
		if err != nil {
			continue // never started
		}
		procs, err := agent.Descendants(0, mark(la.Start), keep...)
		if err != nil {
			return list, err
		}
		for _, p := range procs {
			list = append(list, Remnant{What: fmt.Sprintf("process %d of %s", p.PID, id), Agent: id, PID: p.PID})
		}
	}
	return list, nil
}
