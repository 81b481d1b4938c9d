package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/store"
)

const (
	pointerEvery = time.Second
	listAnyway   = 10 * time.Minute // each file is replaced, never written over
)

// pointer tells agents of their mail whose programs know nothing of netsky, by a
// line in their panes. While nothing comes it costs a few stats a second for each.
func (d *daemon) pointer(ctx context.Context) error {
	p := pointer{d: d, last: make(map[agent.ID]pointed), launches: launches{home: d.o.Home}}
	tick := time.NewTicker(pointerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			p.pass(ctx)
		}
	}
}

type pointer struct {
	d        *daemon
	launches launches
	last     map[agent.ID]pointed
}

// pointed is when an agent was last seen to, and what its mailbox was like then.
type pointed struct {
	start string
	again time.Time
	mail  [2]time.Time
	err   string // told once
}

func (p *pointer) pass(ctx context.Context) {
	list, err := p.launches.list()
	if err != nil {
		p.d.o.Log.Warn("pointer", "error", err)
		return
	}
	for _, la := range list {
		if !la.Silent || ctx.Err() != nil {
			continue
		}
		mail, was := p.mail(la.Agent), p.last[la.Agent]
		if was.start == la.Start && was.mail == mail && time.Now().Before(was.again) {
			continue
		}
		p.point(ctx, la, mail, was)
	}
}

func (p *pointer) point(ctx context.Context, la agent.Launch, mail [2]time.Time, was pointed) {
	r, err := p.d.o.Launcher.Point(ctx, la.Agent)
	now := pointed{start: la.Start, again: time.Now().Add(r.Again), mail: mail}
	log := p.d.o.Log.With("agent", la.Agent)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil:
		if now.err = err.Error(); now.err != was.err {
			log.Warn("point", "error", err)
		}
	case r.Told > 0:
		log.Info("point", "messages", r.Told)
		p.d.record(ctx, store.AddLog{
			Part: "daemon", Actor: la.Agent, About: la.Start, Text: fmt.Sprintf("told of %d waiting by a line in its pane", r.Told),
		})
	case r.New:
		log.Info("not pointed", "why", r.Held)
	}
	p.last[la.Agent] = now
}

// mail are the times at which the mailbox changed.
func (p *pointer) mail(id agent.ID) (at [2]time.Time) {
	for i, place := range []bus.Place{bus.Inbox, bus.Claimed} {
		if info, err := os.Stat(p.d.o.Home.Path(home.Mailbox(id), string(place))); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

// launches are the launch files of all agents, read again when one has changed.
type launches struct {
	home home.Dir
	at   time.Time // when read
	dir  time.Time // when the directory had changed, by then
	all  []agent.Launch
}

func (l *launches) list() ([]agent.Launch, error) {
	info, err := os.Stat(l.home.Path(home.LaunchDir))
	if err != nil {
		return nil, err
	}
	// A change within the clock's step would show the same time.
	if info.ModTime().Equal(l.dir) && l.at.Sub(l.dir) > time.Second && time.Since(l.at) < listAnyway {
		return l.all, nil
	}
	l.at, l.dir, l.all = time.Now(), info.ModTime(), nil
	files, err := os.ReadDir(l.home.Path(home.LaunchDir))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".json")
		id, err := agent.Parse(name)
		if !ok || err != nil || !id.IsAgent() {
			continue
		}
		la, err := l.home.LoadLaunch(id)
		if err != nil {
			continue // status says so
		}
		la.Env, la.Argv = nil, nil // long, and maybe secret
		l.all = append(l.all, la)
	}
	return l.all, nil
}
