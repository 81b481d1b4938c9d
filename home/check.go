package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotHome reports a directory that cannot be netsky's home.
var ErrNotHome = errors.New("not a netsky home")

// ErrOccupied is the ErrNotHome of a directory with other content.
var ErrOccupied = fmt.Errorf("%w", ErrNotHome)

// ErrHomeOpen reports a home that others may enter and whose mode netsky does not change
// because it did not create the directory.
var ErrHomeOpen = errors.New("is open to other users")

// marker is the content of MarkerFile. An empty file works too: with it a person declares
// a directory with other files to be netsky's home.
type marker struct {
	Netsky int  `json:"netsky_home"` // 1
	Made   bool `json:"made"`        // netsky made the directory itself
}

// Check reports whether the directory is a home, or can become one: it is absent, or
// empty, or holds MarkerFile, or was made by a netsky that wrote no marker yet. Any other
// is refused with ErrNotHome: the user's own directory and those above it, a link, a
// directory with other content. A copy of a home that is still there is refused with
// ErrCopied, until Adopt. Check changes nothing.
func (h Dir) Check() error {
	if _, err := look(h); err != nil {
		return err
	}
	return copied(h)
}

// A find is what look found at the home's path.
type find struct {
	Dir
	absent bool
	marked bool
	made   bool // by netsky, according to its marker
	byHand bool // its marker was not written by netsky
	mode   fs.FileMode
}

func look(h Dir) (find, error) {
	f := find{Dir: h}
	if h.dir == "/" {
		return f, h.refuse("is the root of the file system")
	}
	info, err := os.Lstat(h.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := f.notAbove(h.user); err != nil {
			return f, err
		}
		f.absent = true
		return f, f.notAbove(loginDir())
	case err != nil:
		return f, err
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := filepath.EvalSymlinks(h.dir)
		if err != nil {
			to = "nothing"
		}
		return f, h.refuse("is a symbolic link to " + to)
	case !info.IsDir():
		return f, h.refuse("is not a directory")
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return f, h.refuse(fmt.Sprintf("belongs to user id %d, but netsky runs as user id %d", st.Uid, os.Geteuid()))
	}
	f.mode = info.Mode().Perm()
	if err = f.readMarker(); err != nil {
		return f, err
	}
	if err := f.notAbove(h.user); err != nil {
		return f, err
	}
	if !f.marked {
		if err := f.notAbove(loginDir()); err != nil {
			return f, err
		}
		if err := f.mayMark(); err != nil {
			return f, err
		}
		// Another process may have made it a home meanwhile.
		if err = f.readMarker(); err != nil {
			return f, err
		}
	}
	if f.byHand {
		if err := f.notTaken(); err != nil {
			return f, err
		}
	}
	if f.mode&0o077 != 0 && !f.made {
		return f, fmt.Errorf("%s %w (mode %04o)", h.dir, ErrHomeOpen, f.mode)
	}
	return f, nil
}

func (h Dir) refuse(why string) error {
	return fmt.Errorf("%s: %w: it %s", h.dir, ErrNotHome, why)
}

// notAbove refuses a home that is the user's own directory or above it, by any path. In a
// marked home an agent may have its own HOME, below one of netsky's names.
func (f *find) notAbove(user string) error {
	if !filepath.IsAbs(user) {
		return nil
	}
	paths := []string{filepath.Clean(user)}
	if real, err := filepath.EvalSymlinks(user); err == nil && real != paths[0] {
		paths = append(paths, real)
	}
	own, err := os.Stat(f.dir)
	if err != nil {
		own = nil // absent; look reports any other problem
	}
	for _, path := range paths {
		below := ""
		for dir := path; ; below, dir = filepath.Base(dir), filepath.Dir(dir) {
			same := dir == f.dir
			if info, err := os.Stat(dir); err == nil && own != nil && os.SameFile(info, own) {
				same = true
			}
			switch {
			case same && below == "":
				return f.refuse("is your home directory")
			case same && !(f.marked && ownNames[below]):
				return f.refuse("contains your home directory, " + user)
			}
			if same || dir == "/" {
				break
			}
		}
	}
	return nil
}

// readMarker reads MarkerFile. Its existence is enough for a home.
func (f *find) readMarker() error {
	data, err := f.ReadFile(MarkerFile, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotHome, err)
	}
	var m marker
	ours := json.Unmarshal(data, &m) == nil && m.Netsky != 0
	f.marked, f.made, f.byHand = true, ours && m.Made, !ours
	return nil
}

// notTaken refuses a directory that a person has marked and netsky has not used yet, if it
// holds one of netsky's names: that content is the person's. Make begins with Channels.
func (f *find) notTaken() error {
	names := slices.Sorted(maps.Keys(ownNames))
	taken := ""
	for _, name := range names {
		if name == MarkerFile || name == ConfigFile || name == "channels" {
			continue
		}
		if _, err := os.Lstat(f.Path(name)); err == nil {
			taken = name
			break
		}
	}
	if taken == "" {
		return nil
	}
	if _, err := os.Lstat(f.Path(Channels)); err == nil {
		return nil
	}
	again := find{Dir: f.Dir}
	if err := again.readMarker(); err != nil || !again.byHand {
		return err // another process has begun meanwhile
	}
	return f.refuse("holds " + taken + ", a name that netsky uses itself: move it away or choose another directory")
}

