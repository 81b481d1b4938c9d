package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"netsky/home"
	"netsky/work/git"
	"netsky/work/tree"
)

// edits are what a demo remembers of its work on files. Each change is on disk before the step
// that it announces, so that a message which is offered again after a crash finds what it has
// done already.
type edits struct {
	Files   []string `json:"files,omitempty"`   // below the worktree, edited and not committed
	Message string   `json:"message,omitempty"` // the last that asked for an edit or a commit,
	Size    int64    `json:"size,omitempty"`    // the file's size before that edit,
	Head    string   `json:"head,omitempty"`    // the commit that was checked out before that commit
}

const (
	maxFile    = 1 << 20
	maxEdited  = 100 // files between two commits
	commitTime = time.Minute
)

// An editor is the demo at work on files.
type editor struct{ *demo }

func (d editor) editsFile() string { return home.DemoDir + "/" + string(d.Agent) + ".edits.json" }

func (d editor) loadEdits() (e edits) {
	e, err := home.Load[edits](d.Home, d.editsFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // damaged: what was edited has to be committed by hand
		d.trouble("what was edited", err)
	}
	return e
}

func (d editor) saveEdits(ctx context.Context, e edits) error {
	return d.durable(ctx, func() error { return d.Home.Save(d.editsFile(), e, true) })
}

// of reports whether the request is the one that these are about: it comes again.
func (e edits) of(q request) bool { return q.mail.ID != "" && e.Message == q.mail.ID }

// place returns the agent's worktree and where it works there, with what is named below that. The error
// says why nothing is changed there: the owner's own files never are.
func (d editor) place(name string) (w tree.Worktree, dir string, err error) {
	la, err := d.Home.LoadLaunch(d.Agent)
	if err != nil {
		return w, "", err
	}
	if w, ok := tree.WorksAt(d.Home, d.Agent, filepath.Join(la.Dir, filepath.Dir(name))); ok {
		return w, la.Dir, nil
	}
	if _, ok := tree.Around(d.Home, d.Agent, la.Dir); ok {
		return w, "", fmt.Errorf("%s: not in %s's worktree", filepath.Dir(name), d.Agent)
	}
	return w, "", fmt.Errorf("%s works in %s, which is no git worktree of its own, and a demo agent changes no file of yours", d.Agent, la.Dir)
}

// edit adds a line at the end of a file. Two agents that do so to one file are in conflict.
func (d editor) edit(ctx context.Context, q request, arg string) (outcome, error) {
	refused := func(err error) (outcome, error) { return outcome{failed: true, text: "/edit: " + err.Error()}, nil }
	name, text := split(arg)
	if text == "" {
		return refused(errors.New("no file or no text: /edit FILE TEXT"))
	}
	name = filepath.Clean(name)
	if !filepath.IsLocal(name) || slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		return refused(fmt.Errorf("%s: not a file of the worktree", shorten(name, 100)))
	}
	w, dir, err := d.place(name)
	if err != nil {
		return refused(err)
	}
	f, err := openOwn(dir, name)
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	had, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return refused(err)
	}
	e, size := d.loadEdits(), int64(len(had))
	if e.of(q) {
		size = min(e.Size, size)
	}
	line := []byte(text + "\n")
	if before := had[:size]; len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		line = append([]byte("\n"), line...)
	}
	rest := had[size:]
	switch below, err := filepath.Rel(w.Dir, filepath.Join(dir, name)); {
	case err != nil:
		return refused(err)
	case size+int64(len(line)) > maxFile:
		return refused(fmt.Errorf("%s: it would be longer than %d bytes", name, maxFile))
	case !bytes.HasPrefix(line, rest) && !bytes.HasPrefix(rest, line):
		return refused(fmt.Errorf("%s: was changed by somebody else after a crash; the line was not added", name))
	case slices.Contains(e.Files, below):
	case len(e.Files) == maxEdited:
		return refused(fmt.Errorf("%d files were edited and not committed; /commit first", maxEdited))
	default:
		e.Files = append(e.Files, below)
	}
	if q.mail.ID != "" {
		e.Message, e.Size, e.Head = q.mail.ID, size, ""
	}
	if err := d.saveEdits(ctx, e); err != nil {
		return outcome{}, err
	}
	d.step("noted")
	if !bytes.HasPrefix(rest, line) {
		if err := d.durable(ctx, func() error {
			_, err := f.WriteAt(line, size)
			return cmp.Or(err, f.Sync())
		}); err != nil {
			return outcome{}, err
		}
	}
	d.step("edited")
	return outcome{text: fmt.Sprintf("%s (demo) added a line to %s; /commit commits it", d.Agent, name)}, nil
}

