//go:build live

package land_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"netsky/internal/testworld"
	"netsky/work/land"
	"netsky/work/record"
)

// A netsky that is killed at any step leaves the target at its old or its new commit, the owner's
// files as that commit has them, and what is on record agrees once another verb has run.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, verb string
		away       bool // main is not checked out
	}{
		{"land", "land agent1", false},
		{"land elsewhere", "land agent1 squash", true},
		{"land with a hook", "land agent1 squash", false},
		{"rebase", "land agent1 rebase", false},
		{"undo", "undo ", false},
		{"push", "push agent1", false},
		{"check", "check agent1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			killed := true
			for n := 1; killed; n++ {
				if n > 30 {
					t.Fatal("too many steps")
				}
				killed = killAt(t, tt.verb, tt.away, tt.name == "land with a hook", n)
			}
		})
	}
}

func killAt(t *testing.T, verb string, away, hooked bool, n int) (killed bool) {
	t.Helper()
	y := newYard(t)
	at := y.clone("agent1")
	at.Commit("one", "b.txt", "b\n")
	at.Commit("two", "a.txt", "two\n")
	y.Commit("owner's", "o.txt", "o\n")
	if away {
		y.Git("switch", "-q", "-c", "elsewhere")
	}
	if hooked {
		hook("pre-commit", "exit 0")(y, at)
	}
	far := filepath.Join(t.TempDir(), "far.git")
	y.Git("init", "-q", "--bare", far)
	y.Git("remote", "add", "origin", far)
	y.Write("mine.txt", "not committed")
	before := y.Git("rev-parse", "main")
	if verb == "undo " {
		l := y.land("agent1", land.LandOptions{Unchecked: true})
		verb, before = verb+l.ID, l.After
	}
	out := y.netsky(verb, n)
	steps := strings.Count(out, "step ")
	killed = steps == n
	now := y.Git("rev-parse", "main")
	wants := y.Read("mine.txt") == "not committed"
	y.desk.Recover(t.Context())
	if got := y.Git("rev-parse", "main"); got != now && now != before {
		t.Errorf("step %d: main moved from %s to %s by itself", n, now, got)
	}
	now = y.Git("rev-parse", "main")
	status := y.Git("status", "--porcelain")
	if !wants || y.Read("mine.txt") != "not committed" || status != "?? mine.txt" {
		t.Errorf("step %d: the owner's files: %s\n%s", n, status, out)
	}
	testworld.Equal(t, at.Git("status", "--porcelain"), "", "step %d: the agent's files", n)
	landings, checks := y.records()
	for _, l := range landings {
		moved := strings.HasPrefix(verb, "land ") && now != before
		switch {
		case l.State == record.Landed && strings.HasPrefix(verb, "land ") && (!moved || l.After != now),
			l.State == record.Void && moved, l.State == record.Begun,
			l.State == record.Undone && l.Undo != now, l.State == record.Landed && strings.HasPrefix(verb, "undo ") && now != before:
			t.Errorf("step %d: on record: %+v, main is at %s\n%s", n, l, now, out)
		}
	}
	for _, k := range checks {
		if k.State == record.Running {
			t.Errorf("step %d: %+v", n, k)
		}
	}
	y.tidy()
	// And the verb can be given again.
	if err := run(t.Context(), y.desk, verb); err != nil && now == before && !strings.Contains(err.Error(), "was pushed") {
		t.Errorf("step %d: again: %v\n%s", n, err, out)
	}
	y.tidy()
	testworld.Equal(t, y.Read("mine.txt"), "not committed", "step %d: a file is gone", n)
	return killed
}

