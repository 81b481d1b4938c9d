package cli_test

import (
	"io/fs"
	"net"
	"os"
	"testing"

	"netsky/internal/testworld"
)

// A down of all, and so an uninstall, leaves no dead socket of netsky's own tmux
// server behind, whoever has left it; and removes nothing else of that name.
func TestOwnSocket(t *testing.T) {
	w := mustWorld(t)
	path := w.socket()
	is := func(want fs.FileMode, when string) {
		t.Helper()
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %s: %v, %v, want type %v", when, path, info, err, want)
		}
	}
	gone := func(when string) {
		t.Helper()
		testworld.ErrorIs(t, testworld.Err(os.Lstat(path)), fs.ErrNotExist, "%s: %s is still there", when, path)
	}
	must := func(err error) {
		t.Helper()
		testworld.Must(t, err)
	}
	w.must(t, "netsky", "up", "1", "--type", "demo", "--no-attach")
	is(fs.ModeSocket, "up")
	w.must(t, "netsky", "down")
	is(fs.ModeSocket, "down, with the ticker up")
	w.must(t, "netsky", "down", "--all")
	gone("down --all")

	// A session of a person's keeps the server.
	w.must(t, "tmux", "-f", os.DevNull, "-S", path, "new-session", "-d", "-s", "mine", "sleep 600")
	w.must(t, "netsky", "down", "--all")
	is(fs.ModeSocket, "a person's session is there")
	w.must(t, "tmux", "-S", path, "has-session", "-t", "=mine")
	w.must(t, "tmux", "-S", path, "kill-session", "-t", "=mine")
	w.must(t, "netsky", "down", "--all")
	gone("the person's session has ended")

	// A server that was killed leaves it too.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(err)
	stale.SetUnlinkOnClose(false)
	must(stale.Close())
	w.must(t, "netsky", "down", "--all", "--force")
	gone("nobody listens any more")

	must(os.WriteFile(path, nil, 0o600))
	w.must(t, "netsky", "down", "--all")
	is(0, "a file")
	must(os.Remove(path))
	must(os.Symlink("nowhere", path))
	w.must(t, "netsky", "down", "--all")
	is(fs.ModeSymlink, "a link")
	must(os.Remove(path))

	w.must(t, "netsky", "up", "1", "--no-attach")
	w.must(t, "netsky", "uninstall", "--purge", "--yes")
	gone("uninstall --purge")
}
