package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want agent.ID // "" means refused
		arg  agent.ID // what a person means by it; "" means refused
	}{
		{"agent0", agent.Root, agent.Root},
		{"agent1", "agent1", "agent1"},
		{"agent42", "agent42", "agent42"},
		{"agent9999", "agent9999", "agent9999"},
		{"agentinfinity", agent.Infinity, agent.Infinity},
		{"owner", agent.Owner, agent.Owner},
		{"3", "", "agent3"},
		{"0", "", agent.Root},
		{"infinity", "", agent.Infinity},
		{"", "", ""},
		{"agent", "", ""},
		{"agent00", "", ""},
		{"agent01", "", ""},
		{"01", "", ""},
		{"agent10000", "", ""},
		{"AGENT1", "", ""},
		{"Agent1", "", ""},
		{"agent-7", "", ""},
		{"agent 1", "", ""},
		{"agent1\n", "", ""},
		{"agent1\x00", "", ""},
		{"agent１", "", ""},
		{"agent+1", "", ""},
		{"agentfoo", "", ""},
		{"netsky-ticker", "", ""},
		{"../x", "", ""},
		{"a/b", "", ""},
		{".", "", ""},
		{"..", "", ""},
		{".hidden", "", ""},
		{"-rf", "", ""},
		{"BOB", "", ""},
		{strings.Repeat("a", 300), "", ""},
	} {
		t.Run(tt.in, func(t *testing.T) {
			check(t, "Parse", tt.in, agent.Parse, tt.want)
			check(t, "ParseArg", tt.in, agent.ParseArg, tt.arg)
			only := tt.arg
			if only == agent.Owner {
				only = ""
			}
			check(t, "ParseAgent", tt.in, agent.ParseAgent, only)
		})
	}
}

func check(t *testing.T, name, in string, f func(string) (agent.ID, error), want agent.ID) {
	t.Helper()
	got, err := f(in)
	testworld.Equal(t, got, want, "%s(%q)", name, in)
	if (err != nil) != (want == "") || (err != nil && !errors.Is(err, agent.ErrName)) {
		t.Errorf("%s(%q): error %v", name, in, err)
	}
	if err != nil && len(err.Error()) > 200 {
		t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"agent0", "agent17", "agentinfinity", "owner", "agent01", "agent１", "agent1\n", "../agent1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := agent.Parse(s)
		if err != nil {
			return
		}
		if string(id) != s {
			t.Fatalf("Parse(%q) = %q", s, id)
		}
		for _, c := range s {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
				t.Fatalf("Parse took %q", s)
			}
		}
		if again, err := agent.ParseArg(id.N()); id.IsAgent() && (err != nil || again != id) {
			t.Fatalf("%s: AGENT_N %q reads as %q, %v", id, id.N(), again, err)
		}
	})
}

func TestOrderAndRoles(t *testing.T) {
	ids := []agent.ID{agent.Owner, "agent10", agent.Infinity, "agent2", agent.Root, "agent1"}
	slices.SortFunc(ids, agent.Compare)
	want := []agent.ID{agent.Root, "agent1", "agent2", "agent10", agent.Infinity, agent.Owner}
	testworld.EqualList(t, ids, want, "sorted")
	for id, role := range map[agent.ID]string{
		agent.Root: "manager", "agent7": "worker", agent.Infinity: "watchdog", agent.Owner: "owner",
	} {
		testworld.Equal(t, id.Role(), role, "%s.Role()", id)
	}
	if agent.Root.IsClone() || agent.Infinity.IsClone() || agent.Owner.IsClone() || !agent.Clone(3).IsClone() {
		t.Error("IsClone is for agent1, agent2, … alone")
	}
}

func TestStartIDs(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := agent.NewStart()
		if len(id) != 16 || seen[id] {
			t.Fatalf("start id %q: not 16 characters, or given twice", id)
		}
		seen[id] = true
	}
}

func TestBacklog(t *testing.T) {
	for _, tt := range []struct {
		state            agent.State
		inbox, claimed   int
		waiting, working int
	}{
		{agent.Busy, 3, 1, 3, 1},
		{agent.Waiting, 0, 1, 0, 1},
		{agent.Blocked, 3, 1, 4, 0},
		{agent.Dead, 0, 2, 2, 0},
		{agent.CrashLooping, 1, 1, 2, 0},
		{agent.Down, 1, 1, 2, 0},
		{agent.Idle, -1, -1, 0, 0},
	} {
		if waiting, working := tt.state.Backlog(tt.inbox, tt.claimed); waiting != tt.waiting || working != tt.working {
			t.Errorf("%s with %d and %d: %d waiting, %d working", tt.state, tt.inbox, tt.claimed, waiting, working)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, tt := range []struct {
		in   []agent.ID
		want string
	}{
		{nil, ""},
		{[]agent.ID{"agent3"}, "agent3"},
		{[]agent.ID{"agent0", "agent1"}, "agent0, agent1"},
		{[]agent.ID{"agent0", "agent1", "agent2", "agentinfinity"}, "agent0 to agent2, agentinfinity"},
		{[]agent.ID{"agent1", "agent3", "agent4", "agent5", "agent7", "netsky-ticker"}, "agent1, agent3 to agent5, agent7, netsky-ticker"},
	} {
		testworld.Equal(t, agent.Span(tt.in), tt.want, "Span(%v)", tt.in)
	}
}