// A git that was killed in the middle leaves some of the new files, which are written back; a file
// that is neither stays, and is named.
func TestMended(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		leave func(y yard, after string)
		want  string // of main: before or after
		files string // what differs then
		said  string
	}{
		{"some files", func(y yard, after string) {
			y.Write("b.txt", "b\n", "c.txt", "the beg")
			os.Remove(filepath.Join(y.Dir, "gone.txt"))
			os.Remove(filepath.Join(y.Dir, "a.txt"))
		}, "before", "", "it was not done"},
		{"all files", func(y yard, after string) { y.Git("read-tree", "-m", "-u", "HEAD", after) }, "after", "", "it was done"},
		{"all files, and the owner's work", func(y yard, after string) {
			y.Git("read-tree", "-m", "-u", "HEAD", after)
			y.Write("a.txt", "mine\n")
		}, "after", "M a.txt", "it was done"},
		{"a file of the owner's", func(y yard, after string) { y.Write("b.txt", "b\n", "a.txt", "mine\n") }, "before", "M a.txt\n?? b.txt", "neither as they were nor"},
		{"a sparse checkout", func(y yard, after string) {
			y.Git("sparse-checkout", "set", "--no-cone", "/b.txt")
			y.Write("b.txt", "mine\n")
		}, "before", "?? b.txt", "it was not done"},
		{"a locked index", func(y yard, after string) { y.Write(".git/index.lock", "", "a.txt", "two\n") }, "before", "M a.txt", "index.lock: remove it"},
		{"the owner has gone on", func(y yard, after string) { y.Write("a.txt", "mine\n"); y.Git("add", "a.txt") }, "before", "M  a.txt", "it was not done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			y.Commit("more", "gone.txt", "g\n")
			at := y.clone("agent1")
			at.Git("rm", "-q", "gone.txt")
			after := at.Commit("two", "a.txt", "two\n", "b.txt", "b\n", "c.txt", "the beginning\n")
			before := y.Git("rev-parse", "main")
			if out := y.netsky("land agent1", stepNumber(t, y, "writing")); !strings.HasSuffix(strings.TrimSpace(out), "step writing") {
				t.Fatal(out)
			}
			tt.leave(y, after)
			y.desk.Recover(t.Context())
			want := map[string]string{"before": before, "after": after}[tt.want]
			if got := y.Git("rev-parse", "main"); got != want {
				t.Errorf("main is at %s, want %s", got, tt.want)
			}
			if got := y.Git("status", "--porcelain"); strings.TrimSpace(got) != strings.TrimSpace(tt.files) {
				t.Errorf("files: %q, want %q", got, tt.files)
			}
			testworld.Contains(t, strings.Join(*y.said, "\n"), tt.said, "said")
		})
	}
}

// A git that dies when it has written the index, or the ref, has done its work.
func TestGitDies(t *testing.T) {
	for _, tt := range []struct{ name, verb, real, want string }{
		{"the index is written", "read-tree", `"$REAL_GIT" "$@"`, "after"},
		{"the ref is written", "update-ref", `"$REAL_GIT" "$@"`, "after"},
		{"nothing is written", "read-tree", "", "before"},
		{"a file is written", "read-tree", "echo two > a.txt", "before"},
		{"the ref is not", "update-ref", "", "before"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			y := newYard(t)
			after := y.clone("agent1").Commit("two", "a.txt", "two\n", "b.txt", "b\n")
			before := y.Git("rev-parse", "main")
			real, err := exec.LookPath("git")
			testworld.Must(t, err)
			bin := t.TempDir()
			testworld.Program(t, filepath.Join(bin, "git"), "#!/bin/sh\ncase \" $* \" in *\" "+tt.verb+" \"*) "+tt.real+"\nkill -9 $$;; esac\nexec \"$REAL_GIT\" \"$@\"\n")
			t.Setenv("REAL_GIT", real)
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			if tt.real == "echo two > a.txt" {
				t.Chdir(y.Dir)
			}
			_, err = y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
			t.Setenv("PATH", filepath.Dir(real)+":"+os.Getenv("PATH"))
			want := map[string]string{"before": before, "after": after}[tt.want]
			if got := y.Git("rev-parse", "main"); (err == nil) != (tt.want == "after") || got != want || y.Git("status", "--porcelain") != "" {
				t.Errorf("%v; main is at %s, want %s\n%s", err, got, tt.want, y.Git("status"))
			}
			if list, _ := y.records(); len(list) != 1 || (list[0].State == record.Landed) != (err == nil) {
				t.Errorf("%+v", list)
			}
			y.tidy()
		})
	}
}

