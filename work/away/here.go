package away

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
	"netsky/work/git"
	"netsky/work/retire"
	"netsky/work/tree"
)

// Ref returns the branch of an agent on another host, as it is here.
func Ref(id agent.ID) string { return "refs/netsky/hosts/" + id.Host() + "/" + string(id.Local()) }

// Of returns what the work of an agent on another host is in a repository: it lands on what is checked out there.
func Of(ctx context.Context, id agent.ID, r git.Repo) (w tree.Worktree, err error) {
	w = tree.Worktree{Agent: id, Repo: r.Common, Main: r.Top, Branch: Ref(id), Made: store.At(time.Now())}
	w.Base, w.From, err = r.Head(ctx)
	return w, err
}

// most are how many commits are named that need not be sent.
const most = 1000

// Have returns commits that whoever has a clone of the repository may have, too, the newest first: the last ones, and
// ever fewer of those before.
func Have(ctx context.Context, w tree.Worktree) (list []string, err error) {
	d := git.Dir{Path: w.Repo}
	brought, err := git.Repo{Top: w.Repo}.Commit(ctx, w.Branch)
	if err != nil {
		return nil, err
	}
	at := w.From
	if now, err := (git.Repo{Top: w.Repo}).Commit(ctx, w.Base); w.Base != "" && err == nil && now != "" {
		at = now
	}
	out, err := d.List(ctx, "rev-list", "--first-parent", at, "--")
	if err != nil {
		return nil, fmt.Errorf("git rev-list: %w", err)
	}
	all := strings.Fields(out)
	for i := 0; i < len(all); i += max(1, i/most) {
		list = append(list, all[i])
	}
	list = append(list, all[len(all)-1])
	if brought != "" {
		list = append([]string{brought}, list...)
	}
	return list, nil
}

// An Ask has the agent's host answer a request. It writes the pack that comes with the answer to w.
type Ask func(ctx context.Context, q Request, w io.Writer) (There, error)

// ask asks once, and returns the pack as a file that whoever asked closes.
func (ask Ask) ask(ctx context.Context, h home.Dir, q Request) (There, *os.File, error) {
	f, err := spool(h)
	if err != nil {
		return There{}, nil, err
	}
	out := &limited{f, MaxPack}
	there, err := ask(ctx, q, out)
	there.Needs = slices.DeleteFunc(there.Needs, func(c string) bool { return !slices.Contains(q.Needs, c) })
	if out.left < 0 {
		err = Refuse(fmt.Errorf("%s: its host sends more than %d MiB", q.Agent, MaxPack>>20))
	}
	if err != nil {
		f.Close()
	}
	return there, f, err
}

// Begin has an agent on another host work on what w is of, and brings what it has: the host is asked how the agent is,
// and gets the commit that its work is to begin at, and those that it builds on, if it has not. Of the latter those do not
// count that the repository here lacks. With an error of ready's, which looks at the answer, nothing is done.
func Begin(ctx context.Context, h home.Dir, w tree.Worktree, needs []string, ask Ask, ready func(There) error) error {
	return locked(ctx, h, w.Agent, func() error {
		needs, err := known(ctx, git.Dir{Path: w.Repo}, needs)
		if err != nil {
			return err
		}
		there, f, err := ask.based(ctx, h, w, Request{Base: w.From, Needs: needs, Fetch: true}, ready)
		if err != nil {
			return err
		}
		defer f.Close()
		if there.Common != "" && there.lacks(w.From, needs) {
			what := fmt.Sprintf("%.12s", w.From)
			if there.Based {
				what = "what its task needs"
			}
			return advice.With(Refuse(fmt.Errorf("%s: its repository lacks %s, and all that a task begins at and needs may take at most %d KiB to send", w.Agent, what, MaxBase>>10)),
				"push it to where that repository fetches from")
		}
		return take(ctx, h, w, there, f)
	})
}

// lacks reports whether one of a request's commits is not there.
func (t There) lacks(base string, needs []string) bool {
	return base != "" && !t.Based || slices.ContainsFunc(needs, func(c string) bool { return !slices.Contains(t.Needs, c) })
}

