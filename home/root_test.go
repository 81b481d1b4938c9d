package home_test

import (
	"os"
	"path/filepath"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// A home that is reached through a link is the home that it is by its own path; one that was
// copied or moved is another.
func TestOneHomeByTwoPaths(t *testing.T) {
	dir := t.TempDir()
	testworld.Must(t, os.Mkdir(filepath.Join(dir, "ann"), 0o700))
	testworld.Must(t, os.Symlink("ann", filepath.Join(dir, "link")))
	at := func(user string) home.Dir {
		t.Helper()
		h := testworld.Got(home.Find(func(k string) string { return map[string]string{"HOME": filepath.Join(dir, user)}[k] }))(t)
		return h
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
	testworld.Must(t, os.Rename(filepath.Join(dir, "ann"), filepath.Join(dir, "eve")))
	moved := filepath.Join(dir, "eve", ".netsky")
	testworld.Equal(t, at("eve").Root(), moved, "moved")
}
