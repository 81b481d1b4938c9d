package breaker

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"netsky/home"
)

// List returns the states of all breakers that are not closed, by account. An unreadable
// one is in the error; the others are returned.
func List(h home.Dir) (list []State, err error) {
	d, err := h.OpenDir(home.BreakersDir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxBreakers)
	if err != nil && len(names) == 0 {
		return nil, nil // an empty directory reports io.EOF
	}
	var errs []error
	for _, name := range names {
		if !strings.HasSuffix(name, ".json") || strings.HasPrefix(name, ".") {
			continue
		}
		s, err := home.Load[State](h, home.BreakersDir+"/"+name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, fmt.Errorf("breaker: %w", err))
		case s.Tripped():
			list = append(list, s.sane(time.Now()))
		}
	}
	slices.SortFunc(list, func(a, b State) int { return strings.Compare(a.Account, b.Account) })
	return list, errors.Join(errs...)
}

const maxBreakers = 1000 // files read; there is one for each login
