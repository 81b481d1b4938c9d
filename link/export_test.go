package link

import (
	"log/slog"
	"time"
)

// Troubles returns what is reported once something about the mail has failed.
func Troubles(err error) map[string]Trouble {
	p := report{log: slog.New(slog.DiscardHandler)}
	p.begin("build1", "")
	p.trouble("mail", err)
	return p.r.Troubles
}

// Hurry makes a host wait for others so long, and have that clock.
func (d *Deeds) Hurry(patience time.Duration, now func() time.Time) {
	d.patience, d.now = patience, now
}

// MaxDeed is the size of the largest request.
const MaxDeed = maxDeed
