package home_test

import (
	"os"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"

	"golang.org/x/sys/unix"
)

// Purge leaves another file system alone, and a home that could not be purged
// whole can be purged again. Without the right to mount there is nothing to see.
func TestPurgeStaysOnItsFileSystem(t *testing.T) {
	for name, mount := range map[string]func(at, from string) error{
		"tmpfs": func(at, _ string) error { return unix.Mount("none", at, "tmpfs", 0, "") },
		"bind":  func(at, from string) error { return unix.Mount(from, at, "", unix.MS_BIND, "") },
	} {
		h := testworld.Home(t)
		dirs("state/codex-ui/agent1", "../outside")(t, h.Root())
		if err := mount(h.Path("state/codex-ui/agent1"), h.Path("../outside")); err != nil {
			t.Logf("%s: no mounts here: %v", name, err)
			return
		}
		t.Cleanup(func() { unix.Unmount(h.Path("state/codex-ui/agent1"), unix.MNT_DETACH) })
		files("state/codex-ui/agent1/x")(t, h.Root())
		testworld.Fails(t, testworld.Err(home.Purge(h)), "", "%s in the home: no error", name)
		testworld.Equal(t, testworld.Err(os.Stat(h.Path("state/codex-ui/agent1/x"))), nil, "%s: its file", name)
		testworld.Equal(t, h.Check(), nil, "%s: after a purge that failed", name)
		testworld.Must(t, unix.Unmount(h.Path("state/codex-ui/agent1"), 0))
		if left, err := home.Purge(h); err != nil || len(left) > 0 {
			t.Errorf("%s: the second Purge() = %q, %v", name, left, err)
		}
	}
}
