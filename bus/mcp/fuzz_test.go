package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/testworld"
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
	var all []*fuzzed
	for _, self := range []agent.ID{agent.Clone(1), agent.Root} {
		all = append(all, mustFuzzed(f, self))
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, z := range all {
			s := *z.station
			s.TB = t
			for _, tool := range z.tools {
				checkCall(&s, z.client, tool.Name, args)
			}
			z.checkMail(&s)
		}
	})
}

// A fuzzed is a server that lives through all inputs.
type fuzzed struct {
	*station
	client *sdk.ClientSession
	tools  []*sdk.Tool
	known  map[string]bool // files of mail that were looked at
}

func mustFuzzed(f *testing.F, self agent.ID) *fuzzed {
	f.Helper()
	s := mustStation(f, self)
	s.mustSend(envelope.Envelope{ID: "m-known", From: agent.Owner, Text: "what?"})
	mustGiven(s)
	c := s.serve().client("", nil)
	list := testworld.Got(c.ListTools(s.ctx, nil))(f)
	return &fuzzed{s, c, list.Tools, map[string]bool{}}
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
		testworld.Must(s, s.db.Apply(s.ctx, store.UpsertTask(k)))
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
	testworld.Must(s, err, "%s %q", tool, args)
	text := r.Content[0].(*sdk.TextContent).Text
	if strings.Contains(text, "internal error") || text == "" || len(text) > 24<<10 || text != envelope.Plain(text) {
		s.Errorf("%s %q = %q", tool, args, text)
	}
}

// checkMail looks at all that has been sent since the last time.
func (z *fuzzed) checkMail(s *station) {
	s.Helper()
	ids := testworld.Got(s.bus.Mailboxes())(s)
	sent := 0
	for _, id := range ids {
		names := testworld.Got(s.bus.Names(id, bus.Inbox))(s)
		for _, name := range names {
			if z.known[name] {
				continue
			}
			z.known[name] = true
			entry, err := s.bus.Read(id, bus.Inbox, name)
			if err != nil || entry.Err != nil {
				s.Fatalf("%s: %v, %v", name, err, entry.Err)
			}
			if checkEnvelope(s, id, entry.Envelope) {
				sent++
			}
		}
	}
	if sent > 2 { // one by send, one by reply
		s.Errorf("%d messages", sent)
	}
	others := s.mustTask("t-others")
	if s.options.Agent.IsClone() && fmt.Sprint(bare(others)) != fmt.Sprint(bare(givenTasks()[1])) {
		s.Errorf("another's task: %+v", others)
	}
}

// checkEnvelope looks at one that may have been sent by a tool; false says that
// it was not.
func checkEnvelope(s *station, to agent.ID, e envelope.Envelope) bool {
	s.Helper()
	switch {
	case e.ID == "m-known", to == agent.Owner && e.Via == "code": // the brakes tell the owner
		return false
	case e.From != s.options.Agent:
		s.Errorf("in the name of %s: %+v", e.From, e)
	case e.From.IsClone() && to == agent.Owner && (e.InReplyTo != "m-known" || e.Kind != envelope.KindReply && e.Kind != envelope.KindError):
		s.Errorf("a clone to the owner: %+v", e)
	case e.Kind.Control():
		s.Errorf("control mail: %+v", e)
	}
	return true
}

// Whatever a client writes, the server lives until it has nothing more to say,
// and each line that it says itself is a message.
func FuzzWire(f *testing.F) {
	for _, seed := range []string{
		"", "\n\n", "x", "{}\n", "[]\n[{}]\n", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents","arguments":[]}}`, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":7}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`, `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"9999"}}}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	shared := mustStation(f, agent.Clone(1))
	f.Fuzz(func(t *testing.T, input string, hello bool) {
		s := *shared
		s.TB = t
		r := s.serve().raw()
		if hello {
			r.hello()
		}
		said := make(chan error, 1)
		go func() {
			for {
				line, err := r.lines.ReadBytes('\n')
				if err != nil {
					said <- nil
					return
				}
				if _, err := jsonrpc.DecodeMessage(line); err != nil {
					said <- fmt.Errorf("%q: %w", line, err)
					return
				}
			}
		}()
		io.WriteString(s.toServer, input) // the server may have hung up
		s.toServer.Close()
		s.mustEnd()
		testworld.Equal(t, <-said, nil)
	})
}
