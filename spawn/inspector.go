package spawn

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/home"
)

// An Inspector inspects the agents repeatedly and reads only files that have changed. It
// is for one goroutine at a time.
type Inspector struct {
	l     *Site
	known map[agent.ID]*knownFiles
	since time.Time // when known was started
}

// knowFor is how long an unchanged directory is taken as proof that its files have not
// changed: on a full disk a keeper's record is overwritten in place.
const knowFor = 30 * time.Second

// Inspect is [Launcher.Inspect].
func (i *Inspector) Inspect(ctx context.Context) (Statuses, error) {
	if time.Since(i.since) > knowFor {
		i.since, i.known = time.Now(), make(map[agent.ID]*knownFiles)
	}
	dirs := dirMarks{
		desired: i.l.Home.Mark(home.DesiredDir), launch: i.l.Home.Mark(home.LaunchDir),
		keeper: i.l.Home.Mark(home.KeeperDir), report: i.l.Home.Mark(home.ReportDir),
	}
	v, err := i.l.view(ctx)
	return i.l.inspectBy(v, err, func(id agent.ID) files {
		known := i.known[id]
		if known == nil {
			known = &knownFiles{}
			i.known[id] = known
		}
		return files{i.l, id, dirs, known}
	})
}

// files reads the files of one agent for a verdict.
type files struct {
	l     *Site
	id    agent.ID
	dirs  dirMarks    // taken before anything was read
	known *knownFiles // nil: everything is read
}

type dirMarks struct{ desired, launch, keeper, report home.Mark }

// knownFiles is what was read of one agent.
type knownFiles struct {
	desired known[agent.Desired]
	launch  known[agent.Launch]
	keeper  known[agent.Keeper]
	report  known[agent.Report]
	counts  [4]known[int]
}

// known is the content of a file, or its absence, as of the marks of its directory and
// itself.
type known[T any] struct {
	read      bool
	dir, file home.Mark
	value     T
	err       error
}

// get reads a file again if it may have changed. An error other than a missing file may
// pass, so it is not remembered.
func get[T any](k *known[T], dir home.Mark, file func() home.Mark, read func() (T, error)) (T, error) {
	if k.read && k.dir.Same(dir) {
		return k.value, k.err
	}
	now := file()
	if !k.read || !k.file.Same(now) {
		k.value, k.err = read()
		k.file = now
		k.read = k.err == nil || errors.Is(k.err, fs.ErrNotExist) || errors.Is(k.err, bus.ErrNoMailbox)
	}
	k.dir = dir
	return k.value, k.err
}

func (f files) desired() (agent.Desired, error) {
	h := f.l.Home
	if f.known == nil {
		return home.Desired(h).Load(string(f.id))
	}
	return get(&f.known.desired, f.dirs.desired, func() home.Mark { return h.Mark(home.DesiredDir, string(f.id)) },
		func() (agent.Desired, error) { return home.Desired(h).Load(string(f.id)) })
}

func (f files) mark(dir string) func() home.Mark {
	return func() home.Mark { return f.l.Home.Mark(dir, string(f.id)+".json") }
}

func (f files) launch() (agent.Launch, error) {
	if f.known == nil {
		return f.l.Home.LoadLaunch(f.id)
	}
	return get(&f.known.launch, f.dirs.launch, f.mark(home.LaunchDir), func() (agent.Launch, error) {
		la, err := f.l.Home.LoadLaunch(f.id)
		la.Env, la.Argv = nil, nil // long, and maybe secret
		return la, err
	})
}

func (f files) keeper() (agent.Keeper, error) {
	if f.known == nil {
		return f.l.Home.LoadKeeper(f.id)
	}
	return get(&f.known.keeper, f.dirs.keeper, f.mark(home.KeeperDir), func() (agent.Keeper, error) { return f.l.Home.LoadKeeper(f.id) })
}

func (f files) report() (agent.Report, error) {
	if f.known == nil {
		return f.l.Home.LoadReport(f.id)
	}
	return get(&f.known.report, f.dirs.report, f.mark(home.ReportDir), func() (agent.Report, error) { return f.l.Home.LoadReport(f.id) })
}

// count counts the envelopes in the i-th of the places.
func (f files) count(i int, at bus.Place) (int, error) {
	if f.known == nil {
		return f.l.Bus.Count(f.id, at)
	}
	dir := f.l.Home.Mark(home.Mailbox(f.id), string(at))
	return get(&f.known.counts[i], dir, func() home.Mark { return dir }, func() (int, error) { return f.l.Bus.Count(f.id, at) })
}

// countAll counts the envelopes of the agent's mailbox; -1 if they can't be counted.
func (f files) countAll(st *Status) {
	for i, c := range []struct {
		place bus.Place
		to    *int
	}{{bus.Inbox, &st.Inbox}, {bus.Claimed, &st.Claimed}, {bus.Outbox, &st.Outbox}, {bus.Poison, &st.Poison}} {
		n, err := f.count(i, c.place)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, bus.ErrNoMailbox):
		case err != nil:
			*c.to = -1
		default:
			*c.to = n
		}
	}
}
