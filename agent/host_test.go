package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/internal/testworld"
)

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		in, want, arg string // "": refused
	}{
		{"agent3@build1", "agent3@build1", "agent3@build1"},
		{"owner@a", "owner@a", "owner@a"},
		{"agent0@a-1", "agent0@a-1", "agent0@a-1"},
		{"3@build1", "", "agent3@build1"},
		{"infinity@build1", "", "agentinfinity@build1"},
		{"agent3", "agent3", "agent3"},
		{"3", "", "agent3"},
		{"agent3@" + strings.Repeat("a", agent.MaxHost), "agent3@" + strings.Repeat("a", agent.MaxHost), "agent3@" + strings.Repeat("a", agent.MaxHost)},
		{"agent3@" + strings.Repeat("a", agent.MaxHost+1), "", ""},
		{"agent3@", "", ""}, {"@build1", "", ""}, {"agent3@build1@c", "", ""}, {"agent03@a", "", ""},
		{"agent3@Build1", "", ""}, {"agent3@1b", "", ""}, {"agent3@a.b", "", ""}, {"agent3@a-", "", ""}, {"agent3@../x", "", ""}, {"agent3@a\n", "", ""},
	} {
		check(t, "ParseAddress", tt.in, agent.ParseAddress, agent.ID(tt.want))
		check(t, "ParseArgAddress", tt.in, agent.ParseArgAddress, agent.ID(tt.arg))
		if strings.Contains(tt.in, "@") {
			check(t, "Parse", tt.in, agent.Parse, "")
			check(t, "ParseArg", tt.in, agent.ParseArg, "")
		}
	}
	id := agent.ID("agent3@build1")
	testworld.Equal(t, id.Host()+" "+string(id.Local())+" "+string(id.At("b")), "build1 agent3 agent3@b", "its parts")
	testworld.Equal(t, agent.ID("agent3").Host(), "", "the host of a local address")
	if !id.IsClone() || !id.IsAgent() || agent.ID("owner@a").IsAgent() || agent.ID("agent0@a").IsClone() {
		t.Error("an address on another host has not the role it has there")
	}
	list := []agent.ID{"agent0@b", "agent1", "owner", "agent10@a", "agent2@a", "agent0"}
	slices.SortFunc(list, agent.Compare)
	testworld.Equal(t, fmt.Sprint(list), "[agent0 agent1 owner agent2@a agent10@a agent0@b]", "in display order")
}
