package attention

import (
	"fmt"

	"netsky/home"
)

// A Blind says since when the daemon can't look after the agents, and why; "" if it can.
type Blind struct {
	SinceMS int64  `json:"since_ms"`
	Why     string `json:"why"`
}

// ID is that of the mail about it.
func (b Blind) ID() string { return fmt.Sprintf("blind-%d", b.SinceMS) }

const blindFile = "state/watchdog/blind.json"

// SaveBlind replaces what LoadBlind returns.
func SaveBlind(h home.Dir, b Blind) error {
	if b.Why == "" {
		return h.Remove(blindFile)
	}
	return h.Save(blindFile, b, false)
}

// LoadBlind returns what SaveBlind saved.
func LoadBlind(h home.Dir) Blind {
	b, _ := home.Load[Blind](h, blindFile)
	return b
}