// Bring brings what an agent on another host has committed since. Its host gets the commit that the work would land on
// now, if that takes little, so that the agent can merge it.
func Bring(ctx context.Context, h home.Dir, id agent.ID, ask Ask) error {
	return locked(ctx, h, id, func() error {
		w, err := tree.Load(h, id)
		if err != nil {
			return err
		}
		target, err := git.Repo{Top: w.Repo}.Commit(ctx, w.Base)
		if err != nil {
			return err
		}
		there, f, err := ask.based(ctx, h, w, Request{Base: target, Needs: w.Away.Needs}, func(There) error { return nil })
		if err != nil {
			return err
		}
		defer f.Close()
		return take(ctx, h, w, there, f)
	})
}

// based asks, and once more with what is not there of the request's base and needs if that takes little.
func (ask Ask) based(ctx context.Context, h home.Dir, w tree.Worktree, q Request, ready func(There) error) (There, *os.File, error) {
	q.Agent = w.Agent.Local()
	var err error
	if q.Have, err = Have(ctx, w); err != nil {
		return There{}, nil, err
	}
	there, f, err := ask.ask(ctx, h, q)
	if err != nil {
		return there, nil, err
	}
	if err = ready(there); err == nil && there.Common != "" && there.lacks(q.Base, q.Needs) {
		if q.Pack, err = packed(ctx, w, append([]string{q.Base}, q.Needs...), there.Common); err == nil && q.Pack != nil {
			f.Close()
			return ask.ask(ctx, h, q)
		}
	}
	if err != nil {
		f.Close()
	}
	return there, f, err
}

// packed returns commits as a pack for those who have another, nil if that is more than a request brings.
func packed(ctx context.Context, w tree.Worktree, commits []string, common string) ([]byte, error) {
	out := &git.Head{Limit: MaxBase + 1}
	err := pack(ctx, git.Dir{Path: w.Repo}, commits, []string{common}, out)
	if errors.Is(err, errFull) || err == nil && out.Len() > MaxBase {
		return nil, nil
	}
	return []byte(out.String()), err
}

// take takes what a host tells of an agent's work, with the pack that came with it.
func take(ctx context.Context, h home.Dir, w tree.Worktree, there There, pack *os.File) error {
	switch {
	case there.Dir == "":
		return inClone(w, Refuse(fmt.Errorf("%s: works in no git repository", w.Agent)))
	case there.Common == "":
		return inClone(w, Refuse(fmt.Errorf("%s: its repository, %s, has no commit in common with %s", w.Agent, word(there.Dir), w.Main)))
	case !isCommit(there.Head):
		return fmt.Errorf("%s: %q is no commit: its work %w", w.Agent, word(there.Head), ErrRefused)
	}
	d := git.Dir{Path: w.Repo}
	if err := add(ctx, h, d, []string{there.Head}, w.From, pack); err != nil {
		return fmt.Errorf("%s: %w", w.Agent, err)
	}
	before, err := git.Repo{Top: w.Repo}.Commit(ctx, w.Branch)
	if err != nil {
		return err
	}
	if before != "" && before != there.Head {
		if _, err := d.Run(ctx, 256, "merge-base", "--is-ancestor", before, there.Head); err != nil { // made anew there
			if err := setRef(ctx, d, retire.Refs+retire.Name(w.Agent, before), before); err != nil {
				return err
			}
		}
	}
	if before != there.Head {
		if err := setRef(ctx, d, w.Branch, there.Head); err != nil {
			return err
		}
	}
	step()
	a := tree.Away{Dir: word(there.Dir), Branch: word(there.Branch), Dirty: max(0, there.Dirty), Aside: word(there.Aside), Needs: there.Needs, Seen: store.At(time.Now())}
	return a.Save(h, w)
}

// inClone adds to an error how an agent comes to work in a clone of the repository.
func inClone(w tree.Worktree, err error) error {
	return advice.With(err, "`netsky --on %s up %s --dir DIR`, once it is down there, starts it in a clone of %s", w.Agent.Host(), w.Agent.Local().N(), advice.Word(w.Main))
}

// step is called between two steps that survive a crash; a test ends there.
var step = func() {}

// word returns what another host says as it can be shown.
func word(s string) string { return envelope.Plain(envelope.Line(s, 300)) }

// locked does something while nobody else does it for the agent.
func locked(ctx context.Context, h home.Dir, id agent.ID, do func() error) error {
	lock, err := h.WaitLock(ctx, home.WorktreeLock(id), nil)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return do()
}
