package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/tree"
)

// Setting a check does not help an agent without a worktree, so that is said first, and nothing is set.
func TestCheckNoWorktree(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	f, err := fleet.New(c.home, new(config.Config), agent.Owner, nil, "v1", nil)
	testworld.Must(t, err)
	t.Cleanup(func() { f.Launcher.Journal.Close() })
	text := "true"
	for _, r := range []fleet.CheckRequest{{Agent: "agent1"}, {Agent: "agent1", Set: &text}} {
		if _, err := (fleet.Work{Fleet: f}).Check(t.Context(), r); !errors.Is(err, land.ErrNoWorktree) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if now, _, err := config.Load(c.home); err != nil || now.Work.Check != "" {
		t.Errorf("the check is %q, %v", now.Work.Check, err)
	}
}

// A model's check runs in the daemon, or here without one. It goes on when the model has waited long enough,
// and the next call waits for the same one.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, newHome := range map[string]func() home.Dir{
		"in the daemon": func() home.Dir { return newControl(t).home },
		"here":          func() home.Dir { return testworld.FastHome(t) },
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := newHome(), t.TempDir()
			testworld.Bus(t, h, agent.Owner, agent.Clone(1))
			text := "echo it runs; echo run >>" + dir + "/runs; while [ -e slow ] && [ ! -e " + dir + "/go ]; do sleep 0.01; done; test ! -e broken"
			testworld.Must(t, config.SetCheck(h, text))
			c, _, err := config.Load(h)
			testworld.Must(t, err)
			f, err := fleet.New(h, &c, agent.Clone(1), []string{"AGENT_N=1", "PATH=" + os.Getenv("PATH")}, "v1", nil)
			testworld.Must(t, err)
			t.Cleanup(func() { f.Launcher.Journal.Close() })
			src := testworld.NewRepo(t, filepath.Join(dir, "src"))
			r, err := git.Open(t.Context(), src.Dir, "")
			testworld.Must(t, err)
			p, err := tree.Make(t.Context(), h, agent.Clone(1), r, true)
			testworld.Must(t, err)
			at := src.At(p.Dir)
			k := &fleet.Checks{Fleet: f, Patience: time.Minute}
			check := func(want ...string) {
				t.Helper()
				text, err := k.Check(t.Context(), "agent1", false)
				if err != nil {
					text = "refused: " + err.Error()
				}
				for _, w := range want {
					testworld.Contains(t, text, w)
				}
			}
			check("refused: agent1: nothing to land on main")
			at.Commit("one", "b", "b")
			check("refused: ", "agreed to this text yet")
			testworld.Must(t, fleet.CheckOf(c).Agree(h))
			at.Write("loose", "x")
			check("agent1: passed in ", "agent1 has 1 uncommitted file; it is not checked")
			at.Commit("two", "broken", "x")
			check("agent1: failed, exit status 1: ", "it runs", "its output: "+h.Root())
			at.Git("rm", "-q", "broken")
			at.Commit("three", "slow", "x")
			k.Patience = time.Second
			for range 3 {
				check("call work_check again")
			}
			testworld.Program(t, filepath.Join(dir, "go"), "")
			k.Patience = time.Minute
			check("agent1: passed ")
			testworld.Must(t, os.Remove(filepath.Join(dir, "go")))
			at.Commit("four", "c", "c")
			k.Patience = time.Second
			testworld.Wait(t, "a check of the fourth", func() bool {
				check("call work_check again")
				return strings.Count((testworld.Repo{Dir: dir}).Read("runs"), "run") == 4
			})
			at.Commit("five", "broken", "x") // what ran is of no use to who asks now
			check("call work_check again")
			testworld.Program(t, filepath.Join(dir, "go"), "")
			k.Patience = time.Minute
			check("agent1: failed, exit status 1: ")
			testworld.Equal(t, (testworld.Repo{Dir: dir}).Read("runs"), strings.Repeat("run\n", 5), "it ran")
		})
	}
}
