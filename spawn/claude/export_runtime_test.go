package claude

import "time"

// WithPatience is a runtime that waits that long to hear of a login.
func WithPatience(r *Runtime, d time.Duration) *Runtime {
	r.patience = d
	return r
}
