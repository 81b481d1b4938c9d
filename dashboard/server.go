package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/dashboard/access"
	"netsky/dashboard/live"
	"netsky/home"
	"netsky/store"
)

// Options configure a Server. Home, Records, Agents, Bus and Token are required.
type Options struct {
	Home home.Dir
	// Records returns the database, or why it is unavailable at the moment.
	Records func() (Reader, error)
	Agents  live.Agents
	Panes   live.Panes // nil: panes are not shown
	Bus     Bus
	Desk    Desk  // nil: approvals are answered elsewhere
	Work    Work  // nil: how the agents' work is, is not shown
	Costs   Costs // nil: what turns cost is not shown
	// Mistake returns what is wrong in netsky.toml and what that prevents, "" for nothing.
	Mistake func() (text, then string)
	Version string
	Log     *slog.Logger     // nil: nothing is logged
	Now     func() time.Time // nil: time.Now

	// As in access.Options.
	Token    string
	Hosts    []string
	TLS      *tls.Config
	Wide     bool
	Peer     func(remote, local netip.AddrPort) (uid int, ok bool, err error)
	MaxConns int

	// As in live.Options.
	MaxStreams int
	Poll       time.Duration
}

// Bus sends the owner's messages and finds the owner's mail. *bus.Bus implements it.
type Bus interface {
	attention.Bus
	Send(context.Context, envelope.Envelope) (bus.Receipt, error)
	Unread() ([]string, error)
	Find(mailbox agent.ID, name string) (bus.Entry, error)
}

// Reader reads the records. *store.DB implements it.
type Reader interface {
	live.Reader
	Snapshot(context.Context) (store.Snapshot, error)
	Timeline(ctx context.Context, id string) (store.Timeline, error)
	Find(ctx context.Context, text string, p store.Page) (store.List[store.Found], error)

	Actors(context.Context) ([]store.Actor, error)
	Actor(context.Context, agent.ID) (store.Actor, error)
	Sessions(context.Context, store.SessionFilter) (store.List[store.Session], error)
	Session(ctx context.Context, start string) (store.Session, error)
	Tasks(context.Context, store.TaskFilter) (store.List[store.Task], error)
	Task(ctx context.Context, id string) (store.Task, error)
	Dependencies(ctx context.Context, task string) ([]store.Dependency, error)
	Messages(context.Context, store.MessageFilter) (store.List[store.Message], error)
	Message(ctx context.Context, id string) (store.Message, error)
	LastFrom(ctx context.Context, senders []agent.ID, without []string) (map[agent.ID]store.Message, error)
	Deliveries(context.Context, store.DeliveryFilter) (store.List[store.Delivery], error)
	Inputs(ctx context.Context, message string) ([]store.ActorInput, error)
	Notes(context.Context, store.NoteFilter) (store.List[store.Note], error)
	Note(ctx context.Context, id string) (store.Note, error)
	Reason(ctx context.Context, task string) (store.Note, error)
	Log(ctx context.Context, id int64) (store.Log, error)
	Updates(context.Context, store.Page) (store.List[store.Update], error)
}

// A Server is the dashboard of one home: pages and an API behind a Guard.
type Server struct {
	*access.Guard
	o      Options
	live   *live.Broadcaster
	sent   *sent
	unread *unread
	works  *works
	costs  *costs
	tasks  *tasks

	questions *attention.Mail
	decisions *decisions
}

// New makes a Server. It starts nothing.
func New(o Options) (*Server, error) {
	if o.Records == nil || o.Agents == nil || o.Bus == nil {
		return nil, errors.New("dashboard: Options.Records, Agents and Bus must be set")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{
		o: o, sent: newSent(o.Now), unread: &unread{home: o.Home, bus: o.Bus, log: o.Log}, works: &works{o.Work, o.Log}, costs: &costs{o.Costs, o.Now},
		questions: attention.NewMail(o.Bus), decisions: &decisions{Desk: o.Desk, home: o.Home, log: o.Log, limiter: limiter{now: o.Now}},
	}
	s.tasks = &tasks{s.records, s.works, s.costs}
	s.live = live.New(live.Options{
		Records: func() (live.Reader, error) { return o.Records() }, Agents: allAgents{s}, Approvals: s.approvals, Panes: o.Panes,
		Version: o.Version, Log: o.Log, Now: o.Now, MaxStreams: o.MaxStreams, Poll: o.Poll,
	})
	guard, err := access.New(access.Options{
		Home: o.Home, Token: o.Token, Hosts: o.Hosts, TLS: o.TLS, Wide: o.Wide, Peer: o.Peer,
		MaxConns: o.MaxConns, Log: o.Log, Now: o.Now,
	}, s.routes())
	if err != nil {
		return nil, err
	}
	s.Guard = guard
	return s, nil
}

// Close disconnects the browsers that follow events, and returns when everything
// started for them has ended. The Server serves no more events after that.
func (s *Server) Close() error {
	s.live.Close()
	return nil
}

// Serve answers on the listener until ctx ends, then closes it and the Server. Requests
// in progress have one second to finish.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.Close()
	return s.Guard.Serve(ctx, l, s.live.End)
}
