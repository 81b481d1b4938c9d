package watch

import (
	"context"
	"time"

	"netsky/home"
	"netsky/spawn"
)

// A roster is the state of all agents, shared by all readers. It inspects them again when
// a file that it depends on has changed, for browsers also when mail has arrived or left,
// and when its last look is old.
type roster struct {
	home home.Dir
	turn chan struct{} // room for one: whoever puts its token in owns what follows

	agents *spawn.Inspector
	known  look
	asked  time.Time       // when next last compared files
	hints  <-chan struct{} // of mail; nil: no hints
	mail   uint64          // hints so far
}

// A look is one inspection.
type look struct {
	seq  uint64 // counts them, from 1
	list spawn.Statuses
	err  error
	at   time.Time // when it began
	cost time.Duration
	dirs [len(dirs)]home.Mark
	mail uint64 // hints by then
}

// dirs are the directories in which a change of an agent's state shows: each file in them
// is replaced, never overwritten.
var dirs = [...]string{home.ReportDir, home.KeeperDir, home.LaunchDir, home.DesiredDir, home.Channels}

const (
	recentAge   = time.Second // maximum age of what a browser is shown
	recentShare = 25          // a look for one may take 1/25 of the time
	calmShare   = 100         // the same while no file changes
)

func newRoster(l *spawn.Launcher) *roster {
	return &roster{home: l.Home, agents: l.NewInspector(), turn: make(chan struct{}, 1)}
}

func (r *roster) take(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *roster) give() { <-r.turn }

// heed makes the roster listen to hints of mail; nil: to none.
func (r *roster) heed(hints <-chan struct{}) {
	r.turn <- struct{}{}
	defer r.give()
	r.hints = hints
}

// listen counts a hint of mail, if there is one. The caller has the turn.
func (r *roster) listen() {
	select {
	case <-r.hints:
		r.mail++
	default:
	}
}

// changed reads the marks to compare with the last look, and compares them. The caller has
// the turn.
func (r *roster) changed() (now look, changed bool) {
	r.listen()
	now = look{seq: r.known.seq + 1, at: time.Now(), mail: r.mail}
	for i, rel := range dirs {
		now.dirs[i] = r.home.Mark(rel)
		changed = changed || !r.known.dirs[i].Same(now.dirs[i])
	}
	return now, changed
}

// inspect inspects the agents. The caller has the turn.
func (r *roster) inspect(ctx context.Context, now look) (look, error) {
	now.list, now.err = r.agents.Inspect(ctx)
	if ctx.Err() != nil {
		return look{}, ctx.Err()
	}
	now.cost = time.Since(now.at)
	r.known = now
	return now, nil
}

// recent returns what a browser is shown.
func (r *roster) recent(ctx context.Context) (spawn.Statuses, error) {
	if err := r.take(ctx); err != nil {
		return nil, err
	}
	defer r.give()
	now, changed := r.changed()
	changed = changed || now.mail != r.known.mail
	age := now.at.Sub(r.known.at)
	switch cost := r.known.cost; {
	case age < min(cost*recentShare, recentAge), !changed && age < min(max(cost*calmShare, recentAge), 2*recentAge):
		return r.known.list, r.known.err
	}
	now, err := r.inspect(ctx, now)
	if err != nil {
		return nil, err
	}
	return now.list, now.err
}

// latest returns the last look.
func (r *roster) latest(ctx context.Context) (look, error) {
	if err := r.take(ctx); err != nil {
		return look{}, err
	}
	defer r.give()
	return r.known, r.known.err
}

// next returns the look after last, or last itself if nothing can have changed. If urgent,
// it is one that began after the call.
func (r *roster) next(ctx context.Context, last look, urgent bool) (look, error) {
	since := time.Now()
	if err := r.take(ctx); err != nil {
		return last, err
	}
	defer r.give()
	switch {
	case urgent && r.known.at.After(since), !urgent && r.known.seq != last.seq:
		return r.known, nil
	}
	if !urgent && since.Sub(r.asked) < lookEvery-tickEvery/2 {
		return last, nil
	}
	r.asked = since
	now, changed := r.changed()
	switch age := now.at.Sub(r.known.at); {
	case urgent, r.known.err != nil && age >= lookAgain, r.known.err == nil && changed && age >= lookEvery, age >= lookAnyway:
		return r.inspect(ctx, now)
	}
	return last, nil
}

// since returns a look that began after that time.
func (r *roster) since(ctx context.Context, at time.Time) (look, error) {
	if err := r.take(ctx); err != nil {
		return look{}, err
	}
	defer r.give()
	if r.known.at.After(at) {
		return r.known, nil
	}
	now, _ := r.changed()
	return r.inspect(ctx, now)
}

// hinted returns the number of hints of mail so far.
func (r *roster) hinted(ctx context.Context) (uint64, error) {
	if err := r.take(ctx); err != nil {
		return 0, err
	}
	defer r.give()
	r.listen()
	return r.mail, nil
}
