package land

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/internal/advice"
	"netsky/work/git"
	"netsky/work/tree"
)

// The ways a branch lands.
const (
	Forward = "fast-forward" // the target moves to the branch's head, as it has no commit of its own
	Merging = "merge"        // a commit with both as parents
	Squash  = "squash"       // one commit of the whole branch
	Rebase  = "rebase"       // the branch's commits, made again on the target
	Push    = "push"         // the branch is pushed, for others to merge
)

// noEditor keeps git from asking, and a rebase from moving other branches.
var noEditor = []string{"GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=true", "GIT_MERGE_AUTOEDIT=no"}

// A maker makes the commit of one landing or undo in a repository.
type maker struct {
	Desk
	repo git.Repo
	id   string // what the scratch worktree is called by
}

// build makes the commit that the target moves to, as the owner's git would: with the owner's name,
// configuration and hooks. Its tree is the checked one, or there is an error. how "" is Forward if
// that is possible, else merge.
func (d maker) build(ctx context.Context, m Merge, how, message string) (after, did string, err error) {
	forward := m.Base == m.Onto
	if forward && (how == "" || how == Rebase || how == Forward) {
		return m.Head, Forward, nil
	}
	how = cmp.Or(how, Merging)
	switch how {
	case Merging:
		after, err = d.commit(ctx, commit{tree: m.Tree, onto: m.Onto, merged: m.Head, message: message})
	case Squash:
		after, err = d.commit(ctx, commit{tree: m.Tree, onto: m.Onto, message: message})
	case Rebase:
		after, err = d.rebase(ctx, m)
	default:
		err = fmt.Errorf("%q: must be %s, %s or %s", how, Merging, Squash, Rebase)
	}
	return after, how, err
}

// A commit is a commit that a landing is to make.
type commit struct {
	tree    string
	onto    string // its parent
	merged  string // the other one, "" for none
	message string
}

// commit makes a commit with the owner's name, configuration and hooks. Where neither a hook nor a
// signature is wanted, no file needs to be written for it.
func (d maker) commit(ctx context.Context, c commit) (string, error) {
	if unattended(ctx, d.repo) {
		d.step("build")
		args := []string{"commit-tree", c.tree, "-p", c.onto, "-m", c.message}
		if c.merged != "" {
			args = append(args, "-p", c.merged)
		}
		after, err := ask(ctx, d.repo.Act(0), args...)
		if err != nil {
			err = explain(ctx, d.repo.Act(0), "git commit-tree", err)
		}
		return after, err
	}
	return d.inScratch(ctx, c.onto, func(g git.Dir) (err error) {
		verb := "git merge"
		if c.merged != "" {
			err = act(ctx, g, "merge", "--no-ff", "--quiet", "-m", c.message, c.merged)
		} else if err = act(ctx, g, "read-tree", "-m", "-u", "--no-recurse-submodules", "HEAD", c.tree); err == nil {
			verb = "git commit"
			err = act(ctx, g, "commit", "--quiet", "-m", c.message)
		}
		if err != nil {
			return explain(ctx, g, verb, err)
		}
		tree, err := g.First(ctx, "rev-parse", "HEAD^{tree}")
		if err == nil && tree != c.tree {
			err = refusef("%s made a commit with other files than the ones that were checked%s", verb, listed(hooksOf(ctx, g), "; that may be one of the hooks "))
		}
		return err
	})
}

// rebase makes the branch's commits again on the target.
func (d maker) rebase(ctx context.Context, m Merge) (string, error) {
	return d.inScratch(ctx, m.Head, func(g git.Dir) error {
		const verb = "git rebase"
		if err := act(ctx, g, "-c", "rebase.updateRefs=false", "-c", "rebase.autoSquash=false", "rebase", "--quiet", m.Onto); err != nil {
			return explain(ctx, g, verb, err)
		}
		tree, err := g.First(ctx, "rev-parse", "HEAD^{tree}")
		if err == nil && tree != m.Tree {
			err = refusef("rebased, the branch would have other files than the ones that were checked")
		}
		return err
	})
}

// inScratch has a commit made in a scratch worktree, and returns it.
func (d maker) inScratch(ctx context.Context, at string, do func(git.Dir) error) (string, error) {
	s, err := tree.NewScratch(ctx, d.Home, d.repo, d.id, at)
	if err != nil {
		return "", fmt.Errorf("a worktree for it: %w", err)
	}
	defer func() {
		if err := s.Remove(context.WithoutCancel(ctx)); err != nil {
			d.say("%s: %v", s.Dir, err)
		}
	}()
	d.step("build")
	defer d.patient("git, which makes the commit,", moveTime)()
	g := s.Act()
	g.Env = append(slices.Clip(g.Env), noEditor...)
	if err := do(g); err != nil {
		return "", err
	}
	return g.First(ctx, "rev-parse", "HEAD")
}

