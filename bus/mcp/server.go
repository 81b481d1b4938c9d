package mcp

import (
	"context"
	"io"
	"sync"

	"netsky/agent"
	"netsky/bus"
)

// Options say for whom a server works, and with what. Agent, Home, Bus, In and
// Out are required.
type Options struct {
	Agent   agent.ID
	Start   string // the agent's start id
	Home    agent.Home
	Bus     *bus.Bus
	Records Records // nil: the tools of the records say that there are none
	Members Members // nil: the tools of the team likewise
	Mail    Mail    // nil: another process holds the mailbox
	Channel bool    // declare that mail may be pushed as a channel notification

	In      io.ReadCloser
	Out     io.Writer // the wire: nobody else may write to it
	Version string
	// Log is told what went wrong that no tool's result tells; it may be nil.
	Log func(what string, err error)
}

// A Server speaks with one client.
type Server struct {
	o         Options
	wire      *wire
	ready     chan struct{} // closed when the client has said that it is ready
	readyOnce sync.Once
}

// New makes a server. It reads nothing before Serve.
func New(o Options) *Server {
	return &Server{o: o, wire: &wire{}, ready: make(chan struct{})}
}

// Serve is New(o).Serve.
func Serve(ctx context.Context, o Options) error { return New(o).Serve(ctx) }

// Serve answers the client until stdin ends, which is no error, ctx ends, or the
// wire breaks. It may be called once.
func (s *Server) Serve(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Ready is closed when the client has finished its side of the handshake.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Notify pushes a text to the client as a channel notification. Its names in
// meta are of letters, digits and _. nil says that the bytes are written, no
// more.
func (s *Server) Notify(ctx context.Context, text string, meta map[string]string) error {
	return nil
}
