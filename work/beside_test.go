package work_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/work"
	"netsky/work/git"
	"netsky/work/tree"
)

// Work in a worktree that an agent has added itself is named: wherever it is, committed or not, and only that agent's.
// No git there obeys what the agent has written.
func TestBeside(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	root := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	f := testworld.NewRepo(t, filepath.Join(root, "src"))
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	env := make(map[agent.ID][]string)
	dirs := make(map[agent.ID]string)
	for _, id := range []agent.ID{"agent1", "agent2"} {
		p := testworld.Got(tree.Make(t.Context(), h, id, r, false))(t)
		dirs[id] = p.Dir
		env[id] = testworld.Got(tree.PrepareHooks(t.Context(), h, id, r, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")))(t)
	}
	as := func(id agent.ID, dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, env[id]
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	reader := work.New(h, work.Options{})
	defer reader.Close()
	want := func(facts ...string) {
		t.Helper()
		list, err := reader.States(t.Context())
		if err != nil || len(list) != len(facts) {
			t.Fatalf("%+v, %v", list, err)
		}
		for i, st := range list {
			testworld.Equal(t, strings.Join(st.Facts(), ", "), facts[i], "%s", st.Agent)
			if aside, err := work.Aside(t.Context(), h, st.Agent); err != nil || strings.Join(aside, ", ") != strings.TrimSuffix(strings.TrimSuffix(facts[i], "clean"), ", ") {
				t.Errorf("%s aside: %q, %v", st.Agent, aside, err)
			}
			testworld.Equal(t, strings.Contains(st.Next, "netsky ask"), facts[i] != "clean", "%s: next: %q", st.Agent, st.Next)
		}
	}
	f.Git("worktree", "add", "-q", "-b", "mine", filepath.Join(root, "owners"))
	f.At(filepath.Join(root, "owners")).Write("new", "the owner's")
	want("clean", "clean")
	own, far := filepath.Join(f.Dir, ".claude", "worktrees", "x"), filepath.Join(root, "far")
	as("agent1", dirs["agent1"], "worktree", "add", "-q", "-b", "worktree-x", own)
	as("agent2", dirs["agent2"], "worktree", "add", "-q", "--detach", far)
	want("clean", "clean")
	f.At(own).Write("a", "1", "b", "2")
	ran := filepath.Join(root, "ran")
	f.At(far).Write("c", "1", ".gitattributes", "* filter=x")
	f.At(far).Git("config", "extensions.worktreeConfig", "true")
	f.At(far).Git("config", "--worktree", "core.fsmonitor", "touch "+ran+"; false")
	f.At(far).Git("config", "--worktree", "filter.x.clean", "touch "+ran+"; cat")
	want("2 files not committed in "+own+", clean", "2 files not committed in "+far+", clean")
	testworld.Fails(t, testworld.Err(os.Lstat(ran)), "", "a program ran that the agent's configuration names")
	f.At(far).Git("config", "--worktree", "--unset", "core.fsmonitor")
	f.At(far).Git("config", "--worktree", "--unset", "filter.x.clean")
	as("agent2", far, "add", "-A")
	as("agent2", far, "commit", "-qm", "on no branch")
	as("agent1", own, "add", "-A")
	as("agent1", own, "commit", "-qm", "on its branch")
	f.At(own).Write("a", "3")
	want("1 commit on worktree-x, 1 file not committed in "+own+", clean", "1 commit on no branch, in "+far+", clean")
}

// What an agent's program has changed in the owner's directory is named until it is committed or taken back.
func TestStrayed(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	root := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	f := testworld.NewRepo(t, filepath.Join(root, "src"))
	f.Commit("one", "a b.txt", "1", "c", "1")
	r := testworld.Got(git.Open(t.Context(), f.Dir, ""))(t)
	p := testworld.Got(tree.Make(t.Context(), h, "agent1", r, false))(t)
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Dir: p.Dir}))
	reader := work.New(h, work.Options{})
	defer reader.Close()
	want := func(facts string) {
		t.Helper()
		list, err := reader.States(t.Context())
		if err != nil || len(list) != 1 || strings.Join(list[0].Facts(), ", ") != facts {
			t.Errorf("%+v, %v; want %s", list, err, facts)
		}
	}
	f.At(p.Dir).Write("own", "1")
	f.Write("a b.txt", "2", "sub/[n]ew", "1", "c", "the owner's")
	for _, name := range []string{"a b.txt", "a b.txt", "sub/[n]ew"} {
		testworld.Must(t, tree.NoteStray(h, "agent1", filepath.Join(f.Dir, name)))
	}
	for _, name := range []string{filepath.Join(p.Dir, "own"), filepath.Join(root, "x"), "/", "c", ""} {
		testworld.Equal(t, tree.NoteStray(h, "agent1", name), nil, "%s", name)
	}
	testworld.Equal(t, tree.NoteStray(h, "agent9", filepath.Join(f.Dir, "c")), nil)
	want("dirty 1, changed in " + f.Dir + ": a b.txt and 1 more")
	f.Git("checkout", "-q", "a b.txt")
	want("dirty 1, changed in " + f.Dir + ": sub/[n]ew")
	f.Commit("taken over", "c", "the owner's")
	want("dirty 1, behind 1")
	testworld.Must(t, h.SaveLaunch(agent.Launch{Agent: "agent1", Dir: f.Dir}))
	f.Write("c", "where it works")
	testworld.Equal(t, tree.NoteStray(h, "agent1", filepath.Join(f.Dir, "c")), nil)
	want("dirty 1, behind 1")
}
