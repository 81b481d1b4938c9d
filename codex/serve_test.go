package codex_test

import (
	"fmt"

	"netsky/codex"
	"netsky/internal/testworld"
)

// serving are the options of agent1's sidecar.
func (w *world) serving() codex.ServeOptions {
	return codex.ServeOptions{
		Agent: "agent1", Start: "start1", Sandbox: "danger-full-access", Approval: "never", Dir: w.dir,
		Home: w.home, Bus: w.bus, Records: w.journal, Program: w.program, Env: w.env, Headless: true, Out: &w.pane,
	}
}

// until waits for a condition that another process brings about.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	testworld.WaitOr(w, ok, func() string { return fmt.Sprintf("%s\n%spane: %s", what, w.left, &w.pane) })
}
