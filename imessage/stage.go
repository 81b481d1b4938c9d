package imessage

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	maxFile   = 100 << 20
	keepCopy  = 24 * time.Hour
	cleanEach = time.Hour
)

// ownDir is the directory of a copy: when it was made, and something that makes it unique.
var ownDir = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^netsky-([0-9]{13})-[0-9a-f]{16}$`) })

// staging is where copies are, below Messages' directory of attachments.
func (t *Transport) staging() string { return filepath.Join(t.o.DB.Attachments(), "netsky") }

// stagingRoot opens it, and makes it if make is set.
func (t *Transport) stagingRoot(make bool) (*os.Root, error) {
	dir := t.staging()
	if make {
		// What Messages itself makes is not made here: without it, this is no Mac of Messages'.
		for _, d := range []string{filepath.Dir(dir), dir} {
			if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: not a directory", dir)
	}
	return os.OpenRoot(dir)
}

// stage copies a file to where Messages can read it, and returns the copy's path.
func (t *Transport) stage(path string) (copied string, err error) {
	in, err := t.openFile(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	root, err := t.stagingRoot(true)
	if err != nil {
		return "", err
	}
	defer root.Close()
	unique := make([]byte, 8)
	rand.Read(unique)
	dir := fmt.Sprintf("netsky-%013d-%s", t.o.Now().UnixMilli(), hex.EncodeToString(unique))
	if err := root.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(dir, copyName(path))
	defer func() {
		if err != nil {
			root.RemoveAll(dir)
		}
	}()
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	n, err := io.Copy(out, io.LimitReader(in, maxFile+1))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil && n > maxFile {
		err = tooLong(path, n)
	}
	return filepath.Join(t.staging(), name), err
}

// unstage removes a copy that Messages has not taken. One that is left is removed with the old ones.
func (t *Transport) unstage(copied string) {
	if root, err := t.stagingRoot(false); err == nil {
		defer root.Close()
		root.RemoveAll(filepath.Base(filepath.Dir(copied)))
	}
}

func tooLong(path string, n int64) error {
	return fmt.Errorf("%s: %d bytes; at most %d can be sent", path, n, maxFile)
}

// openFile opens a file that may be sent: a regular one, no link, and one that is not refused.
func (t *Transport) openFile(path string) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%s: not an absolute path", path)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	real := filepath.Join(dir, filepath.Base(path))
	if t.o.Refuse != nil {
		if err := t.o.Refuse(real); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(real, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s: not a regular file", path)
	case info.Size() > maxFile:
		err = tooLong(path, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeOld removes copies that are older than a day. It knows its own by their names; anything
// else in the directory stays. What can't be removed is tried again an hour later.
func (t *Transport) removeOld() {
	now := t.o.Now()
	if now.Sub(t.cleaned).Abs() < cleanEach {
		return
	}
	t.cleaned = now
	root, err := t.stagingRoot(false)
	if err != nil {
		return
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if m := ownDir().FindStringSubmatch(name); m != nil {
			ms, _ := strconv.ParseInt(m[1], 10, 64)
			if now.Sub(time.UnixMilli(ms)) > keepCopy {
				root.RemoveAll(name)
			}
		}
	}
}
