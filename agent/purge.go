package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Purge removes what netsky made in the home, and the home itself if nothing
// else is in it. It follows no link and leaves other file systems alone. left
// names what it did not remove as it is not netsky's. The marker goes last: after
// an error, or a crash, what is there is still a home and can be purged again.
//
// The caller has ended all that runs in the home.
func (h Home) Purge() (left []string, err error) {
	if err := h.Check(); err != nil {
		return nil, err
	}
	dir, err := h.OpenDir(".", false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	p := purge{}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: h.dir, Err: err}
	}
	p.dev = uint64(st.Dev)
	names, err := dir.Readdirnames(0)
	if err != nil {
		return nil, err
	}
	// The locks, which keep others from starting anything, go late.
	slices.SortFunc(names, func(a, b string) int { return late(a) - late(b) })
	for _, name := range names {
		p.top(dir, name)
	}
	if p.err != nil {
		return p.left, p.err
	}
	if err := unix.Unlinkat(int(dir.Fd()), MarkerFile, 0); err != nil && err != unix.ENOENT {
		return p.left, &fs.PathError{Op: "remove", Path: h.Path(MarkerFile), Err: err}
	}
	if len(p.left) > 0 {
		return p.left, nil
	}
	if err := os.Remove(h.dir); err != nil {
		return nil, errors.Join(err, h.mark(false)) // something has come meanwhile
	}
	return nil, nil
}

func late(name string) int {
	if name == RunDir {
		return 1
	}
	return 0
}

// Purged reports whether Purge would remove what lies in a directory: it is
// below one of those that netsky makes, mailboxes apart.
func (h Home) Purged(dir string) bool {
	rel, ok := strings.CutPrefix(filepath.Clean(dir), h.dir+"/")
	top, _, _ := strings.Cut(rel, "/")
	return ok && ownNames[top] && top != "channels"
}

type purge struct {
	dev  uint64
	left []string // what is not netsky's, relative to the home
	err  error    // all that could not be removed
}

// top removes one entry at the top of the home if it is netsky's.
func (p *purge) top(home *os.File, name string) {
	mode := kind(home, name)
	dir, own := ownNames[name]
	switch {
	case mode == 0, name == MarkerFile:
	case mode == unix.S_IFREG && (own && !dir || isTemp(name)):
		p.unlink(home, name, name, 0)
	case mode != unix.S_IFDIR || !dir:
		p.left = append(p.left, name)
	case name == "channels":
		p.only(home, name, name, func(boxes *os.File, box string) {
			if box != "agent" {
				p.left = append(p.left, name+"/"+box)
				return
			}
			p.only(boxes, box, Channels, p.addressed(Channels))
		})
	case name == WorkDir:
		p.only(home, name, name, p.addressed(WorkDir))
	default:
		p.tree(home, name, name)
	}
}

// addressed removes the directory of an address, with all that is in it.
func (p *purge) addressed(rel string) func(*os.File, string) {
	return func(dir *os.File, name string) {
		_, err := Parse(name)
		switch mode := kind(dir, name); {
		case mode == 0:
		case err == nil && mode == unix.S_IFDIR:
			p.tree(dir, name, rel+"/"+name)
		case mode == unix.S_IFREG && isTemp(name):
			p.unlink(dir, name, rel+"/"+name, 0)
		default:
			p.left = append(p.left, rel+"/"+name)
		}
	}
}

// only gives the entries of a directory to each, and removes the directory if
// nothing is left in it.
func (p *purge) only(parent *os.File, name, rel string, each func(dir *os.File, name string)) {
	dir := p.open(parent, name, rel)
	if dir == nil {
		return
	}
	defer dir.Close()
	names, err := dir.Readdirnames(0)
	p.fail(rel, err)
	before := len(p.left)
	for _, n := range names {
		each(dir, n)
	}
	if len(p.left) == before && p.err == nil {
		p.unlink(parent, name, rel, unix.AT_REMOVEDIR)
	}
}

// tree removes a directory and all below it, links as links.
func (p *purge) tree(parent *os.File, name, rel string) {
	dir := p.open(parent, name, rel)
	if dir == nil {
		return
	}
	defer dir.Close()
	for removed := 1; removed > 0; {
		removed = 0
		for {
			names, err := dir.Readdirnames(512)
			for _, n := range names {
				if kind(dir, n) == unix.S_IFDIR {
					p.tree(dir, n, rel+"/"+n)
				} else {
					p.unlink(dir, n, rel+"/"+n, 0)
				}
			}
			removed += len(names)
			if err != nil {
				if err != io.EOF {
					p.fail(rel, err)
				}
				break
			}
		}
		err := unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR)
		if err == nil || err == unix.ENOENT {
			return
		}
		if p.err != nil || err != unix.ENOTEMPTY && err != unix.EEXIST || removed == 0 {
			p.fail(rel, err)
			return
		}
		// Some file systems skip entries while others are removed.
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			p.fail(rel, err)
			return
		}
	}
}

// open opens a directory of a directory, nil if it is to be left alone.
func (p *purge) open(parent *os.File, name, rel string) *os.File {
	fd, err := openat(int(parent.Fd()), name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		p.fail(rel, err)
		return nil
	}
	dir := os.NewFile(uintptr(fd), rel)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || uint64(st.Dev) != p.dev || isMount(fd) {
		p.fail(rel, errors.New("another file system is mounted there"))
		dir.Close()
		return nil
	}
	return dir
}

func (p *purge) unlink(dir *os.File, name, rel string, flags int) {
	if err := unix.Unlinkat(int(dir.Fd()), name, flags); err != nil && err != unix.ENOENT {
		p.fail(rel, err)
	}
}

// fail notes what could not be removed. One cause is enough: it is often the
// same for a thousand files.
func (p *purge) fail(rel string, err error) {
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s: not removed: %w", rel, reason(err))
	}
}

// kind is the type of an entry, 0 if there is none of that name.
func kind(dir *os.File, name string) uint32 {
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	return uint32(st.Mode) & unix.S_IFMT
}
