package home

import (
	"errors"
	"io/fs"
	"strings"
)

// MarkShown remembers files of the owner's mail as shown.
func (h Dir) MarkShown(names ...string) error {
	if len(names) == 0 {
		return nil
	}
	f, err := h.OpenAppend(OwnerRead)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(names, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// ShownMail are the names of the owner's envelopes that were shown. A line cut
// off by a crash names no file and does no harm.
func (h Dir) ShownMail() (map[string]bool, error) {
	data, err := h.ReadFile(OwnerRead, 64<<20)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	shown := make(map[string]bool)
	for name := range strings.SplitSeq(string(data), "\n") {
		if name != "" {
			shown[name] = true
		}
	}
	return shown, nil
}
