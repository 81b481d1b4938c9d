//go:build live

package spawn_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// A prompt that is as it has to be is left alone; any other is replaced, whatever
// has taken its place.
func TestUpWritesPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := w.home.Path(home.PromptFile("agent1"))
	w.upReady(demo{}, "agent1")
	want, err := os.ReadFile(path)
	if err != nil || len(want) == 0 {
		t.Fatalf("%d bytes, %v", len(want), err)
	}
	first := testworld.Got(os.Stat(path))(t)
	for _, c := range []struct {
		name  string
		spoil func() error
		same  bool
	}{
		{"nothing", func() error { return nil }, true},
		{"shorter", func() error { return os.Truncate(path, int64(len(want)-1)) }, false},
		{"longer", func() error { return os.WriteFile(path, append(slices.Clone(want), 'x'), 0o600) }, false},
		{"other", func() error { return os.WriteFile(path, bytes.Repeat([]byte("x"), len(want)), 0o600) }, false},
		{"gone", func() error { return os.Remove(path) }, false},
		{"a link", func() error {
			other := filepath.Join(w.dir, "other")
			return errors.Join(os.WriteFile(other, want, 0o600), os.Remove(path), os.Symlink(other, path))
		}, false},
	} {
		w.down(spawn.DownOptions{})
		testworld.Must(t, c.spoil())
		w.upReady(demo{}, "agent1")
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v; want the %d of before", c.name, len(got), err, len(want))
		}
		now, err := os.Lstat(path)
		if err != nil || !now.Mode().IsRegular() {
			t.Errorf("%s: %v, %v", c.name, now, err)
		}
		if c.same && (!os.SameFile(first, now) || !first.ModTime().Equal(now.ModTime())) {
			t.Errorf("%s: written anew", c.name)
		}
	}
}

// A tmux server that hangs in its exit keeps no up from its work.
func TestUpReapsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), refuserRole+"="+w.socket)
	testworld.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	testworld.WaitOr(w, func() bool { _, err := os.Stat(w.socket); return err == nil }, func() string { return "no socket" })
	w.upReady(demo{}, "agent1")
	<-ended
	w.answers("agent1")
}
