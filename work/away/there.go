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
	Base  string   `json:"base,omitempty"`  // a commit that its work is to begin at
	Needs []string `json:"needs,omitempty"` // commits that its work builds on, too
	Have  []string `json:"have,omitempty"`  // commits that need not be sent, the newest first
	// Fetch has those fetched there that are missing, from where that repository was cloned.
	Fetch bool   `json:"fetch,omitempty"`
	Pack  []byte `json:"pack,omitempty"` // brings what is missing of Base and Needs, as a git pack that may build on Have
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
	Needs  []string    `json:"needs,omitempty"`  // those of the request's that are there
	Common string      `json:"common,omitempty"` // the first of Have that is there
}

const (
	fetchTime = 2 * time.Minute // for the fetch of a base
	mostNeeds = 100             // commits of a request
)

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
		if err = bring(ctx, h, r, q, there); err != nil {
			return err
		}
	}
	if err = pack(ctx, d, []string{there.Head}, have, w); errors.Is(err, errFull) {
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

// bring adds to there which of the request's base and needs the repository has, once they were looked for as that says.
// The base's ref is set to it, and what a pack has brought gets one.
func bring(ctx context.Context, h home.Dir, r git.Repo, q Request, there *There) error {
	at := git.Dir{Path: r.Common, Doubted: r.Look().Doubted}
	want := []string{q.Base}
	for _, commit := range q.Needs[:min(len(q.Needs), mostNeeds)] {
		if isCommit(commit) && !slices.Contains(want, commit) {
			want = append(want, commit)
		}
	}
	is, err := known(ctx, at, want)
	if remote := upstream(ctx, at); err == nil && len(is) < len(want) && q.Fetch && remote != "" {
		d := r.Act(fetchTime)
		d.Reaches = true
		// Of several programs named for the other end git takes the first, so that one is named here. What can't be
		// fetched is sent by the asker.
		_, _ = d.Run(ctx, 4096, "fetch", "--upload-pack=git-upload-pack", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--", remote)
		is, err = known(ctx, at, want)
	}
	if err == nil && len(is) < len(want) && len(q.Pack) > 0 {
		lacks := slices.DeleteFunc(slices.Clone(want), func(c string) bool { return slices.Contains(is, c) })
		err, is = unpack(ctx, h, at, q.Pack, lacks, there.Common), want
		for _, commit := range lacks {
			if err == nil && commit != q.Base {
				err = setRef(ctx, at, "refs/netsky/needs/"+commit, commit)
			}
		}
	}
	if err != nil {
		return err
	}
	there.Based = slices.Contains(is, q.Base)
	there.Needs = slices.DeleteFunc(slices.Clone(q.Needs), func(c string) bool { return !slices.Contains(is, c) })
	ref := tree.BaseRef(q.Agent)
	if now, err := (git.Repo{Top: at.Path}).Doubt().Commit(ctx, ref); err != nil || now == q.Base || !there.Based {
		return err
	}
	return setRef(ctx, at, ref, q.Base)
}

// unpack adds commits that a pack brings.
func unpack(ctx context.Context, h home.Dir, at git.Dir, pack []byte, commits []string, like string) error {
	f, err := spool(h)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(pack); err != nil {
		return err
	}
	return add(ctx, h, at, commits, like, f)
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
