package away

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/work/git"
	"netsky/work/tree"
)

// A Request asks a host how an agent's work is there.
type Request struct {
	Agent agent.ID `json:"agent"`
	Base  string   `json:"base,omitempty"` // a commit that its work is to begin at
	Have  []string `json:"have,omitempty"` // commits that need not be sent, the newest first
	// Fetch has Base fetched there, if it is missing, from where that repository was cloned.
	Fetch bool   `json:"fetch,omitempty"`
	Pack  []byte `json:"pack,omitempty"` // brings Base, as a git pack that may build on Have
}

// A There says how it is there.
type There struct {
	State  agent.State `json:"state"`
	Dir    string      `json:"dir,omitempty"`    // "": it works in no repository with a commit
	Branch string      `json:"branch,omitempty"` // a full ref name; "" if none is checked out
	Head   string      `json:"head,omitempty"`
	Dirty  int         `json:"dirty,omitempty"`
	Aside  string      `json:"aside,omitempty"`  // what is checked out instead of its branch
	Based  bool        `json:"based,omitempty"`  // Base is there
	Common string      `json:"common,omitempty"` // the first of Have that is there
}

// fetchTime limits the fetch of a base.
const fetchTime = 2 * time.Minute

// Tell adds to there how the repository of an agent is, of which Head is known, and writes to w, as a pack, the
// commits of Head that the asker lacks. An asker that has nothing in common with it gets none.
func Tell(ctx context.Context, h home.Dir, r git.Repo, q Request, there *There, w io.Writer) error {
	r = r.Doubt()
	d := r.Look()
	have, err := known(ctx, d, q.Have)
	if err != nil || len(have) == 0 {
		return err
	}
	there.Common = have[0]
	if isCommit(q.Base) {
		if there.Based, err = based(ctx, h, r, q, have[0]); err != nil {
			return err
		}
	}
	if err = pack(ctx, d, there.Head, have, w); errors.Is(err, errFull) {
		err = Refuse(fmt.Errorf("%s: what is missing of %.12s takes more than %d MiB", q.Agent, there.Head, MaxPack>>20))
	}
	return err
}

// Origin returns where the repository that an agent's work is on was cloned from, "" if that is not known.
func Origin(ctx context.Context, w tree.Worktree) (address string) {
	d := git.Dir{Path: w.Repo}
	if remote := upstream(ctx, d); remote != "" {
		address, _ = d.First(ctx, "remote", "get-url", remote)
	}
	return harmless(address)
}

// upstream returns the remote that a repository was cloned from, "" if that is not known.
func upstream(ctx context.Context, d git.Dir) string {
	out, _ := d.Run(ctx, 16<<10, "remote")
	switch list := strings.Fields(out); {
	case slices.Contains(list, "origin"):
		return "origin"
	case len(list) == 1:
		return list[0]
	}
	return ""
}

// harmless returns an address without what is secret in it.
func harmless(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// based reports whether the repository has the request's base, once it was looked for as that says. Its ref is set to it.
// like is a commit that it shares with the asker.
func based(ctx context.Context, h home.Dir, r git.Repo, q Request, like string) (is bool, err error) {
	at := git.Dir{Path: r.Common, Doubted: r.Look().Doubted}
	has := func() bool {
		if err == nil && !is {
			var list []string
			list, err = known(ctx, at, []string{q.Base})
			is = len(list) > 0
		}
		return is
	}
	if remote := upstream(ctx, at); !has() && q.Fetch && remote != "" {
		d := r.Act(fetchTime)
		d.Reaches = true
		// Of several programs named for the other end git takes the first, so that one is named here. What can't be
		// fetched is sent by the asker.
		_, _ = d.Run(ctx, 4096, "fetch", "--upload-pack=git-upload-pack", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", remote)
	}
	if !has() && err == nil && len(q.Pack) > 0 {
		err = unpack(ctx, h, at, q, like)
		is = err == nil
	}
	if err != nil || !is {
		return false, err
	}
	ref := tree.BaseRef(q.Agent)
	if now, err := (git.Repo{Top: at.Path}).Doubt().Commit(ctx, ref); err != nil || now == q.Base {
		return true, err
	}
	return true, setRef(ctx, at, ref, q.Base)
}

// unpack adds the request's base.
func unpack(ctx context.Context, h home.Dir, at git.Dir, q Request, like string) error {
	f, err := spool(h)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(q.Pack); err != nil {
		return err
	}
	return add(ctx, h, at, q.Base, like, f)
}

// spool returns a file that has no name any more.
func spool(h home.Dir) (*os.File, error) {
	dir, err := h.OpenDir(git.ScratchDirname, true)
	if err != nil {
		return nil, err
	}
	dir.Close()
	f, err := os.CreateTemp(h.Path(git.ScratchDirname), "pack-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// setRef sets a ref below refs/netsky. The owner's hooks are not asked.
func setRef(ctx context.Context, d git.Dir, ref, commit string) error {
	d.Acts, d.Hooks = true, git.NoHooks
	if _, err := d.Run(ctx, 4096, "update-ref", "--no-deref", "-m", "netsky: from another host", ref, commit); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return nil
}

// Alone returns how an agent's own repository is, if it has none from netsky: what is checked out is its branch.
func Alone(ctx context.Context, dir, userHome string, there *There) (git.Repo, error) {
	r, err := git.Open(ctx, dir, userHome)
	if errors.Is(err, git.ErrNone) || errors.Is(err, git.ErrUnborn) || errors.Is(err, git.ErrBare) {
		return r, nil
	}
	if r = r.Doubt(); err == nil {
		there.Dir = r.Top
		there.Branch, there.Head, err = r.Head(ctx)
	}
	if err == nil {
		there.Dirty, err = r.Dirty(ctx, 10_000)
	}
	return r, err
}
