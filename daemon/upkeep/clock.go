package upkeep

import (
	"time"

	"netsky/home"
)

// ahead is how much further than at the last pass the clock is believed to be: a clock that
// is wrong for some hours, as when a machine begins with a wrong date, makes little old that
// is not.
const ahead = 24 * time.Hour

// clockFile has the time that the last pass believed in. A crash leaves the earlier one.
// Without the file, the clock is believed.
const clockFile = "state/upkeep.json"

type clock struct {
	SeenMS int64 `json:"seen_ms"`
}

// Careful returns the keeper for one pass, which believes the clock so far only: a clock
// that has gone years ahead lets each pass remove what became old within a day. One that was
// set back counts at once. An error says that the next pass won't know of this one.
func (k Keeper) Careful() (Keeper, error) {
	now := time.Now()
	if k.Now != nil {
		now = k.Now()
	}
	if c, err := home.Load[clock](k.Home, clockFile); err == nil {
		if most := time.UnixMilli(c.SeenMS).Add(ahead); now.After(most) {
			now = most
		}
	}
	k.Now = func() time.Time { return now }
	return k, k.Home.Save(clockFile, clock{now.UnixMilli()}, false)
}
