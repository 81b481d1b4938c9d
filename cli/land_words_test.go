package cli

import (
	"testing"

	"netsky/work/record"
)

// What was pushed and nobody asked to merge has no address.
func TestLandingLinePushed(t *testing.T) {
	l := record.Landing{Agent: "agent1", Target: "refs/heads/main", Head: "0123456789", State: record.Pushed, Evidence: "x"}
	for url, want := range map[string]string{"": "agent1: pushed 0123456 for main", "https://x/1": "agent1: pushed 0123456 for main  https://x/1"} {
		if l.URL = url; landingLine(l) != want {
			t.Errorf("landingLine with the address %q: %q, want %q", url, landingLine(l), want)
		}
	}
}