// mayMark refuses a directory without a marker that can't become a home.
func (f *find) mayMark() error {
	dir, err := f.OpenDir(".", false)
	if err != nil {
		return err
	}
	defer dir.Close()
	made := "" // a name that only an earlier netsky can have created
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			switch {
			case name == MarkerFile, name == ConfigFile, isTemp(name): // a person may write netsky.toml before the first verb
			case !likeOurs(name):
				return fmt.Errorf("%s: %w: it holds %s, which is not netsky's", f.dir, ErrOccupied, name)
			default:
				made = name
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if made == "" {
		return nil
	}
	if _, err := os.Lstat(f.Path(MarkerFile)); err == nil {
		return nil // it appeared while the names were read
	}
	boxes, err := f.OpenDir(Channels, false)
	if err != nil {
		return fmt.Errorf("%s: %w: it holds %s, but no %s", f.dir, ErrOccupied, made, Channels)
	}
	defer boxes.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(boxes.Fd()), &st); err != nil || int(st.Uid) != os.Geteuid() {
		return f.refuse("holds " + Channels + " of another user")
	}
	return nil
}

// ownNames are the names netsky creates at the top of a home; true is a directory.
var ownNames = map[string]bool{
	MarkerFile: false, ConfigFile: false, TmuxConfFile: false,
	DBFile: false, DBFile + "-wal": false, DBFile + "-shm": false, DBFile + "-journal": false, DBFile + "-restore": false,
	"channels": true, "state": true, RunDir: true, LogDir: true, WorkDir: true,
}

// isTemp reports whether the name is that of a file netsky is writing.
func isTemp(name string) bool { return strings.HasPrefix(name, ".tmp-") }

// likeOurs reports whether netsky uses the name at the top of a home, or a person derived
// it from one: a database moved away, a copy of a configuration.
func likeOurs(name string) bool {
	for _, file := range []string{DBFile, ConfigFile, TmuxConfFile} {
		if strings.HasPrefix(name, file) {
			return true
		}
	}
	_, own := ownNames[name]
	return own || isTemp(name) || name == ".DS_Store"
}

// Make creates the home and its directories with mode 0700, after Check, and writes its
// marker first. It repairs the mode of a home that netsky made, and returns what it
// repaired.
func (h Dir) Make() (repaired []string, err error) {
	f, err := look(h)
	if err == nil {
		err = copied(h)
	}
	if err != nil {
		return nil, err
	}
	if f.absent {
		if f.made, err = makeDir(h.dir); err != nil {
			return nil, err
		}
		if f.mode = 0o700; !f.made { // another process was faster
			if f, err = look(h); err != nil {
				return nil, err
			}
		}
	}
	if f.made && f.mode != 0o700 {
		if err := h.chmod(); err != nil {
			return nil, err
		}
		if f.mode&0o077 != 0 {
			repaired = append(repaired, fmt.Sprintf("%s: was open to others (mode %04o), now 0700", h.dir, f.mode))
		}
	}
	if err := h.mark(f.made); err != nil {
		return repaired, err
	}
	for _, rel := range homeDirs {
		d, err := h.OpenDir(rel, true)
		if err != nil {
			return repaired, err
		}
		d.Close()
	}
	h.keepRoot()
	return repaired, nil
}

// makeDir creates a directory and missing parents, mode 0700 whatever the umask. made is
// false if it existed.
func makeDir(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if _, err := makeDir(filepath.Dir(dir)); err != nil {
			return false, err
		}
		err = os.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info, err := os.Lstat(dir); err != nil || info.Mode() == fs.ModeDir|0o700 {
		return true, err
	}
	return true, os.Chmod(dir, 0o700) // just made by us
}

func (h Dir) chmod() error {
	dir, err := h.OpenDir(".", false)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Chmod(0o700)
}

// mark writes the marker if there is none, or replaces one that a person made: from then
// on it shows that netsky has used the home.
func (h Dir) mark(made bool) error {
	info, err := os.Lstat(h.Path(MarkerFile))
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 0) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := json.Marshal(marker{1, made && info == nil})
	if err != nil {
		return err
	}
	return h.WriteFile(MarkerFile, append(data, '\n'), true)
}

// Missing returns the directories that Make would create.
func (h Dir) Missing() (list []string) {
	for _, rel := range homeDirs {
		if d, err := h.OpenDir(rel, false); err == nil {
			d.Close()
		} else if errors.Is(err, fs.ErrNotExist) {
			list = append(list, rel)
		}
	}
	return list
}
