package appserver_test

import (
	"testing"

	"netsky/codex/appserver"
)

// A subscriber that is too slow loses the oldest events, and is told how many.
func TestSubscriberTooSlow(t *testing.T) {
	t.Parallel()
	var f appserver.Feed
	events, stop := f.Subscribe()
	const all = 1000
	for range all {
		f.Emit(appserver.Event{Kind: appserver.Message})
	}
	f.Emit(appserver.Event{Kind: appserver.TurnCompleted})
	stop()
	stop()
	seen, missed, last := 0, 0, appserver.EventKind("")
	for e := range events {
		seen++
		missed += e.Missed
		last = e.Kind
	}
	if seen+missed != all+1 || seen > 256 || last != appserver.TurnCompleted {
		t.Errorf("%d seen, %d missed, the last a %s; want %d in all, the last a %s", seen, missed, last, all+1, appserver.TurnCompleted)
	}
}
