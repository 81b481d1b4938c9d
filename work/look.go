// This file reads how the agents' work is and what it has changed, for several readers at once.
//
// However many ask, git runs for one of them at a time, and what it says is used again for some
// seconds: for at least three, and for ten times as long as it took, so that readers who ask all the
// time keep git at work for a tenth of the time at most; that it took too long is an answer, too. A check or a landing that is recorded
// meanwhile has the work read again. Each answer says as of when it is.
//
// What it keeps is bounded, and is forgotten a moment after nobody has asked for it any more; nothing
// runs meanwhile. It changes nothing in a repository. A crash leaves scratch directories, as those of
// work/merge and work/diff do.

package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/store"
	"netsky/work/check"
	"netsky/work/diff"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/tree"
)

// LookerOptions configure a Looker.
type LookerOptions struct {
	Home    home.Dir
	Records func() *store.DB                            // nil while there is none
	Check   func() check.Command                        // what proves work now
	Up      func(ctx context.Context, id agent.ID) bool // as in Options
}

// A Looker reads. Its methods may be called at the same time.
type Looker struct {
	o    LookerOptions
	turn chan struct{} // holds one while git runs, or may

	// The reader of states and what ends it; whoever has the turn uses them.
	reader *Reader

	mu      sync.Mutex // guards the fields below
	kept    map[string]*kept
	resting *time.Timer // closes the reader
	closed  bool
}

// kept is an answer that is used again.
type kept struct {
	value any
	err   error
	mark  string // what it depends on, beside git
	at    time.Time
	until time.Time
}

const (
	least  = 3 * time.Second // for which an answer is used again
	most   = time.Minute
	share  = 10          // times as long as it took
	idle   = time.Minute // after which the reader of states, which remembers, is closed
	keeps  = 4           // changes
	within = 20 * time.Second
	// maxText is how much of one change is read, so that those that are kept need a few megabytes.
	maxText = 512 << 10
)

// NewLooker returns a Looker. The caller must Close it.
func NewLooker(o LookerOptions) *Looker {
	return &Looker{o: o, turn: make(chan struct{}, 1), kept: make(map[string]*kept)}
}

// Close waits for git to end and removes what was used. Nothing can be read after it.
func (l *Looker) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.resting != nil {
		l.resting.Stop()
	}
	l.mu.Unlock()
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.rest()
}

// rest closes the reader of states.
func (l *Looker) rest() (err error) {
	if l.reader != nil {
		err = l.reader.Close()
		l.reader = nil
	}
	return err
}

var errClosed = errors.New("no longer read")

// take waits until git runs for nobody else.
func (l *Looker) take(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("git is still at work for another page: %w", ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		<-l.turn
		return errClosed
	}
	return nil
}

// find returns an answer that can be used again.
func (l *Looker) find(key, mark string) *kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kept[key]; k != nil && k.mark == mark && time.Now().Before(k.until) {
		return k
	}
	return nil
}

// keep keeps an answer for as long as it is used again.
func (l *Looker) keep(key string, k *kept) {
	took := time.Since(k.at)
	k.until = time.Now().Add(min(max(least, share*took), most))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[key] = k
	changes, oldest := 0, ""
	for name, other := range l.kept {
		if strings.HasPrefix(name, changeKey) {
			if changes++; oldest == "" || other.at.Before(l.kept[oldest].at) {
				oldest = name
			}
		}
	}
	if changes > keeps {
		delete(l.kept, oldest)
	}
	time.AfterFunc(time.Until(k.until), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.kept[key] == k {
			delete(l.kept, key)
		}
	})
}

// read returns the answer that is kept under the key, or a new one.
func read[T any](ctx context.Context, l *Looker, key, mark string, do func(context.Context) (T, error)) (v T, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	k := l.find(key, mark)
	if k == nil {
		if err := l.take(ctx); err != nil {
			return v, at, err
		}
		defer func() { <-l.turn }()
		k = l.find(key, mark) // it may have been made meanwhile
	}
	if k == nil {
		k = &kept{mark: mark, at: time.Now()}
		k.value, k.err = do(ctx)
		if err := ctx.Err(); err != nil { // git was ended
			k.value, k.err = v, fmt.Errorf("git took too long: %w", err)
			if !errors.Is(err, context.DeadlineExceeded) { // as nobody waits for it any more
				return v, at, k.err
			}
		}
		l.keep(key, k)
	}
	return k.value.(T), k.at, k.err
}

// States returns the states of all agents that have a worktree, in order, and as of when they are. What
// can't be read of one is in its Error.
func (l *Looker) States(ctx context.Context) ([]State, time.Time, error) {
	if trees, err := tree.List(l.o.Home); err == nil && len(trees) == 0 {
		return []State{}, time.Now(), nil
	}
	mark, err := l.mark(ctx)
	if err != nil {
		return []State{}, time.Time{}, err
	}
	return read(ctx, l, "states", mark, func(ctx context.Context) ([]State, error) {
		if err := git.Version(ctx); err != nil {
			return []State{}, err
		}
		if l.reader == nil {
			l.reader = New(l.o.Home, Options{})
		}
		o := Options{Command: l.o.Check(), Up: l.o.Up}
		if db := l.o.Records(); db != nil {
			o.Records = &record.Records{DB: db}
		}
		l.reader.Set(o)
		l.tires()
		return l.reader.States(ctx)
	})
}

