package land

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// journalFile is there while a ref is being moved.
const journalFile = "state/landing.json"

// What a ref is moved for.
const (
	toLand   = "land"
	toUndo   = "undo"
	toFollow = "follow" // an agent's branch follows what it landed on
)

// An entry is what journalFile says: what is being moved, and what is on record of it if it does.
type entry struct {
	For     string         `json:"for"`
	Move    move           `json:"move"`
	Landing record.Landing `json:"landing"`
	// Idle says that no file was written yet: what differs is the owner's.
	Idle bool `json:"idle,omitempty"`
}

// A journal is what a Desk writes down of a move, under the lock for landings.
type journal struct {
	Desk
	lock *home.Lock
}

// carry moves a ref, on record before and after. An error says that nothing has moved, or that what
// has cannot be told yet.
func (d journal) carry(ctx context.Context, e entry) error {
	ctx = context.WithoutCancel(ctx) // what has begun is finished
	for _, name := range []string{e.Move.Ref, e.Move.Dir} {
		if !utf8.ValidString(name) { // the journal is JSON, and would name another
			return refusef("nothing was moved: %q is not UTF-8, so a crash could not be recovered from", name)
		}
	}
	save := func(idle bool) error {
		e.Idle = idle
		if err := d.Home.Save(journalFile, e, true); err != nil {
			return fmt.Errorf("nothing was moved: %w", err)
		}
		return nil
	}
	if err := save(true); err != nil {
		return err
	}
	d.step("journal")
	if e.For == toLand {
		d.record(ctx, record.SetLanding(e.Landing))
	}
	d.step("begun")
	err := e.Move.run(ctx, d.step, func() error { return save(false) }, d.lock.File())
	if err == nil {
		d.finish(ctx, e)
	} else {
		now, rerr := commitOf(ctx, e.Move.Repo, e.Move.Ref)
		if half := (halfway{}); errors.As(err, &half) || rerr != nil || now == e.Move.To {
			return errors.Join(err, rerr) // the next verb looks again
		}
		d.void(ctx, e, err)
	}
	if rerr := d.Home.Remove(journalFile); rerr != nil {
		d.say("%v", rerr)
	}
	d.step("done")
	return err
}

// finish records that the ref has moved.
func (d journal) finish(ctx context.Context, e entry) {
	l := e.Landing
	switch e.For {
	case toLand:
		l.State = record.Landed
	case toUndo:
		l.State, l.Undo = record.Undone, e.Move.To
	default:
		if err := tree.Moved(d.Home, l.Agent, e.Move.To); err != nil {
			d.say("%v", err)
		}
		return
	}
	d.record(ctx, record.SetLanding(l), logged(l))
	d.step("recorded")
}

// logged is what `netsky log` says of a landing. Its key is that of the landing's state, so that one
// that is settled twice is logged once.
func logged(l record.Landing) store.AddLog {
	entry := store.AddLog{Key: "landing-" + l.ID + "-" + l.State, Part: "land", Actor: l.Agent, About: l.ID, Fields: map[string]any{"by": l.Asker}}
	switch l.State {
	case record.Undone:
		entry.Text = fmt.Sprintf("what landed on %s was undone; it is at %s", git.Branch(l.Target), short(l.Undo))
		if l.Reversed() {
			entry.Text = fmt.Sprintf("what landed on %s was undone by %s", git.Branch(l.Target), short(l.Undo))
		}
		return entry
	case record.Pushed:
		entry.Text = fmt.Sprintf("pushed %s for %s", short(l.Head), git.Branch(l.Target))
		if l.URL != "" {
			entry.Text += ": " + l.URL
		}
	default:
		entry.Text = fmt.Sprintf("landed on %s, %s to %s, by %s", git.Branch(l.Target), short(l.Before), short(l.After), l.How)
	}
	if l.Evidence == "" {
		entry.Text += ", unchecked"
	}
	return entry
}

// void records that a landing or an undo has not taken place.
func (d journal) void(ctx context.Context, e entry, why error) {
	if e.For == toLand {
		l := e.Landing
		l.State, l.After, l.Reason = record.Void, "", why.Error()
		d.record(ctx, record.SetLanding(l))
	}
}

// CutOff returns the landing that a netsky was carrying out, or undoing, when it was killed, until somebody
// has settled it.
func CutOff(h home.Dir) (l record.Landing, ok bool) {
	e, err := home.Load[entry](h, journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false
	}
	_, held := h.LockHolder(home.LandingLock)
	return e.Landing, !held
}

// Unsettled is an error while the home alone knows of a landing what was being moved, and where.
func Unsettled(h home.Dir) error {
	switch e, err := home.Load[entry](h, journalFile); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%s: a landing on %s was cut off, and is not settled", h.Path(journalFile), git.Branch(e.Move.Ref))
	}
}

// pushes ends the records of pushes that were cut off. None is under way, as the lock is held.
func (d journal) pushes(ctx context.Context) error {
	return d.records(ctx, func(r record.Records) error {
		list, err := r.Landings(ctx, record.Filter{State: record.Begun, Limit: 1000})
		for _, l := range list {
			if l.How == Push {
				l.State, l.Reason = record.Void, "netsky was killed while it pushed; the remote may have the branch"
				d.record(ctx, record.SetLanding(l))
			}
		}
		return err
	})
}

