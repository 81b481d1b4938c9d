package link

import "time"

// Hurry makes a host wait for others so long, and have that clock.
func (d *Deeds) Hurry(patience time.Duration, now func() time.Time) {
	d.patience, d.now = patience, now
}

// MaxDeed is the size of the largest request.
const MaxDeed = maxDeed
