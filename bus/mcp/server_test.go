package mcp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mcp"
	"netsky/internal/testworld"
)

// Clients that know the newest revision and those that don't both come to the
// one in which a server may push.
func TestHandshake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, version, want string }{
		{"newest", "", "2025-11-25"},
		{"present", "2025-11-25", "2025-11-25"},
		{"old", "2025-06-18", "2025-06-18"},
		{"unknown", "2024-01-01", "2025-11-25"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tap safeBuffer
			s := mustStation(t, agent.Clone(1)).serve()
			c := s.client(tt.version, &tap)
			r := c.InitializeResult()
			testworld.Equal(t, r.ProtocolVersion, tt.want, "version")
			if _, ok := r.Capabilities.Experimental["claude/channel"]; !ok || r.Capabilities.Tools == nil {
				t.Errorf("capabilities = %+v", r.Capabilities)
			}
			testworld.Contains(t, tap.String(), `"experimental":{"claude/channel":{}}`, "on the wire")
			if tried := strings.Contains(tap.String(), "-32601"); tried != (tt.version == "") {
				t.Errorf("discover refused = %v\n%s", tried, tap.String())
			}
			for _, word := range []string{"agent1", "reply", "send", "inbox"} {
				testworld.Contains(t, r.Instructions, word, "instructions do not speak of")
			}
			<-s.server.Ready()
		})
	}
}

// Without being asked for it, the channel is not declared.
func TestNoChannel(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	s.options.Channel = false
	if caps := s.serve().client("", nil).InitializeResult().Capabilities; caps.Experimental != nil {
		t.Errorf("experimental = %v", caps.Experimental)
	}
}

// A request of a revision without pushes is refused, whatever was shaken before.
func TestModernRequestIsRefused(t *testing.T) {
	t.Parallel()
	r := mustStation(t, agent.Clone(1)).serve().raw()
	r.say(`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if line, m := r.hear(); m["error"] == nil {
		t.Errorf("heard %s", line)
	}
}

func TestToolsOnOffer(t *testing.T) {
	t.Parallel()
	common := []string{"agents", "inbox", "note", "peek", "reply", "send", "task_add", "task_update", "tasks", "work_check"}
	for id, want := range map[agent.ID][]string{
		agent.Clone(1):  common,
		agent.Infinity:  common,
		agent.Root:      append([]string{"agent_start", "agent_stop", "task_start"}, common...),
		agent.Clone(42): common,
	} {
		s := mustStation(t, id).serve()
		list := testworld.Got(s.client("", nil).ListTools(s.ctx, nil))(t)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			if tool.Meta["anthropic/alwaysLoad"] != true {
				t.Errorf("%s: meta = %v", tool.Name, tool.Meta)
			}
			if len(tool.Description) < 20 || tool.Annotations == nil || tool.Annotations.DestructiveHint == nil {
				t.Errorf("%s: described by %q and %+v", tool.Name, tool.Description, tool.Annotations)
			}
			checkSchema(t, tool)
		}
		slices.Sort(names)
		slices.Sort(want)
		testworld.EqualList(t, names, want, "%s", id)
	}
}

// checkSchema looks whether every argument is described and none else is taken.
func checkSchema(t *testing.T, tool *sdk.Tool) {
	t.Helper()
	schema := tool.InputSchema.(map[string]any)
	if schema["additionalProperties"] != false {
		t.Errorf("%s: takes other arguments", tool.Name)
	}
	props := schema["properties"].(map[string]any)
	for name, p := range props {
		if s, _ := p.(map[string]any)["description"].(string); len(s) < 10 {
			t.Errorf("%s: %s is described by %q", tool.Name, name, s)
		}
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if props[name.(string)] == nil {
			t.Errorf("%s: requires %v, which it does not describe", tool.Name, name)
		}
	}
}

// Every argument of a schema is understood by the tool, with the type that the
// schema gives it, and no other is.
func TestSchemasAreTrue(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Root).serve()
	c := s.client("", nil)
	list := testworld.Got(c.ListTools(s.ctx, nil))(t)
	values := map[string]any{"string": "x", "integer": 1, "boolean": true, "array": []string{"x"}}
	for _, tool := range list.Tools {
		props := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
		for name, p := range props {
			kind := p.(map[string]any)["type"].(string)
			for other, value := range values {
				text, _ := s.call(c, tool.Name, map[string]any{name: value})
				if wrong := strings.Contains(text, ", got "); wrong != (other != kind) {
					t.Errorf("%s{%s: %v}: %s", tool.Name, name, value, text)
				}
			}
		}
		if text, failed := s.call(c, tool.Name, map[string]any{"from": "agent0"}); !failed || !strings.Contains(text, `"from"`) {
			t.Errorf("%s{from}: %s", tool.Name, text)
		}
	}
	testworld.Equal(t, s.allMail(), 0, "messages were sent")
}

// The end of stdin ends the server, and nothing of it stays.
func TestEndOfStdin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		hold bool // a tool runs
	}{{"idle", false}, {"with a tool", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := mustStation(t, agent.Clone(1))
			r := s.serve().raw()
			r.hello()
			if tt.hold {
				s.team.hold, s.team.held = make(chan struct{}), make(chan struct{})
				r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peek","arguments":{"agent":"agent2"}}}`)
				<-s.team.held
			}
			s.toServer.Close()
			testworld.Equal(t, s.mustEnd(), nil, "Serve")
			testworld.Wait(t, "no goroutine of ours", func() bool { return len(ours()) == 0 })
		})
	}
}

