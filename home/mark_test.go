package home_test

import (
	"os"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
)

func TestMark(t *testing.T) {
	h := testworld.Home(t)
	const dir = home.ReportDir
	write := func(text string) {
		t.Helper()
		if err := h.WriteFile(dir+"/agent1.json", []byte(text), false); err != nil {
			t.Fatal(err)
		}
	}
	age := func(d time.Duration) { // as if the directory had changed so long ago
		t.Helper()
		at := time.Now().Add(-d)
		if err := os.Chtimes(h.Path(dir), at, at); err != nil {
			t.Fatal(err)
		}
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
	if !m.Same(h.Mark(dir)) {
		t.Error("changed, though nothing has happened")
	}
	write("two")
	if m.Same(h.Mark(dir)) {
		t.Error("a replaced file does not show")
	}
	age(-time.Hour) // the clock was set back
	if m := h.Mark(dir); m.Same(h.Mark(dir)) {
		t.Error("a time in the future, which a later change may have too, counts as settled")
	}
	age(time.Minute)
	m = h.Mark(dir)
	if err := os.Rename(h.Path(dir), h.Path("state/away")); err != nil {
		t.Fatal(err)
	}
	if m.Same(h.Mark(dir)) {
		t.Error("a directory that has gone does not show")
	}
	if err := os.Mkdir(h.Path(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	age(time.Minute)
	if m.Same(h.Mark(dir)) {
		t.Error("another directory at the path does not show")
	}
}
