// Package land checks the agents' work, lands it on the owner's branches, and undoes that. No model
// takes part in any of it.
//
// What is checked is the tree that a merge of the agent's branch into its target would have now, in a
// scratch worktree. A check that has passed is evidence for that tree and the exact text of the
// command, and for nothing else: a commit on either branch makes it stale. Work that is not
// committed is in no tree, so an agent's work counts as proved only while its worktree is clean.
//
// A landing makes a commit with exactly the checked tree, and then moves the target by
// compare-and-swap: from the commit that the merge was computed for, to this one. Where the
// target is checked out, its files are updated if none of them has changes that are not committed,
// and nothing is moved otherwise. A file that git does not track is never overwritten, ignored ones
// included. Undoing moves the target back in the same way, or commits the reverse if others have
// built on it. What no branch leads to any more is kept below refs/netsky/retired.
//
// A ref moves under the home's lock for landings, and after state/landing.json says from where to
// where. The gits that move it hold that lock, too, so nobody takes it while one of them
// still runs, though netsky was killed. Whoever has it next reads the file, looks at the ref, and
// records what was: the ref is at the old commit or at the new one. A git that was killed while it
// wrote files leaves some of both; they are written back if each is exactly what one of the two
// commits says, and named otherwise.
//
// What a killed check leaves is its scratch worktree, which the next verb removes, and a record that
// says running.
package land

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/record"
	"netsky/work/tree"
)

// A Desk checks, lands and undoes the work of a home's agents, for one asker.
type Desk struct {
	Home    home.Dir
	Journal interface {
		Record(ctx context.Context, ops ...store.Op) error
	}
	// Records opens the database for reading; the Desk closes it. An error that matches
	// fs.ErrNotExist says that nothing is on record.
	Records func(ctx context.Context) (*store.DB, error)

	Command check.Command // the owner's check; an empty Text is none
	Within  time.Duration // how long that may take
	Agree   func() error  // asks the owner to agree to it, when it is about to run; nil asks nobody
	Environ []string
	Asker   agent.ID

	Slow time.Duration                             // after how long it is said that git may be waiting for somebody; 0 is ten seconds
	Say  func(format string, args ...any)          // tells the asker what happens meanwhile; nil is nobody
	Tell func(to agent.ID, key, text string) error // sends an agent a message, once for each key; nil sends none
	Wait func(err error)                           // is called if another netsky is landing
	Step func(name string)                         // is called at each step, for tests
}

// Errors of the Desk's methods.
var (
	// ErrNotYet is matched by refusals that somebody can change: a conflict, a missing check,
	// files that are not committed, a branch that moved meanwhile.
	ErrNotYet = errors.New("not yet")
	// ErrNothing is returned if the branch has nothing that its target has not.
	ErrNothing = errors.New("nothing to land")
	// ErrNoCheck is returned if there is no check command.
	ErrNoCheck = advice.With(errors.New("no check is set"), "`netsky check AGENT --set \"COMMAND\"` sets one, as does `check` under [work] in netsky.toml")
	// ErrAgree is returned if the owner has not agreed to the check command.
	ErrAgree = errors.New("the owner has not agreed to the check command")
	// ErrNoWorktree is returned for an agent without one.
	ErrNoWorktree = errors.New("has no worktree of its own")
)

// notYet is a refusal that matches ErrNotYet.
type notYet struct{ error }

func (e notYet) Is(target error) bool { return target == ErrNotYet }
func (e notYet) Unwrap() error        { return e.error }

func refusef(format string, args ...any) error { return notYet{fmt.Errorf(format, args...)} }

// patient says, unless the returned function is called soon, that something may be waiting for a person.
func (d Desk) patient(what string, within time.Duration) (done func()) {
	slow := cmp.Or(d.Slow, 10*time.Second)
	t := time.AfterFunc(slow, func() {
		d.say("%s takes long; it may be waiting for you, as for a passphrase or a key that is to be touched; it is ended after %v", what, within)
	})
	return func() { t.Stop() }
}

func (d Desk) step(name string) {
	if d.Step != nil {
		d.Step(name)
	}
}

func (d Desk) say(format string, args ...any) {
	if d.Say != nil {
		d.Say(format, args...)
	}
}

// newID returns what a check or a landing is called by.
func newID() string { return strings.ToLower(rand.Text()[:10]) }

