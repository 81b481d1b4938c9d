package tmux_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

func mustLook(tb testing.TB, s *tmux.Server, p tmux.Pane) tmux.Look {
	tb.Helper()
	l, err := s.Look(tb.Context(), p)
	testworld.Must(tb, err, "Look(%s)", p.ID)
	return l
}

// lookUntil looks until the pane is as it should be.
func lookUntil(tb testing.TB, s *tmux.Server, p tmux.Pane, what string, ok func(tmux.Look) bool) tmux.Look {
	tb.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; {
		l := mustLook(tb, s, p)
		if ok(l) {
			return l
		}
		if time.Now().After(end) {
			tb.Fatalf("never %s: %+v", what, l)
		}
		<-tick.C
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	began := time.Now().Truncate(time.Second)
	panes := mustStart(t, s,
		tmux.Session{Name: "agent1", Command: `printf 'one\n\ntwo > '; exec cat`},
		tmux.Session{Name: "agent10", Command: "exec cat"})
	at := slices.IndexFunc(panes, func(p tmux.Pane) bool { return p.Session == "agent1" })
	p := panes[at]
	l := lookUntil(t, s, p, "printed", func(l tmux.Look) bool { return l.CursorRow() == "two >" })
	if l.Row != 2 || l.Column != 6 || !l.Cursor || l.InMode || l.Dead || l.Screen[0] != "one" {
		t.Errorf("Look() = %+v", l)
	}
	if !l.Person.IsZero() || l.Output.Before(began) || time.Since(l.Output) > time.Minute {
		t.Errorf("Look(): output %v, person %v; began %v", l.Output, l.Person, began)
	}

	// A person comes, writes, and goes.
	outer := newServer(t)
	screen := mustStart(t, outer, tmux.Session{Name: "outer", Command: strings.Join(quoted(s.Argv("attach-session", "-t", "=agent1")), " ")})[0]
	l = lookUntil(t, s, p, "attached", func(l tmux.Look) bool { return !l.Person.IsZero() })
	came := l.Person
	lookUntil(t, outer, screen, "drawn", func(l tmux.Look) bool { return strings.Contains(strings.Join(l.Screen, "\n"), "two >") })
	testworld.Must(t, outer.Keys(t.Context(), screen.ID, "draft"))
	l = lookUntil(t, s, p, "typed", func(l tmux.Look) bool { return l.CursorRow() == "two > draft" })
	if l.Person.Before(came) || l.Column != 11 {
		t.Errorf("Look() after keys: %+v, came %v", l, came)
	}
	mustStop(t, outer)
	if left := mustLook(t, s, p); left.Person.Before(l.Person) {
		t.Errorf("Look() after the person left: %v, was %v", left.Person, l.Person)
	}

	// What a program or a script does is no person.
	other := panes[1-at]
	testworld.Must(t, s.Keys(t.Context(), other.ID, "x"))
	l = lookUntil(t, s, other, "typed", func(l tmux.Look) bool { return l.CursorRow() == "x" })
	testworld.Equal(t, l.Person.IsZero(), true, "Look().Person = %v, want none", l.Person)
	testworld.Fails(t, testworld.Err(s.Look(t.Context(), tmux.Pane{Session: "agent10", ID: p.ID})), "", "Look of a pane of another session: no error")
}

func quoted(argv []string) []string {
	list := []string{"exec", "env", "-u", "TMUX"}
	for _, w := range argv {
		list = append(list, "'"+w+"'")
	}
	return list
}
