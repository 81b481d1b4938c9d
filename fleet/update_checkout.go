package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"netsky/daemon/update"
	"netsky/daemon/update/checkout"
	"netsky/internal/advice"
	"netsky/work/git"
)

// built is a program that is built from a checkout.
type built struct {
	checkout.State
	in checkout.Incoming
}

// checkout finds what is new in the checkout from which this program was built.
func (u *updater) checkout() (source, string, error) {
	s, err := checkout.Look(u.ctx, u.in.Root, u.Environ)
	if errors.Is(err, git.ErrNone) {
		return nil, "", advice.With(fmt.Errorf("%s: is no git repository, so there is nothing to fetch", u.in.Root), "`netsky self update FILE` installs a release")
	}
	if err != nil {
		return nil, "", err
	}
	version, err := checkout.Version(u.ctx, s.Root, u.Environ)
	if err != nil {
		return nil, "", err
	}
	if s.Remote {
		u.UI.Step(Step{Line: "fetching " + s.Upstream})
		if err := u.draft.Enter(u.ctx, "fetch", "git -C "+advice.Word(s.Root)+" fetch"); err != nil {
			return nil, "", err
		}
	}
	in, err := checkout.Fetch(u.ctx, s, u.Environ)
	if err != nil {
		return nil, "", err
	}
	r, next := &u.draft.Run, in.Revision != s.Revision
	switch {
	case in.Diverged:
		return nil, "", advice.With(fmt.Errorf("%s: your branch %s and %s have diverged", s.Root, s.Branch, s.Upstream), "`git -C %s rebase`, then this again", advice.Word(s.Root))
	case next && len(s.Dirty) > 0:
		return nil, "", advice.With(fmt.Errorf("%s: %d of its files are changed, and %d commits are new: %s", s.Root, len(s.Dirty), len(in.Commits)+in.More, strings.Join(s.Dirty[:min(len(s.Dirty), 5)], ", ")),
			"commit them, or `git -C %s stash`, then this again", advice.Word(s.Root))
	case !next && len(s.Dirty) == 0 && version == u.Version && !u.Force:
		return nil, "", fmt.Errorf("netsky %s %w: it is the build of %s", u.Version, ErrCurrent, u.tilde(s.Root))
	}
	r.Repository, r.Revision, r.Changes = s.Root, in.Revision, in.Changelog
	question := "This builds what is in " + u.tilde(s.Root) + " (" + version + ") and installs it in the place of netsky " + u.Version + "."
	if !s.Remote {
		question += "\nNothing was fetched: what is checked out there follows no branch of another repository."
	}
	if len(s.Dirty) > 0 {
		commit, err := checkout.Record(u.ctx, s, u.Environ)
		if err != nil {
			return nil, "", err
		}
		r.Revision = cmp.Or(commit, s.Revision+"-dirty")
		question += fmt.Sprintf("\nFiles that are changed and not committed: %d.", len(s.Dirty))
	}
	if r.Adopts = next; next {
		question = fmt.Sprintf("New on %s since %s:\n  %s", s.Upstream, version, strings.Join(in.Commits, "\n  "))
		if in.More > 0 {
			question += fmt.Sprintf("\n  and %d more", in.More)
		}
		if in.Changelog != "" {
			question += "\n\n" + in.Changelog + "\n"
		}
		question += "\nThis builds that and installs it in the place of netsky " + u.Version + "."
	}
	return built{s, in}, question + u.agents(), nil
}

// stage builds the program: what is new in a directory of its own, so that the checkout stays as it is until that
// operates.
func (b built) stage(u *updater, to string) error {
	root := b.Root
	if b.in.Revision != b.Revision {
		dir, err := u.draft.Scratch()
		if err != nil {
			return err
		}
		root = filepath.Join(dir, "netsky")
		if err := checkout.Clone(u.ctx, b.State, b.in.Revision, root, u.Environ); err != nil {
			return err
		}
	}
	u.UI.Step(Step{Line: "building it; a first build takes a few minutes"})
	if err := u.draft.Enter(u.ctx, "build", ". scripts/tools && build "+advice.Word(root)+" "+advice.Word(to)); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := checkout.Build(u.ctx, root, to, u.Environ, &out); err != nil {
		for line := range strings.Lines(out.String()[max(0, out.Len()-maxBuildOutput):]) {
			u.UI.Step(Step{Line: strings.TrimRight(line, "\n")})
		}
		return err
	}
	return nil
}

// maxBuildOutput is how much of a failed build's output is printed, in bytes.
const maxBuildOutput = 4 << 10

// Adopt moves the checkout of an update forward to what operates now.
func Adopt(ctx context.Context, r update.Run, environ []string) error {
	if !r.Adopts {
		return nil
	}
	s, err := checkout.Look(ctx, r.Repository, environ)
	if err != nil {
		return err
	}
	return checkout.Forward(ctx, s, checkout.Incoming{Revision: r.Revision}, environ)
}
