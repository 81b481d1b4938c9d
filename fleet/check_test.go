package fleet_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/fleet"
	"netsky/internal/testworld"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The netsky here is a stand-in that takes the answer from the agent's number.
	bin := testworld.Program(t, filepath.Join(dir, "netsky"), `#!/bin/sh
case "$2 $3" in
"agent1 ") echo "agent1: passed"; echo "netsky: a note" >&2 ;;
"agent1 --again") echo "agent1: passed anew" ;;
"agent2 ") echo "agent2: failed"; exit 1 ;;
"agent3 ") echo "netsky: they conflict" >&2; exit 3 ;;
"agent4 ") echo run >> `+dir+`/runs; while [ ! -e `+dir+`/go ]; do sleep 0.01; done; echo "agent4: passed" ;;
"agent5 ") echo "netsky: no" >&2; exit 1 ;;
esac
`)
	k := &fleet.Checks{Binary: bin, Environ: []string{"PATH=/usr/bin:/bin"}, Patience: time.Minute}
	for _, tt := range []struct {
		agent string
		again bool
		want  string // an error begins with !
	}{
		{"agent1", false, "agent1: passed\nnetsky: a note"}, {"agent1", true, "agent1: passed anew"}, {"agent2", false, "agent2: failed"},
		{"agent3", false, "!netsky: they conflict"}, {"agent5", false, "!netsky: no"},
	} {
		text, err := k.Check(t.Context(), agent.ID(tt.agent), tt.again)
		if err != nil {
			text = "!" + err.Error()
		}
		if text != tt.want {
			t.Errorf("%s: %q, want %q", tt.agent, text, tt.want)
		}
	}
	k.Patience = time.Millisecond
	for range 3 {
		if text, err := k.Check(t.Context(), "agent4", false); err != nil || !strings.Contains(text, "call work_check again") {
			t.Errorf("%q %v", text, err)
		}
	}
	testworld.Program(t, filepath.Join(dir, "go"), "")
	k.Patience = time.Minute
	if text, err := k.Check(t.Context(), "agent4", false); err != nil || text != "agent4: passed" {
		t.Errorf("%q %v", text, err)
	}
	if runs := testworld.Repo.Read(testworld.Repo{Dir: dir}, "runs"); runs != "run\n" {
		t.Errorf("it ran %q", runs)
	}
}
