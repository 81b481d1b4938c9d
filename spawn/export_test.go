package spawn

import "time"

// SetTimes shortens what takes long: up's wait for an agent to be ready, down's
// for one to close. 0 is the default.
func (l *Launcher) SetTimes(ready, down time.Duration) {
	l.times = times{ready: ready, down: down}
}