// recover settles the entry that is in the journal. No git that was started to move the ref still
// runs, as it would hold the lock.
func (d journal) recover(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	e, err := home.Load[entry](d.Home, journalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m := e.Move
	if _, err := os.Stat(m.Repo); errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("a landing was cut off, and its repository %s is not there", m.Repo),
			"bring it back; if it is gone for good, remove %s", d.Home.Path(journalFile))
	}
	now, err := commitOf(ctx, m.Repo, m.Ref)
	if err != nil {
		return fmt.Errorf("a landing was cut off, and what became of it cannot be told yet: %w", err)
	}
	moved := now == m.To || now != m.From && m.beyond(ctx, now)
	if !moved && now == m.From && m.Dir != "" && !e.Idle {
		if moved, err = m.mend(ctx, d.lock.File()); err != nil {
			return fmt.Errorf("a landing was cut off: %w", err)
		}
	}
	if moved {
		d.finish(ctx, e)
	} else {
		d.void(ctx, e, errors.New("netsky was killed before it moved "+git.Branch(m.Ref)))
	}
	d.say("%s: a move of %s from %s to %s was cut off by a crash: %s", e.Landing.ID, git.Branch(m.Ref), short(m.From), short(m.To),
		map[bool]string{true: "it was done", false: "it was not done"}[moved])
	return d.Home.Remove(journalFile)
}

// beyond reports whether a commit that the ref is at now is built on the one it was to be moved to. A move
// back to an earlier commit can't be told by that.
func (m move) beyond(ctx context.Context, now string) bool {
	return ancestor(ctx, m.Repo, m.From, m.To) && ancestor(ctx, m.Repo, m.To, now)
}

// mend looks at the worktree of a ref that has not moved. If its files are the new commit's, the ref is
// moved as well. If some are, which a git leaves that was killed, they are written back; that is
// refused if one is neither the old commit's nor the new one's.
func (m move) mend(ctx context.Context, lock *os.File) (moved bool, err error) {
	if _, err := os.Stat(m.Dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	r, err := m.tree()
	if err != nil {
		return false, err
	}
	d := r.Look()
	at, err := d.First(ctx, "symbolic-ref", "--quiet", "HEAD")
	if ge := new(git.Error); err != nil && !(errors.As(err, &ge) && ge.Status == 1) { // 1: no branch is checked out
		return false, err
	}
	if at != m.Ref {
		return false, nil // the owner has left it
	}
	if _, err := d.List(ctx, "diff-tree", "-r", "-z", m.From, m.To); errors.As(err, new(*git.Error)) {
		return false, nil // the new commit is gone; what there is of its files, git shows as changes
	}
	index := filepath.Join(r.Git, "index")
	if _, err := os.Lstat(index + ".lock"); err == nil {
		return false, fmt.Errorf("%s: either another git runs there, or one was killed and left %s.lock: remove it then", m.Dir, index)
	}
	switch to, err := m.indexAt(ctx, m.To); {
	case err != nil:
		return false, err
	case to:
		return true, m.ref(ctx, []*os.File{lock})
	}
	if from, err := m.indexAt(ctx, m.From); err != nil || !from {
		return false, err // the owner has gone on
	}
	return false, m.restore(ctx)
}

// indexAt reports whether the index holds a commit's tree.
func (m move) indexAt(ctx context.Context, commit string) (bool, error) {
	r, err := m.tree()
	if err != nil {
		return false, err
	}
	_, err = r.Look().Run(ctx, 256, "diff-index", "--cached", "--quiet", commit)
	if ge := new(git.Error); errors.As(err, &ge) && ge.Status == 1 {
		return false, nil
	}
	return err == nil, err
}

// restore writes back the old commit's files where the new one's are. If none is, git has written
// nothing, and what differs is the owner's.
func (m move) restore(ctx context.Context) error {
	r, err := m.tree()
	if err != nil {
		return err
	}
	old, err := m.changes(ctx)
	if err != nil {
		return err
	}
	var back, odd []string
	for _, c := range old {
		switch is, err := c.state(ctx, r.Look()); {
		case err != nil:
			return err
		case is == isNew:
			back = append(back, c.name)
		case is == isOther:
			odd = append(odd, c.name)
		}
	}
	if len(back) > 0 && len(odd) > 0 {
		return fmt.Errorf("%w; they are neither as they were nor as they would be", dirty(m.Ref, m.Dir, false, odd))
	}
	d := r.Act(moveTime)
	for _, fresh := range []bool{true, false} { // first what makes room
		for _, c := range old {
			if fresh != (c.was == "") || !slices.Contains(back, c.name) {
				continue
			}
			if fresh {
				if err = os.Remove(filepath.Join(m.Dir, c.name)); errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
			} else if err = vacate(filepath.Join(m.Dir, c.name)); err != nil {
				err = dirty(m.Ref, m.Dir, true, []string{c.name + "/"})
			} else {
				err = act(ctx, d, "checkout-index", "--force", "--", c.name)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", m.Dir, c.name, err)
			}
		}
	}
	return nil
}

// vacate removes the directories that git has made in a file's place. It fails if anything else is in
// there, which git would remove.
func vacate(name string) error {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil
	}
	list, err := os.ReadDir(name)
	for _, e := range list {
		err = errors.Join(err, vacate(filepath.Join(name, e.Name())))
	}
	return errors.Join(err, os.Remove(name))
}
