package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/home"
	"netsky/internal/words"
)

// mostFiles is how many files one pass removes.
const mostFiles = 1000

// tempFor is how long a file may be unfinished.
const tempFor = 24 * time.Hour

// aside matches what netsky set aside because it could not read it, rotated logs, and those of checks.
var aside = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(state/(owed|codex|demo|claude)/[^/]+\.bad(-[0-9]+)?|` + home.SpoolDir + `/[^/]+\.(bad|why)|` +
		home.LogDir + `/(daemon\.log\.1|netsky-[^/]+\.jsonl|(check|setup)-[^/]+\.log))$`)
})

// ofAgent matches what only a running agent, or one that owes something, needs.
var ofAgent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(` + home.EventsDir + `/([a-z0-9]+)\.jsonl(\.1)?|state/(screens|dialogs|watchdog/restarts|watchdog/hangs)/([a-z0-9]+)\.json)$`)
})

// files removes state files that nothing uses any more: what was set aside or left
// unfinished, and what describes the last start of an agent that has long been down. What
// continues its conversation stays.
func (p *pass) files(ctx context.Context) error {
	list, err := p.unused(ctx)
	if len(list) == 0 || ctx.Err() != nil {
		return err
	}
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.Rel
	}
	const most = 10
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	// On record first: a crash leaves files that the next pass removes.
	if rerr := p.record(ctx, "files", fmt.Sprintf("removed state files that nothing has used for %s: %s", words.Span(p.Bounds.keep()), text)); rerr != nil {
		return errors.Join(err, rerr)
	}
	for _, f := range list {
		now, serr := home.Stat(p.Home, f.Rel)
		if serr != nil || !now.Mode.IsRegular() || !now.Changed.Equal(f.Changed) {
			continue // it was written meanwhile
		}
		if rerr := p.Home.Remove(f.Rel); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		p.removed.Files++
	}
	return err
}

// unused lists the files that can be removed.
func (p *pass) unused(ctx context.Context) (list []home.Item, err error) {
	ended := make(map[agent.ID]bool)
	err = home.Walk(ctx, p.Home, func(i home.Item) {
		if len(list) >= mostFiles || i.Box || !i.Own() || !i.Mode.IsRegular() {
			return
		}
		age := p.now.Sub(i.Changed)
		switch {
		case i.Temporary():
			if age > tempFor {
				list = append(list, i)
			}
		case age <= p.Bounds.keep():
		case aside().MatchString(i.Rel):
			list = append(list, i)
		case ofAgent().MatchString(i.Rel):
			name, _, _ := strings.Cut(path.Base(i.Rel), ".")
			id := agent.ID(name)
			if _, known := ended[id]; !known {
				ended[id] = p.ended(id)
			}
			if ended[id] {
				list = append(list, i)
			}
		}
	})
	if ctx.Err() != nil {
		return nil, nil
	}
	return list, err
}

// ended reports whether an agent has been down for long and owes nothing, as far as can be
// proved.
func (p *pass) ended(id agent.ID) bool {
	if _, err := agent.ParseAgent(string(id)); err != nil {
		return false
	}
	old := p.now.Add(-p.Bounds.keep()).UnixMilli()
	want, err := home.Desired(p.Home).Load(string(id))
	if err != nil || want.Up || want.AtMS >= old {
		return false
	}
	k, err := p.Home.LoadKeeper(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && (k.EndedMS == 0 || k.EndedMS >= old || k.Alive()) {
		return false
	}
	if owed := courier.ReadLedger(p.Home, id); owed.Err != nil || len(owed.Messages) > 0 {
		return false
	}
	for _, at := range bus.Pending() {
		names, err := os.ReadDir(p.Home.Path(home.Mailbox(id), string(at)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(names) > 0 {
			return false
		}
	}
	return true
}

// shown shortens the list of the owner's mail that was shown.
func (p *pass) shown(context.Context) error {
	there := make(map[string]bool)
	b := p.bus(p.Bounds.Mail)
	for _, at := range bus.Arrived() {
		names, err := b.Names(agent.Owner, at)
		if errors.Is(err, bus.ErrNoMailbox) {
			return nil // it may be away for now
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			there[name] = true
		}
	}
	_, err := home.ShownMail(p.Home).Forget(func(name string) bool { return !there[name] })
	return err
}