// unattended reports whether a commit is made in the repository without hooks and without a signature.
func unattended(ctx context.Context, r git.Repo) bool {
	d := r.Look()
	if sign, err := d.First(ctx, "config", "--type=bool", "--get", "commit.gpgSign"); err == nil && sign != "false" {
		return false
	}
	if path, err := d.First(ctx, "config", "--type=path", "--get", "core.hooksPath"); err == nil && !filepath.IsAbs(path) {
		return false // each worktree may have others
	}
	return len(hooksOf(ctx, r.Act(0), "post-commit", "post-merge")) == 0
}

// signed refuses a branch without a good signature where merge.verifySignatures is set, as git merge does.
func signed(ctx context.Context, r git.Repo, m Merge) error {
	if sign, err := r.Look().First(ctx, "config", "--type=bool", "--get", "merge.verifySignatures"); err != nil || sign != "true" {
		return nil
	}
	if err := act(ctx, r.Act(0), "verify-commit", m.Head); err != nil {
		return advice.With(refusef("%s: the commit %s has no good signature, and merge.verifySignatures is set", git.Branch(m.Branch), short(m.Head)),
			"`git verify-commit %s` shows why", short(m.Head))
	}
	return nil
}

// explain says what may have kept git from making a commit.
func explain(ctx context.Context, g git.Dir, verb string, err error) error {
	said := err.Error()
	err = fmt.Errorf("%s: %w%s", verb, err, listed(hooksOf(ctx, g), "\nthe repository has the hooks "))
	switch {
	case strings.Contains(said, "gpg failed") || strings.Contains(said, "failed to sign") || strings.Contains(said, "failed to write commit object"):
		err = advice.With(err, "commits are signed here (commit.gpgsign), which needs your key: unlock it, then try again")
	case strings.Contains(said, "Please tell me who you are") || strings.Contains(said, "identity unknown") || strings.Contains(said, "empty ident"):
		err = advice.With(err, "git does not know who you are: git config user.name and user.email")
	}
	return notYet{err}
}

// listed puts words before names, if there are any.
func listed(names []string, before string) string {
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(names, ", ")
}

// hooksOf returns the hooks that the repository has for a commit, and which of these others.
func hooksOf(ctx context.Context, g git.Dir, others ...string) (names []string) {
	dir, err := g.First(ctx, "rev-parse", "--path-format=absolute", "--git-path", "hooks")
	if err != nil {
		return nil
	}
	for _, name := range append([]string{"pre-merge-commit", "pre-commit", "prepare-commit-msg", "commit-msg", "pre-rebase"}, others...) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// message returns the message of the commit that a landing makes, with the agent's name.
func message(ctx context.Context, r git.Repo, w tree.Worktree, m Merge, how, given string) (string, error) {
	text := strings.TrimSpace(given)
	if text == "" {
		d := r.Look()
		d.Path = r.Top
		list, err := shortened(ctx, d, "log", "--reverse", "--no-show-signature", "--no-merges", "--format=- %s", m.Onto+".."+m.Head)
		if err != nil {
			return "", err
		}
		list = strings.TrimSpace(list)
		switch {
		case how == Squash && m.Ahead == 1:
			if text, err = shortened(ctx, d, "log", "-1", "--no-show-signature", "--format=%B", m.Head); err != nil {
				return "", err
			}
		case how == Squash:
			text = fmt.Sprintf("%s: %d commits\n\n%s", w.Title(), m.Ahead, list)
		default:
			text = fmt.Sprintf("Merge %s into %s\n\n%s", w.Title(), git.Branch(m.Target), list)
		}
	}
	in, out := strings.NewReader(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))+"\n"), &git.Head{Limit: 2 * maxMessage}
	err := r.Look().Stream(ctx, in, out, nil, "interpret-trailers", "--if-exists", "addIfDifferent", "--trailer", tree.Trailer+": "+string(w.Agent))
	return strings.TrimSpace(out.String()), err
}

// maxMessage bounds what a message takes from the commits, in bytes: it is given to git as an argument.
const maxMessage = 96 << 10

// shortened returns what git prints. Of too much, it has whole lines, and a last one that says so.
func shortened(ctx context.Context, d git.Dir, args ...string) (string, error) {
	text, err := d.Run(ctx, maxMessage, args...)
	if len(text) == maxMessage {
		text = text[:strings.LastIndexByte(text, '\n')+1] + "[the rest is left out]\n"
	}
	return text, err
}
