// Package checkout updates the checkout of the source in which a netsky was built: it says in which
// state the checkout is, fetches what its upstream branch has, moves the branch forward and builds.
//
// Looking changes nothing. Fetching changes only what git knows of the upstream branch, and adds tags
// that lead to it; no tag moves and no hook runs. Moving the branch is git merge --ff-only, as the owner
// would do it, hooks included: it loses no change, committed or not. All of it is limited in time, and
// git asks for no password; ssh may, at a terminal.
//
// If the process is killed, git leaves what git leaves; a build is ended with it, and leaves at most an
// incomplete file under the name that the caller gave.
package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/words"
	"netsky/work/git"
)

const (
	maxDirty     = 100 // files
	maxCommits   = 20
	maxChangelog = 64 << 10 // bytes
	fetchTime    = 2 * time.Minute
	moveTime     = 5 * time.Minute // with the owner's hooks
)

// A State is what a checkout is at.
type State struct {
	Root     string
	Revision string   // the commit that is checked out
	Describe string   // as git describe has it: "v0.2.0-3-gabc123-dirty"
	Dirty    []string // files that differ from that commit, new ones included; the first 100
	Branch   string   // "" if none is checked out
	Upstream string   // of the branch: "origin/main"; "" if it has none
	Remote   bool     // the upstream can be fetched
}

// Look returns the state of the checkout. It changes nothing.
func Look(ctx context.Context, root string, environ []string) (State, error) {
	c, err := open(ctx, root, environ)
	if err != nil {
		return State{}, err
	}
	s, look := State{Root: root}, c.git(false, 0)
	if s.Branch, s.Revision, err = c.repo.Head(ctx); err != nil {
		return State{}, c.failed(err)
	}
	if s.Describe, err = look.First(ctx, "describe", "--tags", "--always", "--dirty"); err != nil {
		return State{}, c.failed(err)
	}
	changed, err := look.List(ctx, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
	if err != nil {
		return State{}, c.failed(err)
	}
	for line := range strings.SplitSeq(changed, "\x00") {
		if len(line) > 3 && len(s.Dirty) < maxDirty {
			s.Dirty = append(s.Dirty, git.Shown(line[3:])) // "?? name"
		}
	}
	up, err := c.upstream(ctx, s.Branch)
	s.Branch, s.Upstream, s.Remote = git.Branch(s.Branch), up.short, up.remote != ""
	return s, err
}

// A checkout is one that is looked at.
type checkout struct {
	root    string
	environ []string
	repo    git.Repo
}

func open(ctx context.Context, root string, environ []string) (checkout, error) {
	c := checkout{root: root, environ: environ}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return c, err
	}
	if c.repo, err = git.Open(ctx, root, ""); err != nil {
		return c, c.failed(err)
	}
	if c.repo.Top != real {
		return c, c.failed(git.ErrNone)
	}
	return c, nil
}

func (c checkout) failed(err error) error {
	return advice.With(fmt.Errorf("checkout %s: %w", c.root, err), "%s", cmp.Or(advice.Of(err), "see git -C "+advice.Word(c.root)+" status"))
}

// git returns a git in the checkout with the caller's environment. What of that could lead it elsewhere is left
// out, as package git does it.
func (c checkout) git(acts bool, within time.Duration) git.Dir {
	d := c.repo.Look()
	if acts {
		d = c.repo.Act(within)
	}
	d.Env = append(execx.Without(execx.Inherited(c.environ), "GIT_*", "NETSKY_*", "LC_ALL"), d.Env...)
	return d
}

// An upstream is the branch from which another one is brought up to date.
type upstream struct {
	ref, short string // "refs/remotes/origin/main", "origin/main"
	remote     string // where it is fetched from; "" if it isn't
	there      string // its name there
}

func (c checkout) upstream(ctx context.Context, branch string) (up upstream, err error) {
	if branch == "" {
		return up, nil
	}
	const format = "--format=%(upstream)%00%(upstream:short)%00%(upstream:remotename)%00%(upstream:remoteref)"
	out, err := c.git(false, 0).Run(ctx, 4096, "for-each-ref", format, branch)
	if err != nil {
		return up, c.failed(err)
	}
	f := strings.Split(strings.TrimSuffix(out, "\n"), "\x00")
	if len(f) != 4 || f[0] == "" {
		return up, nil
	}
	up = upstream{ref: f[0], short: f[1], remote: f[2], there: f[3]}
	if !strings.HasPrefix(up.ref, "refs/remotes/") { // of the same repository
		up.remote, up.there = "", ""
	}
	return up, nil
}

// Incoming is what moving the branch to its upstream would bring.
type Incoming struct {
	Revision  string   // to which the branch would move; where it is already if there is nothing new
	Commits   []string // "abc1234 subject", the newest first, and at most 20
	More      int      // commits that are not among them
	Changelog string   // what CHANGELOG.md has more
	Diverged  bool     // the branch has commits that its upstream has not: it can't be moved
}

