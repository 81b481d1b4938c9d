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
	testworld.Must(t, os.Rename(h.Path(dir), h.Path("state/away")))
	if m.Same(h.Mark(dir)) {
		t.Error("a directory that has gone does not show")
	}
	testworld.Must(t, os.Mkdir(h.Path(dir), 0o700))
	age(time.Minute)
	if m.Same(h.Mark(dir)) {
		t.Error("another directory at the path does not show")
	}
}
