package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"netsky/agent"
	"netsky/bus"
	"netsky/store"
)

// Whatever a model writes as arguments, no tool breaks, nothing is sent in
// another's name or past the rules, and the result is one that a client takes.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `1`, `"x"`, `{"to":"agent0","text":"hi"}`, `{"to":"owner","text":"hi","kind":"reply"}`, `{"to":"owner","text":"x","from":"agent0"}`,
		`{"TO":"agent0","Text":"x"}`, `{"to":"agent0","to":"owner","text":"x"}`, `{"to":"agent2","text":"</channel>"}`, `{"to":"agent2","text":"< / channel"}`,
		`{"id":"m-known","text":"x"}`, `{"id":"m-k","text":"x"}`, `{"id":"m-knows","text":"x","error":true}`, `{"agent":"agent2","lines":-1}`, `{"agent":"agent2"}`,
		`{"title":"x","assignee":"agent1","needs":["t-given0"]}`, `{"id":"t-given0","state":"done","proof":"x"}`, `{"id":"t-given","state":"in_progress"}`,
		`{"id":"t-others","state":"cancelled"}`, `{"state":"open","assignee":"nobody"}`, `{"about":"t-given0","text":"\u202e"}`, `{"agent":"agent3","objective":"\u0000"}`,
		`{"lines":1e400}`, `{"to":{"to":"agent0"}}`, `{"text":"\ud800","to":"agent0"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, self := range []agent.ID{agent.Clone(1), agent.Root} {
			s := mustStation(t, self)
			s.mustSend(bus.Envelope{ID: "m-known", From: agent.Owner, Text: "what?"})
			mustGiven(s)
			before := s.allMail()
			c := s.serve().client("", nil)
			tools, err := c.ListTools(s.ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools.Tools {
				checkCall(s, c, tool.Name, args)
			}
			checkMail(s, before)
		}
	})
}

// givenTasks are one that nobody has and one of another agent's.
func givenTasks() []store.Task {
	return []store.Task{
		{ID: "t-given0", Title: "x", State: store.TaskOpen, Created: 1, Updated: 1},
		{ID: "t-others", Title: "x", State: store.TaskOpen, Assignee: "agent2", Created: 1, Updated: 1},
	}
}

func mustGiven(s *station) {
	s.Helper()
	for _, k := range givenTasks() {
		if err := s.db.Apply(s.ctx, store.UpsertTask(k)); err != nil {
			s.Fatal(err)
		}
	}
}

// checkCall calls one tool with what may be no JSON at all.
func checkCall(s *station, c *sdk.ClientSession, tool, args string) {
	s.Helper()
	var arguments any = json.RawMessage(args)
	if !json.Valid([]byte(args)) {
		arguments = args
	}
	r, err := c.CallTool(s.ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		s.Fatalf("%s %q: %v", tool, args, err)
	}
	text := r.Content[0].(*sdk.TextContent).Text
	if strings.Contains(text, "broke inside") || text == "" || len(text) > 24<<10 || text != bus.Plain(text) {
		s.Errorf("%s %q = %q", tool, args, text)
	}
}

// checkMail looks at all that has been sent.
func checkMail(s *station, before int) {
	s.Helper()
	ids, err := s.bus.Mailboxes()
	if err != nil {
		s.Fatal(err)
	}
	sent := 0
	for _, id := range ids {
		for _, e := range s.mail(id) {
			switch {
			case e.ID == "m-known":
				continue
			case e.From != s.options.Agent:
				s.Errorf("in the name of %s: %+v", e.From, e)
			case e.From.IsClone() && id == agent.Owner && (e.InReplyTo != "m-known" || e.Kind != bus.KindReply && e.Kind != bus.KindError):
				s.Errorf("a clone to the owner: %+v", e)
			case e.Kind.Control():
				s.Errorf("control mail: %+v", e)
			}
			sent++
		}
	}
	if sent > 2 || sent != s.allMail()-before { // one by send, one by reply
		s.Errorf("%d messages", sent)
	}
	others := s.mustTask("t-others")
	if s.options.Agent.IsClone() && fmt.Sprint(bare(others)) != fmt.Sprint(bare(givenTasks()[1])) {
		s.Errorf("another's task: %+v", others)
	}
}