// worktree returns the agent's worktree and its repository.
func (d Desk) worktree(ctx context.Context, id agent.ID) (w tree.Worktree, r git.Repo, err error) {
	w, err = Worktree(d.Home, id)
	if err == nil {
		r, err = Repo(ctx, w)
	}
	return w, r, err
}

// Worktree returns the agent's worktree. Without one, the error matches ErrNoWorktree.
func Worktree(h home.Dir, id agent.ID) (tree.Worktree, error) {
	w, err := tree.Load(h, id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = NoWorktree(h, id)
	case err == nil && !w.Ready:
		err = advice.With(fmt.Errorf("%s: its worktree is not whole", id), "run `netsky up %s`", id)
	}
	return w, err
}

// NoWorktree is the error for an agent without a worktree.
func NoWorktree(h home.Dir, id agent.ID) error {
	if id.Host() != "" {
		return advice.With(fmt.Errorf("%s: %w that is known here", id, ErrNoWorktree), "`netsky task start ID --agent %s` gives it work on a repository of yours", id.N())
	}
	if _, err := h.LoadLaunch(id); errors.Is(err, fs.ErrNotExist) {
		return advice.With(fmt.Errorf("%s: was never started: it %w", id, ErrNoWorktree), "`netsky agent %s` starts it; `netsky status` lists the agents", id.N())
	}
	return advice.With(fmt.Errorf("%s: %w", id, ErrNoWorktree), "a clone gets one when it is started in a git repository with a commit; `netsky work` lists who has one, `netsky work gone` what was retired")
}

// Repo opens the worktree's repository: where it was made from, or, if that is gone, there.
func Repo(ctx context.Context, w tree.Worktree) (git.Repo, error) {
	r, err := git.Open(ctx, w.Main, "")
	switch {
	case err == nil && r.Common == w.Repo:
		return r, nil
	case errors.Is(err, git.ErrBare):
		return r, bare(w)
	case err == nil:
		err = fmt.Errorf("%s: belongs to another repository than %s", w.Main, w.Repo)
	}
	r, gerr := w.Git()
	if gerr != nil {
		return r, w.Found(fmt.Errorf("%s: its repository: %w", w.Agent, errors.Join(err, gerr)))
	}
	return r, nil
}

// bare says that git takes the owner's directory for none. It would move a branch there, and not its files.
func bare(w tree.Worktree) error {
	return advice.With(fmt.Errorf("%s: its repository is set to be %w", w.Main, git.ErrBare), "`git config --show-origin core.bare` there shows where; set it to false")
}

// records opens the database, and calls read with what is in it. Without one, nothing is on record.
func (d Desk) records(ctx context.Context, read func(record.Records) error) error {
	db, err := d.Records(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the records: %w", err)
	}
	defer db.Close()
	return read(record.Records{DB: db})
}

// record records what happened. The work itself does not depend on it.
func (d Desk) record(ctx context.Context, ops ...store.Op) {
	if err := d.Journal.Record(context.WithoutCancel(ctx), ops...); err != nil {
		d.say("%v", err)
	}
}

// Evidence returns the newest check of the tree in that repository by the present command that came to a result; ok
// says that it has passed.
func (d Desk) Evidence(ctx context.Context, repo, tree string) (k record.Check, ok bool, err error) {
	if d.Command.Text == "" || tree == "" {
		return k, false, nil
	}
	err = d.records(ctx, func(r record.Records) error {
		list, err := r.Checks(ctx, record.Filter{Repo: repo, Tree: tree, Limit: 1000})
		k = record.Newest(list, d.Command.Digest())
		return err
	})
	return k, k.State == record.Passed, err
}

// short names a commit.
func short(commit string) string { return commit[:min(7, len(commit))] }

// tail keeps the end of what is written to it.
type tail struct{ b []byte }

const maxTail = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - maxTail; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.b)) }

// act runs a git that may change something. Its error has the end of all that was printed, which is
// where a hook says what it does not like.
func act(ctx context.Context, d git.Dir, args ...string) error {
	words := &tail{}
	return worded(d.Stream(ctx, nil, words, words, args...), words)
}

// ask is act for what prints one line, which it returns.
func ask(ctx context.Context, d git.Dir, args ...string) (string, error) {
	out, words := &tail{}, &tail{}
	err := worded(d.Stream(ctx, nil, out, words, args...), words)
	return out.String(), err
}

// worded replaces an error by the program's words.
func worded(err error, words *tail) error {
	if said := words.String(); err != nil && said != "" {
		return errors.New(said)
	}
	return err
}
