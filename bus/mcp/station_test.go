package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/bus/mcp"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

// A station is a home with mailboxes and records, and one agent's server in it.
type station struct {
	testing.TB
	ctx     context.Context
	home    home.Dir
	bus     *bus.Bus
	db      *store.DB
	team    *team
	book    *book
	post    *postbox
	options mcp.Options
	server  *mcp.Server

	toServer   *io.PipeWriter
	fromServer io.Reader
	ended      chan error // what Serve returned
	log        *journal
}

// mustStation makes a station for the agent; nothing is served yet.
func mustStation(tb testing.TB, self agent.ID) *station {
	tb.Helper()
	home := testworld.FastHome(tb)
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	s := &station{TB: tb, ctx: ctx, home: home, team: &team{}, post: &postbox{}, log: &journal{}}
	s.bus = testworld.Bus(tb, home, agent.Root, agent.Clone(1), agent.Clone(2), agent.Infinity, agent.Owner)
	var err error
	if s.db, err = store.Open(ctx, home); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.db.Close() })
	s.options = mcp.Options{
		Agent: self, Start: "0123456789abcdef", Home: home, Bus: s.bus, Records: records{s.db},
		Members: s.team, Mail: s.post, Channel: true, Version: "test", Log: s.log.note,
	}
	s.book = &book{o: &s.options}
	s.options.Tasks = s.book
	return s
}

// serve starts the server; the test ends it by the end of stdin.
func (s *station) serve() *station {
	s.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	s.options.In, s.options.Out = in, out
	s.toServer, s.fromServer, s.ended = toServer, fromServer, make(chan error, 1)
	s.server = mcp.New(s.options)
	go func() {
		s.ended <- s.server.Serve(s.ctx)
		out.Close()
	}()
	s.Cleanup(func() {
		toServer.Close()
		fromServer.Close()
		s.mustEnd()
	})
	return s
}

// mustEnd waits for the server's end and says how it was.
func (s *station) mustEnd() error {
	s.Helper()
	select {
	case err := <-s.ended:
		s.ended <- err
		return err
	case <-time.After(patience):
		s.Fatal("the server has not ended")
	}
	return nil
}

// client connects the official client, which sees every byte that comes in tap.
func (s *station) client(version string, tap io.Writer) *sdk.ClientSession {
	s.Helper()
	if tap == nil {
		tap = io.Discard
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "client", Version: "1"}, nil)
	t := &sdk.IOTransport{Reader: io.NopCloser(io.TeeReader(s.fromServer, tap)), Writer: s.toServer}
	session, err := c.Connect(s.ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: version})
	testworld.Must(s, err, "connect")
	return session
}

// call calls a tool.
func (s *station) call(c *sdk.ClientSession, tool string, args any) (text string, failed bool) {
	s.Helper()
	r, err := c.CallTool(s.ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	testworld.Must(s, err, "%s %v", tool, args)
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.(*sdk.TextContent).Text)
	}
	return b.String(), r.IsError
}

// mustCall is call of what succeeds.
func (s *station) mustCall(c *sdk.ClientSession, tool string, args any) string {
	s.Helper()
	text, failed := s.call(c, tool, args)
	if failed {
		s.Fatalf("%s %v: %s", tool, args, text)
	}
	return text
}

// mail lists what lies in a mailbox's inbox.
func (s *station) mail(id agent.ID) (list []envelope.Envelope) {
	s.Helper()
	entries := testworld.Got(s.bus.List(id, bus.Inbox, 0))(s)
	for _, e := range entries {
		testworld.Equal(s, e.Err, nil, "%s", e.Name)
		list = append(list, e.Envelope)
	}
	return list
}

// allMail counts what lies in all inboxes.
func (s *station) allMail() (n int) {
	s.Helper()
	ids := testworld.Got(s.bus.Mailboxes())(s)
	for _, id := range ids {
		n += len(s.mail(id))
	}
	return n
}

// mustSend sends a message to the station's agent.
func (s *station) mustSend(e envelope.Envelope) string {
	s.Helper()
	if e.To == "" {
		e.To = s.options.Agent
	}
	r := testworld.Got(s.bus.Send(s.ctx, e))(s)
	return r.ID
}

// A raw speaks the wire by hand.
type raw struct {
	*station
	lines *bufio.Reader
}

func (s *station) raw() raw { return raw{s, bufio.NewReaderSize(s.fromServer, 1<<20)} }

func (r raw) say(line string) {
	r.Helper()
	testworld.Got(io.WriteString(r.toServer, line+"\n"))(r)
}

func (r raw) hear() (line string, message map[string]any) {
	r.Helper()
	line, err := r.lines.ReadString('\n')
	testworld.Must(r, err, "heard %q", line)
	testworld.Must(r, json.Unmarshal([]byte(line), &message), "heard %q", line)
	return strings.TrimSuffix(line, "\n"), message
}

// hello does the handshake as older clients do it.
func (r raw) hello() {
	r.Helper()
	r.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	r.hear()
	r.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// ours lists the goroutines that run code of the server or the SDK.
func ours() (list []string) {
	buf := make([]byte, 4<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "netsky/bus/mcp.") || strings.Contains(g, "go-sdk/") {
			list = append(list, g)
		}
	}
	return list
}

// rawArgs are arguments as they are written.
func rawArgs(s string) any { return json.RawMessage(s) }
