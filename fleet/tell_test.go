package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/fleet"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
)

// mustTell returns what a home tells and takes, and its records.
func mustTell(t *testing.T) (*fleet.Telling, *store.DB) {
	t.Helper()
	h := testworld.FastHome(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	t.Cleanup(func() { db.Close() })
	j := store.NewJournal(h)
	t.Cleanup(func() { j.Close() })
	known := func(context.Context) ([]view.Agent, uint64, error) { return nil, 0, nil }
	return fleet.NewTelling(spawn.New(spawn.Site{Home: h, Bus: bus.New(h, bus.Options{}), Journal: j}), known, func() *store.DB { return db }), db
}

func entries(t *testing.T, db *store.DB, f store.LogFilter) (lines []string) {
	t.Helper()
	f.Limit = 1000
	for _, e := range slices.Backward(testworld.Got(db.Logs(t.Context(), f))(t).Items) {
		lines = append(lines, fmt.Sprintf("%s %s %s", e.Part, e.Actor, e.Text))
	}
	return lines
}

// What one host has on record is on record on the owner's, once, and is told no further.
func TestEntriesTold(t *testing.T) {
	t.Parallel()
	there, theirs := mustTell(t)
	here, ours := mustTell(t)
	logged := func(part, text string) {
		testworld.Must(t, theirs.Apply(t.Context(), store.AddLog{Part: part, Actor: "agent3", Text: text}))
	}
	from := link.Host{Name: "build1"}
	take := func() {
		t.Helper()
		from.Last = testworld.Got(here.TakeEntries(t.Context(), from, testworld.Got(there.Entries(t.Context()))(t)))(t)
	}
	logged("watchdog", "died")
	take()
	take()
	from.Last = 0 // it crashed before that was noted
	take()
	logged("up", "started")
	take()
	all := []string{"watchdog@build1 agent3@build1 died", "up@build1 agent3@build1 started"}
	testworld.EqualList(t, entries(t, ours, store.LogFilter{}), all, "what is on record here")
	testworld.EqualList(t, entries(t, ours, store.LogFilter{Part: "watchdog"}), all[:1], "of the watchdogs")
	testworld.EqualList(t, entries(t, ours, store.LogFilter{Actor: agent.ID("agent3").At("build1")}), all, "of the agent")
	testworld.EqualList(t, entries(t, ours, store.LogFilter{Part: "watchdog", Own: true}), nil, "of this host")
	testworld.Equal(t, string(testworld.Got(here.Entries(t.Context()))(t)), `{"list":[]}`, "what is told of it further")
}

// A host that floods its log fills as much of the owner's records as the brake lets it.
func TestEntriesBraked(t *testing.T) {
	t.Parallel()
	here, ours := mustTell(t)
	from, last := link.Host{Name: "build1"}, int64(0)
	for range 20 {
		list := make([]store.Log, attention.MaxEntries)
		for i := range list {
			last++
			list[i] = store.Log{ID: last, Key: fmt.Sprint(last), Text: "flood"}
		}
		from.Last = testworld.Got(here.TakeEntries(t.Context(), from, testworld.Got(attention.TellEntries(list))(t)))(t)
	}
	if n := len(entries(t, ours, store.LogFilter{})); n < attention.MaxEntries || n > 2*attention.MaxEntries {
		t.Errorf("%d entries of 2000, want about %d", n, attention.MaxEntries)
	}
	other := link.Host{Name: "build2"}
	other.Last = testworld.Got(here.TakeEntries(t.Context(), other, testworld.Got(attention.TellEntries([]store.Log{{ID: 1, Text: "up"}}))(t)))(t)
	testworld.Equal(t, other.Last, 1, "what another host has told")
}
