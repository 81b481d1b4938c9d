package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"netsky/agent"
	"netsky/agent/home"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/advice"
	"netsky/store"
)

// Options are what a Server is made of. Home, Records, Agents, Send and Token
// are required.
type Options struct {
	Home home.Dir
	// Records is the database, or why there is none at the moment.
	Records func() (Reader, error)
	Agents  Agents
	Panes   Panes // nil: there are no panes to be seen
	Bus     Bus
	Token   string // from Token

	// Hosts are names, without port, under which a browser may call beside the
	// loopback's own.
	Hosts []string
	// TLS, if set, is spoken on the listener: Certificate makes it. Wide is the owner's word that an
	// address that is not the loopback's may be served without it.
	TLS  *tls.Config
	Wide bool

	// Peer tells which user's process has the other end of a connection within this
	// machine, if ok; nil: the kernel does.
	Peer func(remote, local netip.AddrPort) (uid int, ok bool, err error)

	Version string
	Log     *slog.Logger     // nil: nothing is logged
	Now     func() time.Time // nil: time.Now

	MaxConns   int           // connections at once, a quarter of them for who has shown the token; 0 is 256
	MaxStreams int           // browsers that follow events at once; 0 is 64
	Poll       time.Duration // how often records and agents are looked at while a browser follows; 0 is 250 ms
}

// Bus sends the owner's messages and finds the owner's mail. *bus.Bus is one.
type Bus interface {
	Send(context.Context, envelope.Envelope) (bus.Receipt, error)
	Unread() ([]string, error)
	Find(mailbox agent.ID, name string) (bus.Entry, error)
}

// Reader is what is read of the records. *store.DB is one.
type Reader interface {
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
	Logs(context.Context, store.LogFilter) (store.List[store.Log], error)
	Log(ctx context.Context, id int64) (store.Log, error)

	DataVersion(context.Context) (int64, error)
}

// Agents tells how the agents are at this moment, in the order people list
// them. It is asked while a browser looks, up to four times a second.
type Agents interface {
	Agents(context.Context) ([]Agent, error)
}

// An Agent is how one agent is. An Agent with another state, or with anything
// else in it changed, is sent to the browsers.
type Agent struct {
	ID       agent.ID    `json:"id"`
	State    agent.State `json:"state"`
	Since    store.Time  `json:"since,omitzero"`
	Evidence string      `json:"evidence"` // what the verdict rests on
	Detail   string      `json:"detail,omitempty"`
	Runtime  string      `json:"runtime,omitempty"`
	Model    string      `json:"model,omitempty"`
	Dir      string      `json:"dir,omitempty"`
	Start    string      `json:"start,omitempty"` // names its session on record
	PID      int         `json:"pid,omitempty"`
	Wanted   bool        `json:"wanted"`
	Inbox    int         `json:"inbox"` // envelopes; -1 if they can't be counted
	Claimed  int         `json:"claimed"`
	Outbox   int         `json:"outbox"`
	Poison   int         `json:"poison"`
	// Decidable is that `netsky approve` answers the dialog at which it waits.
	Decidable bool `json:"decidable,omitempty"`
}

// Panes shows the agents' terminals. Its methods are called from several
// goroutines, for a pane only while a browser looks at it.
type Panes interface {
	// Screen is the agent's pane as it is now, with at most history lines from
	// above it. The error is for a person: no session, no tmux.
	Screen(ctx context.Context, id agent.ID, history int) (Screen, error)
	// Screens are several panes as they are now, in the order of their names.
	Screens(ctx context.Context, ids []agent.ID) []Shot
	// Watch calls stirred, which waits for nothing, whenever the pane may look
	// different, until ctx ends. The channel is closed when ctx has ended or the
	// pane is gone.
	Watch(ctx context.Context, id agent.ID, stirred func()) (gone <-chan struct{}, err error)
}

// A Screen is what `tmux capture-pane -e` gives of a pane.
type Screen struct {
	Text    string // lines, with SGR and OSC 8 sequences in them
	History int    // how many of them are above the screen
	Width   int    // in cells
	Height  int
	CursorX int // from 0, in the screen; with CursorY -1: not shown
	CursorY int
}

// A Shot is a Screen, or why it can't be seen.
type Shot struct {
	Screen
	Err error
}

const (
	defaultConns   = 256
	defaultStreams = 64
	defaultPoll    = 250 * time.Millisecond
	// Cookies know no port: what other servers on this machine have given the
	// browser comes along. It keeps 180 of 4 KiB at most for one name.
	maxHeader = 1 << 20
)

