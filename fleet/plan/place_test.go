package plan_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/claude"
	"netsky/codex"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/internal/testworld"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/spawn/demo"
)

func planner(t *testing.T) *plan.Planner {
	t.Helper()
	cfg := config.Default()
	return &plan.Planner{Launcher: spawn.New(spawn.Site{Home: testworld.FastHome(t)}), Config: &cfg, UserHome: t.TempDir()}
}

// The ports of a home's agents don't overlap, and are the same at every start.
func TestPort(t *testing.T) {
	t.Parallel()
	p := planner(t)
	for _, base := range []int{0, 4000} {
		p.Config.Work.Ports = base
		seen := map[int]agent.ID{}
		for _, id := range []agent.ID{"agent0", "agent1", "agent2", "agent99", "agentinfinity"} {
			port := p.Port(id)
			if port < 1024 || port%10 != 0 || seen[port] != "" || port != p.Port(id) {
				t.Errorf("with ports = %d, %s gets %d (as %s does)", base, id, port, seen[port])
			}
			seen[port] = id
		}
	}
	p.Config.Work.Ports = 65_000
	if port := p.Port("agent60"); port != 0 {
		t.Errorf("agent60 gets %d, of which not all ten are ports", port)
	}
}

// Where clones work: in worktrees, unless there is none to be had or the owner wants none.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := testworld.NewRepo(t, filepath.Join(dir, "src"))
	repo.Commit("one", "a", "1\n")
	repo.Write("a", "2\n", "b", "new\n")
	bare, unborn := filepath.Join(dir, "bare"), filepath.Join(dir, "unborn")
	repo.Git("init", "-q", "--bare", bare)
	repo.Git("init", "-q", unborn)
	for _, tt := range []struct {
		name  string
		agent agent.ID
		dir   string
		on    spawn.Runtime // nil: Codex
		here  bool
		off   bool
		apart bool
		left  int
		why   string
	}{
		{name: "a clone", agent: "agent1", dir: repo.Dir, apart: true, left: 2},
		{name: "a demo", agent: "agent1", dir: repo.Dir, on: demo.Runtime{}, apart: true, left: 2},
		{name: "the manager", agent: "agent0", dir: repo.Dir},
		{name: "the repair agent", agent: "agentinfinity", dir: repo.Dir},
		{name: "here", agent: "agent1", dir: repo.Dir, here: true},
		{name: "off", agent: "agent1", dir: repo.Dir, off: true},
		{name: "no repository", agent: "agent1", dir: dir},
		{name: "a bare one", agent: "agent1", dir: bare, why: "bare"},
		{name: "no commit", agent: "agent1", dir: unborn, why: "no commit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := planner(t)
			p.Config.Work.Worktrees = !tt.off
			if tt.on == nil {
				tt.on = &codex.Runtime{}
			}
			at := p.Places(t.Context(), []spawn.Plan{{Agent: tt.agent, Dir: tt.dir, Runtime: tt.on}}, tt.here)[0]
			if at.Apart != tt.apart || at.Left != tt.left || !strings.Contains(at.Why, tt.why) || (tt.why == "") != (at.Why == "") {
				t.Errorf("apart %t, %d files left, why %q", at.Apart, at.Left, at.Why)
			}
		})
	}
}

// What the agent's program would have read in the owner's directory, and does not find in the
// worktree, is in the prompt; what it finds there is not.
func TestInstructions(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	repo := testworld.NewRepo(t, filepath.Join(top, "src"))
	repo.Commit("one", "a", "1\n", "web/CLAUDE.md", "committed", ".gitignore", "CLAUDE.local.md\n")
	repo.Write("CLAUDE.md", "use {{ tabs }}", "AGENTS.md", "use spaces", "CLAUDE.local.md", "copied")
	testworld.Must(t, os.WriteFile(filepath.Join(top, "CLAUDE.md"), []byte("above"), 0o600))
	for _, tt := range []struct {
		runtime spawn.Runtime
		want    []string
	}{
		{&claude.Runtime{}, []string{"above", "use {{ tabs }}"}},
		{&codex.Runtime{}, []string{"use spaces"}},
	} {
		t.Run(tt.runtime.Name(), func(t *testing.T) {
			p := planner(t)
			list := []spawn.Plan{{Agent: "agent1", Dir: filepath.Join(repo.Dir, "web"), Runtime: tt.runtime,
				Prompt: prompts.Input{Agent: "agent1", Dir: repo.Dir, Runtime: tt.runtime.Name(), Home: p.Launcher.Home}}}
			places := p.Places(t.Context(), list, false)
			testworld.Must(t, p.Make(t.Context(), list, places, func(agent.ID) bool { return false }))
			if want := filepath.Join(places[0].Placed.Dir, "web"); list[0].Dir != want {
				t.Errorf("it works in %s, want %s", list[0].Dir, want)
			}
			text := testworld.Got(prompts.Render(list[0].Prompt))(t)
			for _, said := range []string{"above", "use {{ tabs }}", "use spaces", "committed", "copied"} {
				wanted := strings.Contains(fmt.Sprint(tt.want), said)
				testworld.Equal(t, strings.Contains(text, "worktree:\n\n"+said), wanted, "the prompt says %q", said)
			}
		})
	}
}
