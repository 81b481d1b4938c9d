package cli

import (
	"errors"
	"io/fs"
	"os/exec"

	"netsky/cli/view"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/store"
)

// hints returns what to do next about an error. Most errors carry it from where they
// are made; what depends on the user's environment is here.
func (a *app) hints(err error) []string {
	if text := advice.Of(err); text != "" {
		return []string{text}
	}
	h, found := home.Find(a.getenv)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		name := "tmux"
		if missing := new(exec.Error); errors.As(err, &missing) {
			name = missing.Name
		}
		return []string{"on Debian: apt-get install " + name + "; on macOS: brew install " + name}
	case errors.Is(err, home.ErrNotHome):
		list := []string{"set NETSKY_HOME to a directory that is empty or does not exist yet; without NETSKY_HOME, netsky uses ~/.netsky"}
		if found == nil && errors.Is(err, home.ErrOccupied) {
			list = append(list, "to let netsky use this one beside your own files: touch "+advice.Word(h.Path(home.MarkerFile)))
		}
		return list
	case errors.Is(err, home.ErrHomeOpen) && found == nil:
		return []string{"netsky did not create it and leaves its mode alone; to keep other users out: chmod 700 " + advice.Word(h.Root())}
	case store.Damaged(err) && found == nil:
		return []string{view.RepairRecords(h)}
	case errors.Is(err, fs.ErrPermission):
		return []string{"the home and everything below it must belong to you: " + a.getenv("HOME") + "/.netsky, or NETSKY_HOME"}
	}
	return nil
}