// tires closes the reader of states when nobody has used it for a while.
func (l *Looker) tires() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resting != nil {
		l.resting.Reset(idle)
		return
	}
	l.resting = time.AfterFunc(idle, func() {
		if l.take(context.Background()) == nil {
			l.rest() // what is left is removed with what a crash leaves
			<-l.turn
		}
	})
}

// mark names what states depend on beside git: the newest checks and landings, and the command.
func (l *Looker) mark(ctx context.Context) (string, error) {
	db := l.o.Records()
	if db == nil {
		return "", nil
	}
	r := record.Records{DB: db}
	var b strings.Builder
	b.WriteString(l.o.Check().Digest())
	checks, err := r.Checks(ctx, record.Filter{Limit: 20})
	for _, k := range checks {
		fmt.Fprint(&b, " ", k.ID, k.State)
	}
	landings, lerr := r.Landings(ctx, record.Filter{Limit: 20})
	for _, k := range landings {
		fmt.Fprint(&b, " ", k.ID, k.State)
	}
	return b.String(), errors.Join(err, lerr)
}

// Tree returns the tree that landing an agent's work now would make, and in which repository, as land.Current
// does.
func (l *Looker) Tree(ctx context.Context, id agent.ID) (repo, tree string, err error) {
	type now struct{ repo, tree string }
	n, _, err := read(ctx, l, "tree "+string(id), "", func(ctx context.Context) (n now, err error) {
		n.repo, n.tree, err = land.Current(ctx, l.o.Home, id)
		return n, err
	})
	return n.repo, n.tree, err
}

// Owns is what land.Holder has by that name. What can't be read counts as the worker's own.
func (l *Looker) Owns(ctx context.Context, id agent.ID, begun, head, before string) bool {
	owns, _, err := read(ctx, l, "owns "+string(id)+" "+begun+" "+head+" "+before, "", func(ctx context.Context) (bool, error) {
		return (&land.Holder{Home: l.o.Home}).Owns(ctx, id, begun, head, before), nil
	})
	return owns || err != nil
}

// Holder returns what tells, to one goroutine, whether branches still have what landed on them, as
// land.Holder does. What can't be read counts as held.
func (l *Looker) Holder() func(ctx context.Context, v record.Landing) bool {
	h := &land.Holder{Home: l.o.Home}
	return func(ctx context.Context, v record.Landing) bool {
		held, _, err := read(ctx, l, "holds "+v.ID, "", func(ctx context.Context) (bool, error) { return h.Holds(ctx, v), nil })
		return held || err != nil
	}
}

// A Change is what an agent has changed; see diff.Change.
type Change struct {
	Base  string      `json:"base"`
	Head  string      `json:"head"`
	Tree  string      `json:"tree"`
	Left  []string    `json:"left,omitempty"`
	Files []diff.File `json:"files"`
	More  bool        `json:"more"` // there are more files, or more of them, than were read
}

const changeKey = "change "

// Change returns what the agent has changed, in all files or in one, and as of when. The error matches
// fs.ErrNotExist if it has no worktree, or the directory was deleted.
func (l *Looker) Change(ctx context.Context, id agent.ID, file string) (Change, time.Time, error) {
	return read(ctx, l, changeKey+string(id)+" "+file, "", func(ctx context.Context) (c Change, err error) {
		err = l.open(ctx, id, func(d *diff.Change) error {
			var paths []string
			if file != "" {
				paths = []string{":(top,literal)" + file}
			}
			c = Change{Base: d.Base, Head: d.Head, Tree: d.Tree, Left: d.Left}
			d.Most = maxText
			c.Files, c.More, err = d.Files(ctx, paths...)
			return err
		})
		return c, err
	})
}

// Open calls do with what the agent has changed, as it is now, while git runs for nobody else.
func (l *Looker) Open(ctx context.Context, id agent.ID, do func(*diff.Change) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := l.take(ctx); err != nil {
		return err
	}
	defer func() { <-l.turn }()
	return l.open(ctx, id, do)
}

func (l *Looker) open(ctx context.Context, id agent.ID, do func(*diff.Change) error) error {
	w, err := tree.Load(l.o.Home, id)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: has no worktree of its own: %w", id, fs.ErrNotExist)
	}
	if err != nil {
		return err
	}
	c, err := diff.Open(ctx, l.o.Home, w)
	if err != nil {
		return err
	}
	defer c.Close() // what is left is removed with what a crash leaves
	return do(c)
}
