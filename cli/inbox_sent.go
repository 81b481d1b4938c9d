package cli

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"netsky/cli/view"
	"netsky/store"
)

// maxSent is how many messages `inbox --sent` lists at once, if -n does not say it.
const maxSent = 40

// inboxSent lists the newest messages that the owner sent, oldest first, with what became
// of each.
func (a inboxVerbs) inboxSent(c *cli.Context) error {
	limit := maxSent
	if c.IsSet("n") {
		limit = c.Int("n")
	}
	if limit < 1 || limit > 1000 {
		return usagef("inbox: --sent -n %d: must be 1 to 1000", limit)
	}
	h, err := a.home()
	if err != nil {
		return err
	}
	db, err := a.freshRecords(c.Context, h)
	if errors.Is(err, fs.ErrNotExist) {
		a.warn("no records yet: no agent was ever started here")
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	list, cursor, err := view.SentMessages(c.Context, db, h, store.Page{Limit: limit, Cursor: c.String("cursor")})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"messages": list, "cursor": cursor})
	}
	if cursor != "" {
		a.warn("older ones are not listed; `netsky find WORD` finds them")
	}
	for _, sent := range slices.Backward(list) {
		for _, line := range sent.Lines() {
			a.print("%s", line)
		}
	}
	if len(list) == 0 {
		a.print("you have sent nothing yet; `netsky ask AGENT TEXT` sends a message")
	}
	return nil
}
