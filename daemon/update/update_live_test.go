//go:build live

package update_test

import (
	"time"

	"netsky/daemon/update"
)

func init() {
	bads = append(bads,
		bad{fault: "hanglater", why: "does not answer", set: settings{Watch: 10 * time.Second}},
		bad{fault: "nomail", why: "mail is not moved", set: settings{Within: 15 * time.Second}},
		bad{fault: "grows", why: "MB of memory", set: settings{Watch: 30 * time.Second, Memory: grownTo / 2}},
	)
	kills = append(kills,
		kill{"undo", func(w *world) update.Run { return w.prepare(update.Update, "v2", "migrate", nil) }, update.Undone, "v1", nil, true},
		kill{"rollback", func(w *world) update.Run { return w.rollback("") }, update.Done, "v0", []string{"netsky.previous"}, true},
		kill{"restart", func(w *world) update.Run { return w.prepare(update.Restart, "", "", nil) }, update.Done, "v1", nil, false},
	)
}
