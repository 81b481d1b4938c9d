package upkeep

import (
	"fmt"
	"time"

	"netsky/agent/home"
)

const (
	// stride is how far the clock may have gone forward since the last pass without doubt.
	stride = 48 * time.Hour
	// settles is how long nothing is removed after it went further: a machine that begins
	// with a wrong date gets the right one soon.
	settles = 24 * time.Hour
)

// clockFile is what is known of the clock. A crash leaves the earlier state; without the file
// the clock is believed.
const clockFile = "state/upkeep.json"

type clock struct {
	SeenMS  int64 `json:"seen_ms"`            // at the last pass
	SinceMS int64 `json:"since_ms,omitempty"` // when it had gone far ahead; 0: it had not
}

// Wait returns why nothing should be removed now, or "": the age of all that is kept rests
// on the clock, and for a day after it went far ahead it is not believed. If it is set back
// meanwhile, that is over. It is called before each pass.
func (k *Keeper) Wait() (why string, err error) {
	now := time.Now()
	if k.Now != nil {
		now = k.Now()
	}
	c, err := home.Load[clock](k.Home, clockFile)
	if err != nil {
		c = clock{SeenMS: now.UnixMilli()}
	}
	gone := now.Sub(time.UnixMilli(c.SeenMS))
	since := time.UnixMilli(c.SinceMS)
	switch {
	case c.SinceMS != 0 && (now.Before(since) || now.Sub(since) >= settles):
		c.SinceMS = 0
	case c.SinceMS == 0 && gone > stride:
		c.SinceMS, since = now.UnixMilli(), now
	}
	c.SeenMS = now.UnixMilli()
	if err := k.Home.Save(clockFile, c, false); err != nil {
		return "", err
	}
	if c.SinceMS == 0 {
		return "", nil
	}
	return fmt.Sprintf("the clock went far ahead at once: nothing is removed before %s, in case it is wrong",
		since.Add(settles).Local().Format("2006-01-02 15:04")), nil
}
