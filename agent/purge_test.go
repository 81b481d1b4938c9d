package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"netsky/agent"
)

func TestPurge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(*testing.T, string) // in the home
		left  []string
	}{
		{"a home as it was made", nil, nil},
		{"in use", all(dirs("channels/agent/agent1/inbox", "channels/agent/owner/poison", "workspaces/agent1/p/.git", "run/brakes", "state/new"),
			files("netsky.toml", "tmux.conf", "meta.db", "meta.db-wal", "meta.db-shm", ".tmp-1-1", "channels/agent/agent1/seen",
				"channels/agent/agent1/inbox/x.json", "workspaces/agent1/p/.git/HEAD", "logs/netsky.jsonl", "run/url", "state/new/x")), nil},
		{"with files of a person's", all(dirs("photos", "channels/mine", "channels/agent/friends", "workspaces/tools"),
			files("0.md", "meta.db.damaged", "netsky.toml", "channels/agent/notes", "workspaces/x", "workspaces/tools/x", "photos/x")),
			[]string{"0.md", "channels/agent/friends", "channels/agent/notes", "channels/mine", "meta.db.damaged", "photos", "workspaces/tools", "workspaces/x"}},
		{"a directory with the name of a file of ours", dirs("tmux.conf"), []string{"tmux.conf"}},
		{"links in our places", func(t *testing.T, home string) {
			outside(t, home)
			if err := os.RemoveAll(filepath.Join(home, "logs")); err != nil {
				t.Fatal(err)
			}
			all(link("../outside", "logs"), link("../outside/x", "meta.db"), link("../../../outside", "channels/agent/agent1"))(t, home)
		}, []string{"channels/agent/agent1", "logs", "meta.db"}},
		{"links within what goes", func(t *testing.T, home string) {
			outside(t, home)
			all(link("../../outside", "state/codex/l"), link("../outside/x", "logs/l"), dirs("workspaces/agent2"), link("../../../outside", "workspaces/agent2/l"))(t, home)
		}, nil},
		{"a thousand files and deep directories", func(t *testing.T, home string) {
			dir := filepath.Join(home, "workspaces/agent1")
			for range 30 {
				dir = filepath.Join(dir, "d")
			}
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range 1200 {
				if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i%26))+string(rune(0x4e00+i))), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := mustHome(t)
			out := filepath.Join(filepath.Dir(h.Dir()), "outside")
			if tt.setup != nil {
				tt.setup(t, h.Dir())
			}
			before := tree(t, out)
			left, err := h.Purge()
			slices.Sort(left)
			if err != nil || !slices.Equal(left, tt.left) {
				t.Errorf("Purge() = %q, %v; want %q", left, err, tt.left)
			}
			for _, name := range tt.left {
				if _, err := os.Lstat(h.Path(name)); err != nil {
					t.Errorf("said to be left: %v", err)
				}
			}
			if after := tree(t, out); !slices.Equal(before, after) {
				t.Errorf("outside the home: %q became %q", before, after)
			}
			names, err := os.ReadDir(h.Dir())
			if len(tt.left) == 0 && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the home is still there: %v, %v", names, err)
			}
			for _, name := range []string{agent.MarkerFile, agent.ConfigFile, "state", "run"} {
				if _, err := os.Lstat(h.Path(name)); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is still there: %v", name, err)
				}
			}
		})
	}
}

func outside(t *testing.T, home string) {
	all(dirs("../outside/d"), files("../outside/x", "../outside/d/y"))(t, home)
}

func TestPurgeRefused(t *testing.T) {
	h := mustHome(t)
	if err := os.Remove(h.Path(agent.MarkerFile)); err != nil {
		t.Fatal(err)
	}
	files("letter.txt")(t, h.Dir())
	before := tree(t, h.Dir())
	if _, err := h.Purge(); !errors.Is(err, agent.ErrNotHome) {
		t.Errorf("Purge() of a directory with other content = %v", err)
	}
	if after := tree(t, h.Dir()); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
}
