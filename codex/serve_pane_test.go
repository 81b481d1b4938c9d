package codex_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"netsky/bus"
	"netsky/codex"
	"netsky/home"
	"netsky/spawn/keeper"
	"netsky/store"
)

// serveProcess is what runs in a test's pane: the keeper, and below it the
// sidecar of agent1.
func serveProcess(role string) int {
	home, err := home.Find(os.Getenv)
	if err != nil {
		panic(err)
	}
	if role == "keeper" {
		return keeper.Run(home, "agent1", "test", func() {})
	}
	journal := store.NewJournal(home)
	defer journal.Close()
	err = codex.Serve(context.Background(), codex.ServeOptions{
		Agent: "agent1", Start: os.Getenv("NETSKY_START"), Sandbox: os.Getenv("SERVE_SANDBOX"), Approval: os.Getenv("SERVE_APPROVAL"),
		Dir: os.Getenv("SERVE_DIR"), Home: home, Bus: bus.New(home, bus.Options{}), Records: journal,
		Program: os.Getenv("NETSKY_TEST_CODEX"), Env: os.Environ(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A pane is agent1 in a tmux session, through the real keeper.
type pane struct {
	*world
	start string
}

func (p *pane) socket() string { return p.home.Path("run", p.start) }

func (p *pane) tmux(args ...string) string {
	p.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", p.socket(), "-f", "/dev/null"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TMUX") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *pane) text() string { return p.tmux("capture-pane", "-p", "-t", "a1") }
