package home_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

func TestPurge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setup func(*testing.T, string) // in the home
		left  []string
	}{
		{"a home as it was made", nil, nil},
		{"in use", all(dirs("channels/agent/agent1/inbox", "channels/agent/owner/poison", "workspaces/agent1/p/.git", "workspaces/.scratch/abcde23456/tree", "run/brakes", "state/codex-ui/agent1/log", "state/unproved", "state/self", "state/link/join", "state/link/hosts", "channels/link/build1", "state/link/server/jetstream", "channels/agent/agent1/attach"),
			files("netsky.toml", "tmux.conf", "meta.db", "meta.db-wal", "meta.db-shm", "meta.db-restore", ".tmp-1-1", "channels/agent/agent1/seen", "channels/agent/agent1/journal",
				"logs/check-abcde23456.log", "workspaces/.scratch/abcde23456/repository", "workspaces/.scratch/abcde23456/tree/x",
				"channels/agent/agent1/inbox/x.json", "workspaces/agent1/p/.git/HEAD", "channels/agent/agent1/attach/a.png",
				"logs/netsky.jsonl", "logs/netsky-2026-11-22T07-23-29.123.jsonl", "logs/daemon.log", "run/url", "run/token", "run/daemon.pid", "run/cx-1.json",
				"run/brakes/agent1-owner", "run/lock/up", "run/lock/receiver-owner", "run/lock/codex-agentinfinity", "run/lock/escalate", "run/lock/phone", "run/lock/check-agent1", "run/lock/landing", "run/lock/self", "logs/supervisor.log",
				"state/self/run.json", "state/self/installed.json", "state/self/look.json", "state/self/check.db", "state/self/.tmp-0-0", "state/self/self-17.db", "state/self/self-17-undone.db-wal", "state/self/self-17-aside.db-ab12",
				"channels/link/build1/reports", "state/link/key", "state/link/self.json", "state/link/team.json", "state/link/server.json", "state/link/asked.json", "state/link/report.json", "state/link/sent.json", "state/link/tunnels.json", "state/link/report.json", "state/link/hosts/build1.json", "state/link/join/U"+strings.Repeat("A", 55)+".json", "state/link/server/jetstream/x", "run/link.sock", "run/link-server.json", "run/lock/link", "run/lock/link-server",
				"state/owner-read", "state/attention.json", "state/daemon.json", "state/phone-access.json", "state/phone-pairing.json",
				"state/unproved/agent1.json", "state/events/agent1.jsonl", "state/events/agent1.jsonl.1", "state/launch/agent1.json", "state/launch/.tmp-12-3", "state/prompts/agent0.md",
				"state/desired/daemon", "state/desired/agent9999", "state/spool/00000000000000000001-0000000001-ab12.json", "state/codex/agent1.json.bad-17", "state/demo/agent1.edits.json",
				"state/codex-ui/agent1/config.toml", "state/codex-ui/agent1/log/x", "state/approvals/ab12cd.answer")), nil},
		{"directories and files of a person's among ours", all(dirs("state/mydir", "state/self", "run/lock/agent1", "channels/agent/agent1/inbox/mine", "state/launch/agent1.json.d", "state/codex-ui/mine"),
			files("state/mydir/notes.txt", "state/self/self-mine.db", "state/self/mine.db", "logs/2025.log", "run/thesis.txt", "run/lock/mine", "state/launch/agent1.json", "state/launch/agent1.txt",
				"channels/agent/agent1/letter", "channels/agent/agent1/inbox/x.json", "state/codex-ui/mine/x", ".tmp-mine")),
			[]string{".tmp-mine", "channels/agent/agent1/inbox/mine", "channels/agent/agent1/letter", "logs/2025.log", "run/lock/agent1", "run/lock/mine", "run/thesis.txt",
				"state/codex-ui/mine", "state/launch/agent1.json.d", "state/launch/agent1.txt", "state/mydir", "state/self/mine.db", "state/self/self-mine.db"}},
		{"mail, and what a person keeps beside it", all(dirs("channels/agent/agent1/inbox", "channels/agent/agent1/poison", "channels/agent/agent1/delivered", "channels/agent/agent1/outbox", "channels/agent/agent1/sent", "channels/agent/agent1/claimed"), files("channels/agent/agent1/inbox/x.json", "channels/agent/agent1/inbox/.y\n.json.tmp", "channels/agent/agent1/.seen.tmp", "channels/agent/agent1/.journal.tmp",
			"channels/agent/agent1/poison/a b.json", "channels/agent/agent1/poison/a b.json.why", "channels/agent/agent1/delivered/"+strings.Repeat("é", 125)+".why",
			"channels/agent/agent1/delivered/.tmp-1-2", "channels/agent/agent1/inbox/report.txt", "channels/agent/agent1/inbox/.draft.json", "channels/agent/agent1/outbox/notes.tmp",
			"channels/agent/agent1/inbox/hello.json~", "channels/agent/agent1/sent/why.why", "channels/agent/agent1/claimed/.x.json.swp", "channels/agent/agent1/delivered/foo.txt")),
			[]string{"channels/agent/agent1/claimed/.x.json.swp", "channels/agent/agent1/delivered/foo.txt", "channels/agent/agent1/inbox/.draft.json", "channels/agent/agent1/inbox/hello.json~",
				"channels/agent/agent1/inbox/report.txt", "channels/agent/agent1/outbox/notes.tmp", "channels/agent/agent1/sent/why.why"}},
		{"with files of a person's", all(dirs("photos", "channels/mine", "channels/agent/friends", "workspaces/tools"),
			files("0.md", "meta.db.damaged", "netsky.toml", "channels/agent/notes", "workspaces/x", "workspaces/tools/x", "photos/x")),
			[]string{"0.md", "channels/agent/friends", "channels/agent/notes", "channels/mine", "meta.db.damaged", "photos", "workspaces/tools", "workspaces/x"}},
		{"a directory with the name of a file of ours", dirs("tmux.conf"), []string{"tmux.conf"}},
		{"links in our places", func(t *testing.T, home string) {
			outside(t, home)
			testworld.Must(t, os.RemoveAll(filepath.Join(home, "logs")))
			all(link("../outside", "logs"), link("../outside/x", "meta.db"), link("../../../outside", "channels/agent/agent1"))(t, home)
		}, []string{"channels/agent/agent1", "logs", "meta.db"}},
		{"links within what goes", func(t *testing.T, home string) {
			outside(t, home)
			all(dirs("channels/agent/agent1/attach"), link("../../../../outside", "channels/agent/agent1/attach/l"), dirs("workspaces/agent2"), link("../../../outside", "workspaces/agent2/l"), link("../outside/x", "run/cx-2.sock"))(t, home)
		}, nil},
		{"a thousand files and deep directories", func(t *testing.T, home string) {
			dir := filepath.Join(home, "workspaces/agent1")
			for range 30 {
				dir = filepath.Join(dir, "d")
			}
			testworld.Must(t, os.MkdirAll(dir, 0o700))
			for i := range 1200 {
				testworld.Must(t, os.WriteFile(filepath.Join(dir, string(rune('a'+i%26))+string(rune(0x4e00+i))), nil, 0o600))
			}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := testworld.Home(t)
			out := filepath.Join(filepath.Dir(h.Root()), "outside")
			if tt.setup != nil {
				tt.setup(t, h.Root())
			}
			before := tree(t, out)
			left, err := home.Purge(h)
			slices.Sort(left)
			if err != nil || !slices.Equal(left, tt.left) {
				t.Errorf("Purge() = %q, %v; want %q", left, err, tt.left)
			}
			for _, name := range tt.left {
				testworld.Equal(t, testworld.Err(os.Lstat(h.Path(name))), nil, "said to be left")
			}
			if after := tree(t, out); !slices.Equal(before, after) {
				t.Errorf("outside the home: %q became %q", before, after)
			}
			names, err := os.ReadDir(h.Root())
			if len(tt.left) == 0 && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the home is still there: %v, %v", names, err)
			}
			for _, name := range []string{home.MarkerFile, home.ConfigFile, "state", "run", "state/launch/agent1.json", "channels/agent/agent1/inbox/x.json"} {
				if slices.ContainsFunc(tt.left, func(l string) bool { return strings.HasPrefix(l, name+"/") }) {
					continue
				}
				testworld.ErrorIs(t, testworld.Err(os.Lstat(h.Path(name))), fs.ErrNotExist, "%s is still there", name)
			}
		})
	}
}

