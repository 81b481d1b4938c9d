package land_test

import (
	"strings"
	"testing"

	"netsky/work/land"
)

// A long message is kept whole by a squash of one commit.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	at := y.clone("agent1")
	long := "subject\n\n" + strings.Repeat("a line of the message\n", 3000) + "its end"
	at.Write("b.txt", "b\n")
	at.Git("add", "b.txt")
	at.Git("commit", "-q", "-m", long)
	y.land("agent1", land.LandOptions{How: land.Squash, Unchecked: true})
	if got := y.Git("log", "-1", "--format=%B"); !strings.HasPrefix(got, long) || !strings.HasSuffix(got, "Netsky-Agent: agent1") {
		t.Errorf("%d bytes, of %d: %q", len(got), len(long), got[max(0, len(got)-100):])
	}
}
