package home_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// Walk tells what is netsky's from what is not, follows no link, and looks into nothing
// that is another's.
func TestWalk(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	testworld.Got(h.Make())(t)
	for _, dir := range []string{"state/mine", "channels/agent/agent1/inbox", "channels/agent/agent1/attach/deep", "workspaces/agent1/repo", "channels/agent/other"} {
		testworld.Must(t, os.MkdirAll(h.Path(dir), 0o700))
	}
	for _, file := range []string{
		"netsky.toml", "state/owner-read", "state/mine/file", "state/.tmp-1-2", "channels/agent/agent1/inbox/m.json",
		"channels/agent/agent1/inbox/note", "channels/agent/agent1/attach/deep/x", "workspaces/agent1/repo/x", "mine", ".tmp-3-4",
	} {
		testworld.Must(t, os.WriteFile(h.Path(file), []byte("x"), 0o600))
	}
	testworld.Must(t, os.Symlink("/", h.Path("channels/agent/agent1/claimed")))
	for _, name := range []string{"run/cx-1.sock", "run/daemon.sock"} { // Codex makes a link for its socket
		testworld.Must(t, os.Symlink("/tmp/nowhere", h.Path(name)))
	}
	got := make(map[string]string)
	testworld.Must(t, home.Walk(t.Context(), h, func(i home.Item) {
		words := ""
		for word, is := range map[string]bool{"own": i.Own(), "box": i.Box, "temporary": i.Temporary(), "named": i.Dir || i.File} {
			if is {
				words += " " + word
			}
		}
		list := strings.Fields(words)
		slices.Sort(list)
		got[i.Rel] = strings.Join(list, " ")
	}))
	for rel, want := range map[string]string{
		"state": "named own", "netsky.toml": "named own", "state/owner-read": "named own", "state/mine": "", "state/.tmp-1-2": "named own temporary",
		".tmp-3-4": "named own temporary", "channels/agent/agent1": "box named own", "channels/agent/agent1/inbox/m.json": "box named own",
		"channels/agent/agent1/inbox/note": "box", "channels/agent/agent1/claimed": "box named", "channels/agent/agent1/attach": "box named own",
		"run/cx-1.sock": "named own", "run/daemon.sock": "named",
		"channels/agent/other": "box", "workspaces/agent1": "named own",
	} {
		if have, ok := got[rel]; !ok || have != want {
			t.Errorf("%s: %q (%v), want %q", rel, have, ok, want)
		}
	}
	for _, rel := range []string{"mine", "state/mine/file", "channels/agent/agent1/attach/deep", "workspaces/agent1/repo", "channels/agent/agent1/claimed/etc"} {
		if _, ok := got[rel]; ok {
			t.Errorf("%s: was looked at", rel)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.Fails(t, home.Walk(ctx, h, func(home.Item) {}), "", "a walk without time has no error")
}

// Restrict sets the mode of a file or directory, and of nothing behind a link.
func TestRestrict(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	testworld.Got(h.Make())(t)
	outside := t.TempDir() + "/file"
	for _, file := range []string{outside, h.Path("state/owner-read")} {
		testworld.Must(t, os.WriteFile(file, nil, 0o644))
	}
	testworld.Must(t, os.Symlink(outside, h.Path("state/ticker.json")))
	testworld.Must(t, os.Chmod(h.Path("state/codex"), 0o755))
	for rel, fails := range map[string]bool{"state/owner-read": false, "state/codex": false, "state/ticker.json": true, "state/none": true} {
		if err := home.Restrict(h, rel); (err != nil) != fails {
			t.Errorf("%s: %v", rel, err)
		}
	}
	for path, want := range map[string]os.FileMode{outside: 0o644, h.Path("state/owner-read"): 0o600, h.Path("state/codex"): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", path, info.Mode(), err, want)
		}
	}
}
