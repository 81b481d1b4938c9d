package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// An agent of another host works on a task in a clone there, and its work is checked, landed and undone here.
func TestWorkThere(t *testing.T) {
	t.Parallel()
	laptop, build1 := mustTeam(t)
	here := testworld.NewRepo(t, filepath.Join(t.TempDir(), "src"))
	there := here.At(filepath.Join(t.TempDir(), "src"))
	here.Git("clone", "-q", here.Dir, there.Dir)
	there.Git("config", "user.name", "Ada")
	there.Git("config", "user.email", "ada@example.org")
	build1.must(t, "netsky", "up", "agent2", "--type", "demo", "--dir", there.Dir)
	laptop.must(t, "netsky", "up", "agent0", "--type", "demo", "--dir", here.Dir)
	own := here.Commit("own", "c.txt", "c\n")

	id := strings.TrimSpace(laptop.must(t, "netsky", "task", "add", "one", "--body", "/edit b.txt a line", "--agent", "2@build1"))
	testworld.WaitOr(t, func() bool {
		status, _ := laptop.says(t, "", "task", "start", id)
		return status == 0
	}, func() string { return laptop.must(t, "netsky", "link") })
	testworld.Wait(t, "the task is answered", func() bool {
		return strings.Contains(laptop.must(t, "netsky", "task", "ls", "--all"), "claimed")
	})
	testworld.Equal(t, there.Git("rev-parse", "origin/main"), own, "fetched there")
	testworld.Contains(t, laptop.must(t, "netsky", "work"), "agent2@build1  dirty 1")

	laptop.must(t, "netsky", "up", "agent3", "--type", "demo")
	give := func(body, to string, needs ...string) string {
		words := []string{"task", "add", body, "--body", body, "--agent", to}
		for _, id := range needs {
			words = append(words, "--needs", id)
		}
		return strings.TrimSpace(laptop.must(t, "netsky", words...))
	}
	edit, commit := give("/edit d.txt built on", "3"), give("/commit needed", "3")
	id = give("/commit done", "2@build1", edit, commit)
	laptop.must(t, "netsky", "task", "start", edit)
	testworld.Wait(t, "it has edited", func() bool { return strings.Contains(laptop.must(t, "netsky", "task", "show", edit), "claimed") })
	testworld.Contains(t, laptop.must(t, "netsky", "task", "start", id), "starts with agent2@build1 when these are closed")
	laptop.must(t, "netsky", "task", "start", commit)
	show := func(word string) func() bool {
		return func() bool { return strings.Contains(laptop.must(t, "netsky", "task", "show", id), word) }
	}
	testworld.Wait(t, "the task is answered", show("state      claimed"))
	testworld.Contains(t, build1.must(t, "netsky", "show", "brief-"+id+"-1"), "which your repository has: if your branch lacks that, git merge")
	needed := here.Git("rev-parse", "netsky/agent3")
	testworld.Equal(t, there.Git("show", needed+":d.txt"), "built on")
	testworld.Contains(t, laptop.must(t, "netsky", "diff", "2@build1"), "+a line")
	status, out := laptop.says(t, "", "check", "2@build1", "--set", "test -e b.txt", "--yes")
	if status != 0 || !strings.Contains(out, "passed") {
		t.Errorf("check: %d: %s", status, out)
	}
	testworld.Wait(t, "the task is proved", show("state      proved"))
	landed := laptop.must(t, "netsky", "land", "2@build1")
	testworld.Contains(t, landed, "agent2@build1: landed on main")
	testworld.Equal(t, here.Read("b.txt"), "a line\n")
	_, undo, _ := strings.Cut(landed, "`netsky undo ")
	laptop.must(t, "netsky", "undo", undo[:8])
	testworld.Equal(t, here.Git("rev-parse", "main"), own)
	testworld.Equal(t, there.Git("status", "--porcelain", "--branch"), "## main...origin/main [behind 1]")
}