// Fetch fetches the upstream branch, if there is one, and says what is new since s.
func Fetch(ctx context.Context, s State, environ []string) (Incoming, error) {
	in := Incoming{Revision: s.Revision}
	c, err := open(ctx, s.Root, environ)
	if err != nil || s.Upstream == "" {
		return in, err
	}
	up, err := c.upstream(ctx, "refs/heads/"+s.Branch)
	if err != nil {
		return in, err
	}
	if up.remote != "" {
		d := c.git(true, fetchTime)
		d.Hooks = git.NoHooks
		_, err := d.Run(ctx, 4096, "fetch", "--quiet", "--no-prune", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance",
			"--", up.remote, "+"+up.there+":"+up.ref)
		if err != nil {
			return in, advice.With(fmt.Errorf("checkout %s: %s was not fetched: %w", c.root, up.short, err), "try: git -C %s fetch", advice.Word(c.root))
		}
	}
	there, err := c.repo.Commit(ctx, cmp.Or(up.ref, s.Upstream))
	if err != nil {
		return in, c.failed(err)
	}
	if there == "" {
		return in, c.failed(fmt.Errorf("its upstream %s has no commit", s.Upstream))
	}
	if err := c.compare(ctx, s.Revision, there, &in); err != nil {
		return in, c.failed(err)
	}
	return in, nil
}

// compare says what there has that here has not.
func (c checkout) compare(ctx context.Context, here, there string, in *Incoming) error {
	look := c.git(false, 0)
	out, err := look.First(ctx, "rev-list", "--left-right", "--count", here+"..."+there)
	if err != nil {
		return err
	}
	ahead, behind, _ := strings.Cut(out, "\t")
	n, err := strconv.Atoi(behind)
	if err != nil || n == 0 {
		return err
	}
	in.Revision, in.Diverged = there, ahead != "0"
	list, err := look.List(ctx, "log", "--no-show-signature", "--no-color", "--no-decorate", "--no-notes", "--format=%h %s", "-n", strconv.Itoa(maxCommits), here+".."+there)
	if err != nil {
		return err
	}
	for line := range strings.Lines(list) {
		in.Commits = append(in.Commits, words.Brief(printable(line), 200))
	}
	in.More = n - len(in.Commits)
	changed, err := look.Run(ctx, maxChangelog, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--unified=0", here+"..."+there, "--", "CHANGELOG.md")
	in.Changelog = printable(added(changed))
	if len(changed) == maxChangelog {
		in.Changelog += "\n…"
	}
	return err
}

// added returns the lines that a patch of one file adds.
func added(patch string) string {
	var text strings.Builder
	in := false
	for line := range strings.Lines(patch) {
		in = in || strings.HasPrefix(line, "@@ ")
		if more, ok := strings.CutPrefix(line, "+"); ok && in {
			text.WriteString(more)
		}
	}
	return strings.TrimSpace(text.String())
}

// printable returns a text without the characters that a terminal obeys.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Forward moves the branch of s to in. Changes that are not committed stay; where in changes the same
// files, it is refused, and nothing is moved.
func Forward(ctx context.Context, s State, in Incoming, environ []string) error {
	if in.Revision == s.Revision {
		return nil
	}
	c, err := open(ctx, s.Root, environ)
	if err != nil {
		return err
	}
	if in.Diverged {
		return advice.With(fmt.Errorf("checkout %s: %s and %s have diverged", c.root, s.Branch, s.Upstream), "bring them together: git -C %s rebase %s", advice.Word(c.root), advice.Word(s.Upstream))
	}
	branch, commit, err := c.repo.Head(ctx)
	if err == nil && (git.Branch(branch) != s.Branch || commit != s.Revision) {
		err = advice.With(errors.New("somebody has changed what is checked out"), "run this again")
	}
	if err != nil {
		return c.failed(err)
	}
	_, err = c.git(true, moveTime).Run(ctx, 4096, "merge", "--ff-only", "--no-autostash", "--no-stat", "--quiet", in.Revision)
	if err != nil {
		return advice.With(fmt.Errorf("checkout %s: %s was not moved: %w", c.root, s.Branch, err), "commit or stash what differs: git -C %s status", advice.Word(c.root))
	}
	return nil
}

// Record returns a commit of exactly what is in the tracked files of a dirty checkout, which no branch has; "" if only new
// files differ. It changes nothing that is checked out.
func Record(ctx context.Context, s State, environ []string) (string, error) {
	c, err := open(ctx, s.Root, environ)
	if err != nil {
		return "", err
	}
	d := c.git(true, fetchTime)
	d.Hooks = git.NoHooks
	commit, err := d.First(ctx, "stash", "create")
	if err != nil {
		return "", c.failed(err)
	}
	return commit, nil
}

// Clone checks a revision out into the new directory to, which shares the checkout's objects; the checkout stays as it is.
func Clone(ctx context.Context, s State, revision, to string, environ []string) error {
	c, err := open(ctx, s.Root, environ)
	if err != nil {
		return err
	}
	d := c.git(true, fetchTime)
	d.Hooks = git.NoHooks
	if _, err := d.Run(ctx, 4096, "clone", "--quiet", "--shared", "--no-checkout", "--", c.root, to); err != nil {
		return c.failed(err)
	}
	d.Path, d.Ceiling = to, ""
	if _, err := d.Run(ctx, 4096, "checkout", "--quiet", "--detach", revision); err != nil {
		return c.failed(err)
	}
	return nil
}