// A tool that nothing can stop does not keep the server.
func TestEndWithAStuckTool(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	s.team.hold, s.team.held, s.team.stuck = make(chan struct{}), make(chan struct{}), true
	r := s.serve().raw()
	r.hello()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"peek","arguments":{"agent":"agent2"}}}`)
	<-s.team.held
	s.toServer.Close()
	testworld.Equal(t, s.mustEnd(), nil, "Serve")
	close(s.team.hold)
	testworld.Wait(t, "no goroutine of ours", func() bool { return len(ours()) == 0 })
	testworld.Contains(t, s.log.String(), "did not end", "log")
}

func TestEndOfContext(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	ctx, cancel := context.WithCancel(s.ctx)
	s.ctx = ctx
	s.serve().raw().hello()
	cancel()
	testworld.ErrorIs(t, s.mustEnd(), context.Canceled, "Serve")
	testworld.Wait(t, "no goroutine of ours", func() bool { return len(ours()) == 0 })
}

// Two agents' servers know nothing of each other: each sends as its own agent.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	one := mustStation(t, agent.Clone(1)).serve()
	two := mustStation(t, agent.Clone(2))
	two.options.Home, two.options.Bus = one.home, one.bus
	two.serve()
	a, b := one.client("", nil), two.client("", nil)
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() { one.call(a, "send", map[string]any{"to": "agent0", "text": fmt.Sprint(i)}) })
		wait.Go(func() { two.call(b, "send", map[string]any{"to": "agent0", "text": fmt.Sprint(i)}) })
	}
	wait.Wait()
	from, ids := map[agent.ID]int{}, map[string]bool{}
	for _, e := range one.mail(agent.Root) {
		from[e.From]++
		ids[e.ID] = true
	}
	if from[agent.Clone(1)] != 10 || from[agent.Clone(2)] != 10 || len(ids) != 20 {
		t.Errorf("from = %v, %d ids", from, len(ids))
	}
}

// A tool that breaks inside breaks alone.
func TestPanicInATool(t *testing.T) {
	t.Parallel()
	s := mustStation(t, agent.Clone(1))
	s.options.Members = panicking{s.team}
	c := s.serve().client("", nil)
	if text, failed := s.call(c, "agents", nil); !failed || !strings.Contains(text, "internal error") {
		t.Errorf("agents: %s", text)
	}
	s.mustCall(c, "send", map[string]any{"to": "agent0", "text": "still here"})
	if got := s.mail(agent.Root); len(got) != 1 || got[0].Kind != envelope.KindMessage {
		t.Errorf("mail = %v", got)
	}
}

type panicking struct{ *team }

func (panicking) List(context.Context) ([]mcp.Member, error) { panic("no list") }