// A Server is the dashboard of one home.
type Server struct {
	o       Options
	access  *access
	state   *state
	hub     *hub
	sent    *sent
	unread  *unread
	handler http.Handler

	loopback bool // it is served to this machine alone; set before it is served
}

// New makes a Server. It starts nothing.
func New(o Options) (*Server, error) {
	switch {
	case o.Home.Root() == "":
		return nil, errors.New("dashboard: Options.Home must be set")
	case o.Records == nil, o.Agents == nil, o.Bus == nil:
		return nil, errors.New("dashboard: Options.Records, Agents and Bus must be set")
	case len(o.Token) < minToken:
		return nil, fmt.Errorf("dashboard: Options.Token must have at least %d characters", minToken)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxConns == 0 {
		o.MaxConns = defaultConns
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = defaultStreams
	}
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	if o.Peer == nil {
		o.Peer = peerUser
	}
	s := &Server{o: o, access: newAccess(o), state: loadState(o.Home, o.Now, o.Token), sent: newSent(o.Now), unread: newUnread(o.Home, o.Bus)}
	s.hub = newHub(o, s.approvals)
	s.handler = s.guard(vouched(s.routes()))
	return s, nil
}

// Handler answers requests. The caller must call Close.
func (s *Server) Handler() http.Handler { return s.handler }

// Close ends what browsers follow, and returns when all that was started for
// them has ended. The Server serves no more events then.
func (s *Server) Close() error {
	s.hub.close()
	return nil
}

// ErrWide is what the error of an address matches that more than this machine
// could reach.
var ErrWide = advice.With(errors.New("is not a loopback address"),
	"under [dashboard] in netsky.toml, set `cert` and `key` to serve it encrypted, or `wide = true` to allow it unencrypted")

// ErrTaken is what the error of an address matches that another program listens
// on.
var ErrTaken = errors.New("is taken")

// Listen listens on an address, "127.0.0.1:7717". An address that is taken is
// refused with an error that matches ErrTaken and names the holder: a browser
// that comes back to it must never find another server there. For port 0 it is
// the port that the home had last, so that open pages come back, or a free one if
// that is taken; the listener's Addr tells. The error of an address that is not
// the loopback's matches ErrWide, unless TLS or Wide is set.
func (s *Server) Listen(ctx context.Context, addr string) (net.Listener, error) {
	tcp, err := CheckListen(addr, s.o.TLS != nil, s.o.Wide)
	if err != nil {
		return nil, err
	}
	if tcp.Port != 0 {
		return listen(ctx, tcp)
	}
	if last := s.state.lastPort(); last != 0 {
		again := *tcp
		again.Port = last
		l, err := listen(ctx, &again)
		if err == nil {
			return l, nil
		}
		s.o.Log.Warn("last port", "error", err)
	}
	l, err := listen(ctx, tcp)
	if err != nil {
		return nil, err
	}
	if err := s.state.keepPort(l.Addr().(*net.TCPAddr).Port); err != nil {
		s.o.Log.Warn("port is not kept", "error", err)
	}
	return l, nil
}

func listen(ctx context.Context, tcp *net.TCPAddr) (net.Listener, error) {
	network := "tcp"
	if tcp.IP.To4() != nil {
		network = "tcp4" // else 0.0.0.0 would be all of IPv6 too
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, tcp.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("dashboard: %s %w by %s", tcp, ErrTaken, portHolder(tcp.AddrPort()))
	case err != nil:
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return l, nil
}

// CheckListen reads an address and says why Listen would refuse it.
func CheckListen(addr string, encrypted, wide bool) (*net.TCPAddr, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return tcp, mayServe(tcp, encrypted, wide)
}

func mayServe(addr net.Addr, encrypted, wide bool) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || encrypted || wide {
		return nil
	}
	return fmt.Errorf("dashboard: refusing to listen on %s without TLS: it %w", addr, ErrWide)
}

// Serve answers on the listener until ctx ends, and then closes the Server. It
// closes the listener too. What is being answered is answered, within a second.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.Close()
	defer l.Close()
	if err := mayServe(l.Addr(), s.o.TLS != nil, s.o.Wide); err != nil {
		return err
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	s.loopback = ok && tcp.IP.IsLoopback()
	l = limit(l, s.o.MaxConns)
	if s.o.TLS != nil {
		l = tls.NewListener(l, s.o.TLS)
	}
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return s.withPeer(withConn(ctx, c), c) },
		ConnState:         rested,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("dashboard: %w", err)
	case <-ctx.Done():
	}
	s.hub.end() // else the events would keep Shutdown waiting
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(end) != nil {
		srv.Close()
	}
	<-ended
	return nil
}