func outside(t *testing.T, home string) {
	all(dirs("../outside/d"), files("../outside/x", "../outside/d/y"))(t, home)
}

func TestPurgeRefused(t *testing.T) {
	h := testworld.Home(t)
	testworld.Must(t, os.Remove(h.Path(home.MarkerFile)))
	files("letter.txt")(t, h.Root())
	before := tree(t, h.Root())
	testworld.ErrorIs(t, testworld.Err(home.Purge(h)), home.ErrNotHome, "Purge() of a directory with other content")
	if after := tree(t, h.Root()); !slices.Equal(before, after) {
		t.Errorf("%q became %q", before, after)
	}
}

// A home that a person had before netsky: what has netsky's name goes only if it
// is netsky's by what it holds.
func TestPurgeMarkedByHand(t *testing.T) {
	const conf = "# The tmux server that netsky's agents live in. Once you have changed this file\n"
	const db = "SQLite format 3\x00 CREATE TABLE actors ( CREATE TABLE sessions ("
	for _, tt := range []struct {
		name  string
		files map[string]string
		left  []string
	}{
		{"netsky's", map[string]string{"tmux.conf": conf, "meta.db": db, "meta.db-wal": "x"}, nil},
		{"netsky's, in its journal", map[string]string{"meta.db": "SQLite format 3\x00", "meta.db-wal": db}, nil},
		{"a person's", map[string]string{"tmux.conf": "set -g mouse on\n", "meta.db": "SQLite format 3\x00 CREATE TABLE songs (", "meta.db-shm": ""},
			[]string{"meta.db", "meta.db-shm", "tmux.conf"}},
		{"a person's, no database", map[string]string{"meta.db": db[20:]}, []string{"meta.db"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := markedByHand(t)
			testworld.Got(h.Make())(t)
			for name, text := range tt.files {
				testworld.Must(t, os.WriteFile(h.Path(name), []byte(text), 0o600))
			}
			left, err := home.Purge(h)
			slices.Sort(left)
			if err != nil || !slices.Equal(left, tt.left) {
				t.Errorf("Purge() = %q, %v; want %q", left, err, tt.left)
			}
			for _, name := range tt.left {
				testworld.Equal(t, string(testworld.Got(os.ReadFile(h.Path(name)))(t)), tt.files[name], "%s holds", name)
			}
		})
	}
}

func markedByHand(t *testing.T) home.Dir {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "h")
	testworld.Must(t, os.Mkdir(dir, 0o700))
	files(home.MarkerFile)(t, dir)
	return testworld.Got(home.At(dir))(t)
}
