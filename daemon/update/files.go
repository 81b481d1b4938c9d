package update

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/home"
)

// beside returns the name of a file of the run beside the program.
func (r Run) beside(suffix string) string {
	dir, name := filepath.Split(r.Binary)
	return filepath.Join(dir, "."+name+"-"+r.ID+suffix)
}

// old is the installed program's second name until the run is over. What is kept stays until then, as it is still the
// one to go back to if the run is undone.
func (r Run) old() string { return r.beside("-old") }

// keepOld gives the installed program that name.
func (r *Run) keepOld() error {
	if r.Previous == "" {
		return nil
	}
	r.Previous = r.old()
	return r.keep(r.Binary, r.Previous)
}

// settle keeps the old program if another one is in its place now, and leaves nothing else beside it.
func (s *Supervisor) settle() error {
	r := &s.run
	if r.Previous == r.old() {
		now, err := Sum(r.Binary)
		if err == nil && now == r.From.SHA256 {
			r.Previous = ""
		} else {
			if err := r.keep(r.Previous, Kept(r.Binary)); err != nil {
				return err
			}
			r.Previous = Kept(r.Binary)
		}
		if err := r.save(s.Home); err != nil {
			return err
		}
		step("kept")
	}
	return r.unstage()
}

// unstage removes what the run has put beside the program, and what its preparation needed.
func (r Run) unstage() (err error) {
	err = r.clear()
	for _, file := range []string{r.Staged, r.old(), r.beside("-new")} {
		if file == "" || r.ID == "" {
			continue
		}
		if rerr := os.Remove(file); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// tidy removes copies of the records that no rollback needs: those of this run and of the kept program stay.
func (r Run) tidy(h home.Dir) error {
	installed, err := Installed(h)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, err := os.ReadDir(h.Path(Dir))
	for _, e := range list {
		name := e.Name()
		if strings.HasPrefix(name, idPrefix) && !strings.HasPrefix(name, r.ID) && (installed.ID == "" || !strings.HasPrefix(name, installed.ID)) {
			err = errors.Join(err, h.Remove(Dir+"/"+name))
		}
	}
	return err
}

// Kept returns the name under which a program is kept.
func Kept(binary string) string { return binary + ".previous" }

// keep gives the file a second name, in one step: it is there with what it was, or is the present one.
func (r Run) keep(file, name string) error {
	temp := r.beside("-new")
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(file, temp); err != nil {
		return err
	}
	step("linked")
	return place(temp, name)
}

// place renames a file to its name in the same directory, and returns when that survives a loss of power.
func place(file, name string) error {
	if err := os.Rename(file, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Sum returns the SHA-256 of a regular file, in hexadecimal digits.
func Sum(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO would block
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", cmp.Or(err, fmt.Errorf("%s: is not a regular file", file))
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
