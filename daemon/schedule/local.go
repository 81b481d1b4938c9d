package schedule

import (
	"os"
	"sync"
	"time"
)

// zoneFile holds the machine's time zone, unless TZ names another.
const zoneFile = "/etc/localtime"

// Now returns the time in the machine's current time zone.
func Now() time.Time { return local()() }

// local returns a clock that notices when the machine's time zone is changed: Go reads it
// once for each process.
func local() func() time.Time {
	if _, set := os.LookupEnv("TZ"); set {
		return time.Now
	}
	var mu sync.Mutex // guards the fields below
	var read os.FileInfo
	zone := time.Local
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if info, err := os.Stat(zoneFile); err == nil && (read == nil || !os.SameFile(info, read) || !info.ModTime().Equal(read.ModTime())) {
			read = info
			if data, err := os.ReadFile(zoneFile); err == nil {
				if loc, err := time.LoadLocationFromTZData("Local", data); err == nil {
					zone = loc
				}
			}
		}
		return time.Now().In(zone)
	}
}
