package dashboard_test

import (
	"errors"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/store"
	"netsky/view"
)

// A session that is open on record has no other state on a page than its agent:
// what is recorded may be older.
func TestSessionAsItsAgent(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.apply(t,
		store.StartSession{Start: "s-1", Actor: "agent1", Runtime: "demo", Started: 1000},
		store.SessionState{Start: "s-1", State: agent.Idle, Time: 2000},
		store.StartSession{Start: "s-2", Actor: "agent2", Runtime: "demo", Started: 1000},
		store.SessionState{Start: "s-2", State: agent.Idle, Time: 2000},
	)
	row := func(path, start string) string {
		_, rest, ok := strings.Cut(w.mustPage(t, path), `href="/sessions/`+start+`"`)
		if !ok {
			t.Fatalf("%s: no %s", path, start)
		}
		rest, _, _ = strings.Cut(rest, "</li>")
		return rest
	}
	for _, tt := range []struct {
		name string
		err  error
		list []view.Agent
		want map[string]string
	}{
		{"as recorded", nil, []view.Agent{{ID: "agent1", State: agent.Idle, Start: "s-1"}, {ID: "agent2", State: agent.Idle, Start: "s-2"}}, map[string]string{"s-1": "idle", "s-2": "idle"}},
		{"since then", nil, []view.Agent{{ID: "agent1", State: agent.Down, Start: "s-1"}, {ID: "agent2", State: agent.Busy, Start: "s-3"}}, map[string]string{"s-1": "down", "s-2": "unknown"}},
		{"not known", errors.New("tmux does not answer"), nil, map[string]string{"s-1": "unknown", "s-2": "unknown"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.agents.set(tt.err, tt.list...)
			for start, want := range tt.want {
				for _, path := range []string{"/sessions", "/agents/agent" + start[2:]} {
					if got := row(path, start); !strings.Contains(got, want) || want != "idle" && strings.Contains(got, "idle") {
						t.Errorf("%s: %s shows %q, want %s", path, start, got, want)
					}
				}
			}
			if page := w.mustPage(t, "/sessions/s-1"); strings.Contains(page, "Running:") != (tt.want["s-1"] == "idle") {
				t.Errorf("/sessions/s-1: says that it runs, or does not: %s", tt.want["s-1"])
			}
		})
	}
}