// openOwn opens a regular file below a directory, through no symbolic link, and makes it, with its directories, if it is
// not there. One with several names is refused: another could be the owner's.
func openOwn(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for i, c := range name + "/" {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(name[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s: %w", name[:i], home.ErrLink)
		}
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Nlink != 1) {
		err = fmt.Errorf("%s: not a file with one name", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// commit commits the files that were edited, as they are now, with the hooks that the agent's git has.
func (d editor) commit(ctx context.Context, q request, message string) (outcome, error) {
	refused := func(err error) (outcome, error) {
		return outcome{failed: true, text: "/commit: " + err.Error()}, ctx.Err()
	}
	w, _, err := d.place(".")
	if err != nil {
		return refused(err)
	}
	r, err := w.Git()
	if err != nil {
		return refused(err)
	}
	r.Hooks = d.Home.Path(tree.HooksDirname, string(d.Agent))
	branch, head, err := r.Head(ctx)
	if err != nil {
		return refused(err)
	}
	e := d.loadEdits()
	files, err := changed(ctx, r, e.Files)
	if err != nil {
		return refused(err)
	}
	text := fmt.Sprintf("%s (demo): nothing to commit", d.Agent)
	if len(files) > 0 {
		if q.mail.ID != "" {
			e.Message, e.Head = q.mail.ID, head
		}
		if err := d.saveEdits(ctx, e); err != nil {
			return outcome{}, err
		}
		d.step("noted")
		if err := record(ctx, r, files, cmp.Or(message, "Edit "+shorten(strings.Join(files, ", "), 60))); err != nil {
			return refused(err)
		}
		d.step("committed")
		if branch, head, err = r.Head(ctx); err != nil {
			return refused(err)
		}
	}
	if len(files) > 0 || e.of(q) && e.Head != head {
		text = fmt.Sprintf("%s (demo) committed %.7s on %s", d.Agent, head, cmp.Or(git.Branch(branch), "no branch"))
	}
	e.Files = nil
	if err := d.saveEdits(ctx, e); err != nil {
		return outcome{}, err
	}
	d.step("forgotten")
	return outcome{text: text}, nil
}

// record commits the files. A git that is ended by a signal of its own removes its locks, so ctx kills none.
func record(ctx context.Context, r git.Repo, files []string, message string) error {
	act := literal(r.Act(commitTime))
	for _, args := range [][]string{{"add", "-A", "--"}, {"commit", "-q", "--message=" + message, "--"}} {
		if _, err := act.Run(context.WithoutCancel(ctx), maxFile, append(args, files...)...); err != nil {
			return err
		}
	}
	return nil
}

// changed returns those of the files that differ from the last commit.
func changed(ctx context.Context, r git.Repo, files []string) (list []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	args := []string{"status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--"}
	out, err := literal(r.Look()).List(ctx, append(args, files...)...)
	for entry := range strings.SplitSeq(out, "\x00") {
		if len(entry) > 3 {
			list = append(list, entry[3:])
		}
	}
	return list, err
}

// literal has names be names and no patterns.
func literal(d git.Dir) git.Dir {
	d.Env = append(d.Env, "GIT_LITERAL_PATHSPECS=1")
	return d
}
