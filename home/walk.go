package home

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// An Item is an entry of a home's directories, as Walk finds it.
type Item struct {
	Rel     string
	Mode    fs.FileMode
	Size    int64
	Written time.Time // the file's own time
	Changed time.Time // when it was last written, moved or given another mode; nobody can set it
	Dir     bool      // netsky makes a directory of that name there
	File    bool      // or a file
	Link    bool      // or an agent's program makes a symbolic link of that name
	Box     bool      // it is in a mailbox, where any program may write
}

// Own reports whether the entry is netsky's, by its place, name and type.
func (i Item) Own() bool {
	return i.Link && i.Mode.Type() == fs.ModeSymlink || i.Dir && i.Mode.IsDir() || i.File && (i.Mode.IsRegular() || i.Mode.Type() == fs.ModeSocket)
}

// Temporary reports whether it is a file that netsky was still writing; a process that is
// killed leaves it.
func (i Item) Temporary() bool { return i.File && tempName().MatchString(path.Base(i.Rel)) }

// Walk calls each for the entries of the directories that netsky makes in a home, parents
// first. It follows no link, and does not look into what is not netsky's or belongs to an
// agent's program. What can't be read is left out and returned as an error at the end.
func Walk(ctx context.Context, h Dir, each func(Item)) error {
	w := walk{ctx: ctx, each: each}
	dir, err := h.OpenDir(".", false)
	if err != nil {
		return err
	}
	defer dir.Close()
	for name, isDir := range ownNames {
		s := shape{}
		if isDir {
			s = shapes[name]
		}
		w.entry(dir, name, Item{Rel: name, Dir: isDir, File: !isDir}, s)
	}
	w.names(dir, func(name string) {
		if _, own := ownNames[name]; !own && isTemp(name) {
			w.entry(dir, name, Item{Rel: name, File: tempName().MatchString(name)}, shape{})
		}
	})
	return errors.Join(w.failed...)
}

type walk struct {
	ctx    context.Context
	each   func(Item)
	failed []error
}

// patterns are the compiled shape.files.
var patterns sync.Map

func (s shape) hasFile(name string) bool {
	return matches(s.files, name) || tempName().MatchString(name)
}

func matches(pattern, name string) bool {
	re, ok := patterns.Load(pattern)
	if !ok {
		re, _ = patterns.LoadOrStore(pattern, regexp.MustCompile(`^(?s:`+pattern+`)$`))
	}
	return re.(*regexp.Regexp).MatchString(name)
}

// entry reports one entry of an open directory, and what is below it.
func (w *walk) entry(parent *os.File, name string, item Item, s shape) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(parent.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if err != unix.ENOENT {
			w.fail(item.Rel, err)
		}
		return
	}
	item.Mode = fs.FileMode(st.Mode & 0o777)
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		item.Mode |= fs.ModeDir
	case unix.S_IFLNK:
		item.Mode |= fs.ModeSymlink
	case unix.S_IFSOCK:
		item.Mode |= fs.ModeSocket
	case unix.S_IFREG:
	default:
		item.Mode |= fs.ModeIrregular
	}
	item.Size = st.Size
	item.Written, item.Changed = time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())
	w.each(item)
	if !item.Dir || !item.Mode.IsDir() || s.tree || w.ctx.Err() != nil {
		return
	}
	dir, err := openSub(parent, name, item.Rel)
	if err != nil {
		w.fail(item.Rel, err)
		return
	}
	defer dir.Close()
	w.names(dir, func(name string) {
		below := s.below(name)
		sub := Item{Rel: item.Rel + "/" + name, Dir: below != nil, Box: item.Box || item.Rel == Channels || path.Dir(item.Rel) == Links}
		if below == nil {
			sub.File, sub.Link, below = s.hasFile(name), matches(s.links, name), &shape{}
		}
		w.entry(dir, name, sub, *below)
	})
}

func openSub(parent *os.File, name, rel string) (*os.File, error) {
	fd, _, err := openatDir(int(parent.Fd()), name, false)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// names calls each for the names in a directory, until the context ends.
func (w *walk) names(dir *os.File, each func(string)) {
	for w.ctx.Err() == nil {
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if w.ctx.Err() != nil {
				break
			}
			each(name)
		}
		if err != nil {
			if err != io.EOF {
				w.fail(dir.Name(), err)
			}
			return
		}
	}
	if err := w.ctx.Err(); len(w.failed) == 0 {
		w.failed = append(w.failed, err)
	}
}

func (w *walk) fail(rel string, err error) {
	const most = 10 // one cause is often the same for thousands
	if len(w.failed) < most {
		w.failed = append(w.failed, &fs.PathError{Op: "read", Path: rel, Err: reason(err)})
	}
}

// Restrict sets the mode of a directory or regular file of netsky's to 0700 or 0600. It
// follows no link.
func Restrict(h Dir, rel string) error {
	parent, err := h.OpenDir(path.Dir(rel), false)
	if err != nil {
		return err
	}
	defer parent.Close()
	var st unix.Stat_t
	d, name := int(parent.Fd()), path.Base(rel)
	if err := unix.Fstatat(d, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "chmod", Path: h.Path(rel), Err: err}
	}
	mode := uint32(0o600)
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFDIR:
		mode = 0o700
	case unix.S_IFREG:
	default:
		return &fs.PathError{Op: "chmod", Path: h.Path(rel), Err: errors.New("neither a file nor a directory")}
	}
	if mode == 0o600 && st.Nlink > 1 {
		return &fs.PathError{Op: "chmod", Path: h.Path(rel), Err: errors.New("has another name elsewhere (a hard link), whose mode would change too")}
	}
	if int(st.Uid) != os.Geteuid() {
		return &fs.PathError{Op: "chmod", Path: h.Path(rel), Err: errors.New("belongs to another user")}
	}
	if err := unix.Fchmodat(d, name, mode, 0); err != nil {
		return &fs.PathError{Op: "chmod", Path: h.Path(rel), Err: err}
	}
	return nil
}

// Stat describes one entry of the home, without following a link at its end.
func Stat(h Dir, rel string) (item Item, err error) {
	dir, err := h.OpenDir(path.Dir(rel), false)
	if err != nil {
		return item, err
	}
	defer dir.Close()
	err = fs.ErrNotExist
	w := walk{ctx: context.Background(), each: func(i Item) { item, err = i, nil }}
	w.entry(dir, path.Base(rel), Item{Rel: rel}, shape{})
	return item, errors.Join(append(w.failed, err)...)
}