// What is written back is the worktree's own: nothing behind a link, and nothing that somebody has put
// where a file was.
func TestMendedShapes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		old   func(y yard) // what d is
		leave func(y yard) // beside what was killed
		want  string       // of git status
		said  string
		kept  func(y yard) string // what is wrong
	}{
		{"a link to a directory elsewhere", func(y yard) {
			y.At(filepath.Dir(y.Dir)).Write("out/x", "x\n")
			os.Symlink("../out", filepath.Join(y.Dir, "d"))
		}, nil, "", "it was not done", func(y yard) string { return diff(y.Read("../out/x"), "x\n") }},
		{"a link to a directory there", func(y yard) {
			y.Write("in/x", "x\n")
			os.Symlink("in", filepath.Join(y.Dir, "d"))
		}, nil, "", "it was not done", func(y yard) string { return diff(y.Read("in/x"), "x\n") }},
		{"a file", func(y yard) { y.Write("d", "file\n") }, nil, "", "it was not done", func(y yard) string { return diff(y.Read("d"), "file\n") }},
		{"a file, and the directory is there", func(y yard) { y.Write("d", "file\n") }, func(y yard) {
			os.Remove(filepath.Join(y.Dir, "d"))
			y.Write("d/x", "x\n")
		}, "", "it was not done", func(y yard) string { return diff(y.Read("d"), "file\n") }},
		{"a file, and the directory holds another's", func(y yard) { y.Write("d", "file\n") }, func(y yard) {
			os.Remove(filepath.Join(y.Dir, "d"))
			y.Write("d/x", "x\n", "d/mine", "mine")
		}, " D d", "does not track: d/", func(y yard) string { return diff(y.Read("d/mine"), "mine") }},
		{"a mode", func(y yard) {}, func(y yard) { os.Chmod(filepath.Join(y.Dir, "a.txt"), 0o755) }, "", "it was not done", func(y yard) string { return "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			tt.old(y)
			y.Commit("d")
			at := y.clone("agent1")
			at.Git("rm", "-q", "--ignore-unmatch", "d")
			os.Chmod(filepath.Join(at.Dir, "a.txt"), 0o755)
			at.Commit("a directory", "d/x", "x\n")
			if out := y.netsky("land agent1", stepNumber(t, y, "writing")); !strings.HasSuffix(strings.TrimSpace(out), "step writing") {
				t.Fatal(out)
			}
			if tt.leave != nil {
				tt.leave(y)
			}
			y.desk.Recover(t.Context())
			if got := y.Git("status", "--porcelain"); strings.TrimSpace(got) != strings.TrimSpace(tt.want) {
				t.Errorf("files: %q, want %q", got, tt.want)
			}
			testworld.Contains(t, strings.Join(*y.said, "\n"), tt.said, "said")
			testworld.Equal(t, tt.kept(y), "")
		})
	}
}

// A commit that is gone before anybody could look, as after a power cut, keeps nothing from landing later.
func TestCommitGone(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.clone("agent1").Commit("two", "a.txt", "two\n")
	before := y.Git("rev-parse", "main")
	if out := y.netsky("land agent1 squash", stepNumber(t, y, "writing", "squash")); !strings.HasSuffix(strings.TrimSpace(out), "step writing") {
		t.Fatal(out)
	}
	y.Git("gc", "-q", "--prune=now")
	y.desk.Recover(t.Context())
	if got := strings.Join(*y.said, "\n"); y.Git("rev-parse", "main") != before || !strings.Contains(got, "it was not done") {
		t.Errorf("said: %q", got)
	}
	y.land("agent1", land.LandOptions{Unchecked: true, How: land.Squash})
	y.tidy()
}

// A git that a killed netsky has started goes on, and nobody decides what became of the landing before
// it has ended.
func TestStraggler(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	after := y.clone("agent1").Commit("two", "a.txt", "two\n")
	y.Git("switch", "-q", "-c", "elsewhere") // so that no lock of git's own tells that one still runs
	dir := t.TempDir()
	gate, began := filepath.Join(dir, "gate"), filepath.Join(dir, "began")
	if out, err := exec.Command("mkfifo", gate, began).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	// The hook runs in the git that moves the ref, before it does.
	hook := filepath.Join(y.Dir, ".git", "hooks", "reference-transaction")
	text := "#!/bin/sh\ncase \"$1 $(cat)\" in prepared*refs/heads/main*) echo > " + began + "; read x < " + gate + ";; esac\n"
	testworld.Must(t, os.WriteFile(hook, []byte(text), 0o755))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childHome+"="+y.home.Root(), childVerb+"=land agent1")
	testworld.Must(t, cmd.Start())
	testworld.Got(os.ReadFile(began))(t)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	y.desk.Recover(t.Context())
	testworld.Equal(t, testworld.Err(os.Stat(y.home.Path("state/landing.json"))), nil, "it was decided")
	var wg sync.WaitGroup
	wg.Go(func() { _ = os.WriteFile(gate, []byte("go\n"), 0) })
	// The next landing waits for it.
	_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
	wg.Wait()
	if err == nil || !strings.Contains(err.Error(), "nothing to land") || y.Git("rev-parse", "main") != after {
		t.Errorf("%v", err)
	}
	if list, _ := y.records(); len(list) != 1 || list[0].State != record.Landed {
		t.Errorf("%+v", list)
	}
	y.tidy()
}
