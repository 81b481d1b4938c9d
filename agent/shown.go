package agent

import (
	"errors"
	"io/fs"
	"strings"
)

// ShownMail are the names of the owner's envelopes that were shown. A line cut
// off by a crash names no file and does no harm.
func (h Home) ShownMail() (map[string]bool, error) {
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
