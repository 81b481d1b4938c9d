package away

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"netsky/home"
	"netsky/work/git"
)

const (
	// MaxPack is how many bytes the commits that cross at once may take.
	MaxPack = 16 << 20
	// MaxBase is how many those may take that a request brings.
	MaxBase = 600 << 10

	maxFiles = 1 << 20         // of a commit
	maxMore  = 1 << 30         // bytes that its files may have beyond those of one that is known
	packTime = 5 * time.Minute // for a git that packs or unpacks
)

// ErrRefused is matched by the error of what has come and is not taken, or is not given: to try again does not help.
var ErrRefused = errors.New("was refused")

var errFull = errors.New("too much")

// A refusal matches ErrRefused.
type refusal struct{ error }

func (r refusal) Is(target error) bool { return target == ErrRefused }
func (r refusal) Unwrap() error        { return r.error }

// Refuse returns an error that is final: it matches ErrRefused.
func Refuse(err error) error { return refusal{err} }

// A limited writer takes so many bytes.
type limited struct {
	io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errFull
	}
	return l.Writer.Write(p)
}

// isCommit reports whether a text is an object's whole name.
func isCommit(name string) bool {
	return (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == ""
}

// alone keeps a git from asking other repositories for what is missing.
var alone = []string{"GIT_NO_LAZY_FETCH=1"}

// known returns those of the names that are commits of the repository, in their order.
func known(ctx context.Context, d git.Dir, names []string) (list []string, err error) {
	var in strings.Builder
	for _, name := range names {
		if isCommit(name) {
			in.WriteString(name + "\n")
		}
	}
	d.Env = append(d.Env, alone...)
	out := &git.Head{Limit: 1 << 20}
	if err := d.Stream(ctx, strings.NewReader(in.String()), out, nil, "cat-file", "--batch-check=%(objectname) %(objecttype)"); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	for line := range strings.Lines(out.String()) {
		if name, ok := strings.CutSuffix(line, " commit\n"); ok {
			list = append(list, name)
		}
	}
	return list, nil
}

// pack writes commits, and of what led to them all that those who have some commits lack: nothing, if that is
// nothing. It fails with errFull if that takes more bytes than cross.
func pack(ctx context.Context, d git.Dir, commits, have []string, w io.Writer) error {
	d.Within, d.Env = packTime, append(d.Env, alone...)
	in := strings.Join(commits, "\n") + "\n"
	for _, name := range have {
		in += "^" + name + "\n"
	}
	news := &git.Head{Limit: 128}
	if err := d.Stream(ctx, strings.NewReader(in), news, nil, "rev-list", "--max-count=1", "--stdin"); err != nil {
		return fmt.Errorf("git rev-list: %w", err)
	}
	if news.Len() == 0 {
		return nil
	}
	out, said := &limited{w, MaxPack}, &git.Head{Limit: 4096}
	err := d.Stream(ctx, strings.NewReader(in), out, said, "pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "-q")
	switch {
	case out.left < 0:
		return errFull
	case err != nil && said.Len() > 0:
		return fmt.Errorf("git pack-objects: %s", strings.TrimSpace(said.String()))
	}
	return err
}

// bounded keeps a git from taking too much memory for one object.
var bounded = append([]string{"GIT_ALLOC_LIMIT=256m"}, alone...)

// add adds a foreign pack to a repository, which has all of the commits then. An empty one is none. like is a commit that
// they are built on.
func add(ctx context.Context, h home.Dir, d git.Dir, commits []string, like string, pack *os.File) error {
	info, err := pack.Stat()
	if err != nil {
		return err
	}
	refused := func(what string, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("what came %w: %s: %w", ErrRefused, what, cmp.Or(err, errFull))
	}
	scratch, err := git.OpenScratch(h, d.Path)
	if err != nil {
		return err
	}
	defer scratch.Close() // what is left is removed with what a crash leaves
	d.Within, d.Env = packTime, bounded
	apart := d
	apart.Env = append(scratch.Env(), bounded...)
	if info.Size() > 0 {
		if err := index(ctx, apart, pack, "--strict"); err != nil {
			return refused("git index-pack", err)
		}
	}
	for _, commit := range commits {
		if kind, err := apart.First(ctx, "cat-file", "-t", commit); err != nil || kind != "commit" {
			return refused(commit, errors.New("is not in it, or no commit"))
		}
		if _, err := apart.Run(ctx, 256, "rev-list", "--objects", "--quiet", commit, "--not", "--all"); err != nil {
			return refused("it is not whole", err)
		}
	}
	if info.Size() == 0 {
		return nil
	}
	before, err := sizes(ctx, d, like)
	if err != nil {
		return err
	}
	for _, commit := range commits {
		if now, err := sizes(ctx, apart, commit); err != nil || now.bytes > before.bytes+maxMore {
			return refused(fmt.Sprintf("its files are %d or more, with %d bytes or more", now.files, now.bytes), err)
		}
	}
	d.Acts, d.Hooks = true, git.NoHooks
	return index(ctx, d, pack)
}

// index reads a pack into where that git has its objects.
func index(ctx context.Context, d git.Dir, pack *os.File, how ...string) error {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	said := &git.Head{Limit: 4096}
	err := d.Stream(ctx, bufio.NewReader(pack), io.Discard, said, append([]string{"-c", "core.bigFileThreshold=32m", "index-pack", "--stdin", "--fix-thin", fmt.Sprintf("--max-input-size=%d", MaxPack)}, how...)...)
	if err != nil && said.Len() > 0 {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return err
}

// sizes returns how many files a commit has, and their bytes. It fails if they are too many.
func sizes(ctx context.Context, d git.Dir, commit string) (s summer, err error) {
	err = d.Stream(ctx, nil, &s, nil, "ls-tree", "-r", "--format=%(objectsize)", commit)
	return s, err
}

// A summer adds the numbers that are written to it, a line each.
type summer struct {
	files, bytes int64
	at           int64 // of a line that has not ended
}

func (s *summer) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n':
			s.files, s.bytes, s.at = s.files+1, s.bytes+s.at, 0
		case c >= '0' && c <= '9' && s.at < 1<<40:
			s.at = s.at*10 + int64(c-'0')
		}
	}
	if s.files > maxFiles {
		return 0, errFull
	}
	return len(p), nil
}
