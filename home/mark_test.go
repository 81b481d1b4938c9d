package home_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

func TestMark(t *testing.T) {
	h := testworld.Home(t)
	const dir = home.ReportDir
	write := func(text string) {
		t.Helper()
		testworld.Must(t, h.WriteFile(dir+"/agent1.json", []byte(text), false))
	}
	age := func(d time.Duration) { // as if the directory had changed so long ago
		t.Helper()
		at := time.Now().Add(-d)
		testworld.Must(t, os.Chtimes(h.Path(dir), at, at))
	}
	if m := h.Mark("nothing"); m.Exists() || !m.Same(h.Mark("nothing")) {
		t.Errorf("of nothing: %+v", m)
	}
	write("one")
	if m := h.Mark(dir); !m.Exists() || m.Same(h.Mark(dir)) {
		t.Error("just changed, and yet a later change would have shown")
	}
	age(time.Minute)
	m := h.Mark(dir)
	testworld.Equal(t, m.Same(h.Mark(dir)), true, "changed, though nothing has happened")
	write("two")
	testworld.Equal(t, m.Same(h.Mark(dir)), false, "a replaced file does not show")
	age(-time.Hour) // the clock was set back
	if m := h.Mark(dir); m.Same(h.Mark(dir)) {
		t.Error("a time in the future, which a later change may have too, counts as settled")
	}
	age(time.Minute)
	m = h.Mark(dir)
	testworld.Must(t, os.Rename(h.Path(dir), h.Path("state/away")))
	testworld.Equal(t, m.Same(h.Mark(dir)), false, "a directory that has gone does not show")
	testworld.Must(t, os.Mkdir(h.Path(dir), 0o700))
	age(time.Minute)
	testworld.Equal(t, m.Same(h.Mark(dir)), false, "another directory at the path does not show")
}

// A home that is reached through a link is the home that it is by its own path; one that was
// copied or moved is another.
func TestOneHomeByTwoPaths(t *testing.T) {
	dir := t.TempDir()
	testworld.Must(t, os.Mkdir(filepath.Join(dir, "ann"), 0o700))
	testworld.Must(t, os.Symlink("ann", filepath.Join(dir, "link")))
	at := func(user string) home.Dir {
		t.Helper()
		return testworld.Got(home.Find(func(k string) string { return map[string]string{"HOME": filepath.Join(dir, user)}[k] }))(t)
	}
	h := at("ann")
	testworld.Got(h.Make())(t)
	if l := at("link"); l.Root() != h.Root() || l.TmuxSocket() != h.TmuxSocket() {
		t.Errorf("through a link: %s on %s, want %s on %s", l.Root(), l.TmuxSocket(), h.Root(), h.TmuxSocket())
	}
	if _, err := at("link").Make(); err != nil || at("ann").Root() != h.Root() {
		t.Errorf("after it was used through a link: %s, %v", at("ann").Root(), err)
	}
	testworld.Must(t, os.CopyFS(filepath.Join(dir, "bob"), os.DirFS(filepath.Join(dir, "ann"))))
	copied := filepath.Join(dir, "bob", ".netsky")
	testworld.Equal(t, at("bob").Root(), copied, "a copy")
	// What runs in the one is not the other's.
	bob := at("bob")
	testworld.Must(t, h.SaveKeeper("agent1", agent.Keeper{Process: proc.Self()}))
	testworld.Must(t, os.CopyFS(filepath.Join(copied, "state", "keepers"), os.DirFS(h.Path(home.KeeperDir))))
	testworld.ErrorIs(t, bob.Check(), home.ErrCopied, "Check")
	testworld.ErrorIs(t, testworld.Err(bob.Make()), home.ErrCopied, "Make")
	testworld.Must(t, home.Adopt(h))
	testworld.Must(t, home.Adopt(bob))
	testworld.Must(t, bob.Check())
	testworld.Got(bob.Make())(t)
	testworld.ErrorIs(t, testworld.Err(bob.LoadKeeper("agent1")), fs.ErrNotExist, "the copy's keeper")
	testworld.Got(h.LoadKeeper("agent1"))(t)
	testworld.Must(t, os.Rename(filepath.Join(dir, "ann"), filepath.Join(dir, "eve")))
	moved := filepath.Join(dir, "eve", ".netsky")
	testworld.Equal(t, at("eve").Root(), moved, "moved")
	testworld.Got(at("ann").Make())(t)
	testworld.Must(t, at("eve").Check())
}

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
