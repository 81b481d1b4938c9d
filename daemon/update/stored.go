package update

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"netsky/home"
	"netsky/internal/advice"
)

// load returns a run that is stored, if netsky can have stored it: the files that it names are renamed, started and removed.
func load(h home.Dir, rel string) (Run, error) {
	r, err := home.Load[Run](h, rel)
	if err != nil {
		return r, err
	}
	err = r.names()
	if err == nil && rel == runFile {
		err = r.whole()
	}
	if err != nil {
		return Run{}, advice.With(fmt.Errorf("%s: %w", h.Path(rel), err), "`rm %s` if no update is running; the program stays as it is", advice.Word(h.Path(rel)))
	}
	return r, nil
}

var (
	runID  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^self-[0-9]{1,19}$`) })
	digest = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })
	states = []State{Preparing, Prepared, Stopping, Copying, Installing, Starting, Undoing, Done, Undone, Failed}
)

// names returns an error unless the run's files are beside its program and in the home's directory of runs.
func (r Run) names() error {
	if !runID().MatchString(r.ID) {
		return fmt.Errorf("%.100q is not the id of a run", r.ID)
	}
	dir, name := filepath.Split(r.Binary)
	for _, file := range []string{r.Staged, r.Previous} {
		at, base := filepath.Split(file)
		if file != "" && (at != dir || base != Kept(name) && !strings.HasPrefix(base, "."+name+"-"+r.ID)) {
			return fmt.Errorf("%.200q is not a file of the run's beside %.200q", file, r.Binary)
		}
	}
	if r.Scratch != "" && (!filepath.IsAbs(r.Scratch) || r.Scratch != r.scratch(filepath.Dir(r.Scratch))) {
		return fmt.Errorf("%.200q is not a directory of the run's", r.Scratch)
	}
	for _, file := range []string{r.Backup, r.Restore, r.Aside} {
		if file != "" && (file != Dir+"/"+path.Base(file) || !strings.HasPrefix(path.Base(file), "self-")) {
			return fmt.Errorf("%.200q is not a copy of the records", file)
		}
	}
	return nil
}

// whole returns an error unless the run has what every run has that was begun.
func (r Run) whole() error {
	switch {
	case len(r.Steps) == 0:
		return errors.New("a run without steps")
	case !slices.Contains([]Kind{Update, Rollback, Restart}, r.Kind) || !slices.Contains(states, r.State):
		return fmt.Errorf("%.100q is not a kind of run, or %.100q not a state of one", r.Kind, r.State)
	case !filepath.IsAbs(r.Binary) || r.Binary != filepath.Clean(r.Binary):
		return fmt.Errorf("%.200q is not the path of a program", r.Binary)
	case r.Kind != Restart && r.State != Preparing && !r.State.Over() && !(digest().MatchString(r.From.SHA256) && digest().MatchString(r.To.SHA256)):
		return errors.New("a run without the digests of its programs")
	}
	return nil
}

// Owned returns an error unless a file is one that this user may have put there, or the system: no link, and nobody else's.
func Owned(file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file", file)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s: belongs to another user", file)
	}
	return nil
}

// is reports whether a file is that build.
func (b Build) is(file string) bool {
	sum, err := Sum(file)
	return err == nil && sum == b.SHA256 && Owned(file) == nil
}

// supervisor returns the program that carries the run out: the old one, which is known to work; else the installed one. Where
// neither is what the run says, as in a home that was copied to another machine, it is the one that asks; that ends the run.
func (r Run) supervisor() (string, error) {
	switch {
	case r.Previous != "" && r.From.is(r.Previous):
		return r.Previous, nil
	case r.Kind == Restart && Owned(r.Binary) == nil, r.Kind != Restart && (r.From.is(r.Binary) || r.To.is(r.Binary)):
		return r.Binary, nil
	}
	return os.Executable()
}
