package home_test

import (
	"maps"
	"slices"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// What was settled counts as shown, and is known as settled until it was shown.
func TestSettledMail(t *testing.T) {
	h := testworld.Home(t)
	var cached home.Shown
	check := func(shown, settled string) {
		t.Helper()
		all, err := home.ShownMail(h).Names()
		now, waits, err2 := new(home.Shown).Names(h)
		all2, waits2, err3 := cached.Names(h)
		if err != nil || err2 != nil || err3 != nil || !maps.Equal(all, now) || !maps.Equal(all, all2) || !maps.Equal(waits, waits2) {
			t.Fatalf("%v %v %v: %v and %v, %v and %v", err, err2, err3, all, all2, waits, waits2)
		}
		if have := joined(all) + "; " + joined(waits); have != shown+"; "+settled {
			t.Errorf("shown; settled: %s, want %s; %s", have, shown, settled)
		}
	}
	check("", "")
	testworld.Must(t, home.ShownMail(h).Mark("a"))
	testworld.Must(t, home.ShownMail(h).MarkSettled("a", "b", "c"))
	check("a b c", "b c")
	testworld.Must(t, home.ShownMail(h).Mark("b"))
	check("a b c", "c")
}

func joined(names map[string]bool) (text string) {
	for i, name := range slices.Sorted(maps.Keys(names)) {
		if i > 0 {
			text += " "
		}
		text += name
	}
	return text
}
