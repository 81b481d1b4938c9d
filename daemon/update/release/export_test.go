package release

import (
	"testing"
	"time"
)

var (
	ParseSums = parseSums
	NameOf    = nameOf
)

// SetManagerTime sets how long a package manager may take, for a test.
func SetManagerTime(t *testing.T, d time.Duration) {
	before := managerTime
	managerTime = d
	t.Cleanup(func() { managerTime = before })
}
