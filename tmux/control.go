package tmux

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrClosed is matched when a control client has ended.
var ErrClosed = errors.New("control client has ended")

// maxReply is the largest reply kept. It is far above what a pane's whole
// history is, and keeps a mistake from filling the memory.
const maxReply = 64 << 20

// A Notice is what tmux tells a control client unasked.
type Notice struct {
	Name string // such as "sessions-changed"
	Args string // the rest of the line
}

// A Client is a control-mode client: a tmux process whose commands cost a
// thirtieth of a call that starts a program. Its methods may be called
// concurrently. On Linux it ends with the thread that started it, so does not
// outlive this process (if the server answers); elsewhere when its input does.
type Client struct {
	server  *Server
	cmd     *exec.Cmd
	stdin   *os.File
	id      string        // ends the replies; no pane can guess it
	turn    chan struct{} // holds a token while nobody writes to stdin
	notices chan Notice
	stirs   stirs
	session string        // it is attached to
	ready   chan struct{} // closed when attached
	done    chan struct{} // closed when the process has ended; err is set then
	err     error
	stop    sync.Once

	mu      sync.Mutex // guards below
	count   int
	pending []*request // in the order written
}

// A request is what one Do waits for.
type request struct {
	single bool   // the reply is one block
	end    string // if not: the text of the block that ends the reply
	text   strings.Builder
	err    error
	verb   string
	done   chan struct{}
}

// Control attaches a control client to the session of exactly that name. It
// neither resizes its windows nor receives their output. The caller must call
// Close.
//
// While it attaches the caller must keep sessions from being made or ended as
// far as that is in his hands: tmux 3.3a tells clients of it that are not ready
// to be told, and dies, in one of twenty such coincidences.
func (s *Server) Control(ctx context.Context, session string) (*Client, error) {
	return s.attach(ctx, session, "no-output,ignore-size")
}

// attach is Control with tmux's own flags for the client, which must not change
// later: tmux 3.3a loses track of output that is under way when no-output is set
// or lifted, and the client is never answered again.
func (s *Server) attach(ctx context.Context, session, flags string) (*Client, error) {
	if !nameOK(session) {
		return nil, fmt.Errorf("tmux attach-session: session %q: want letters, digits, - or _", session)
	}
	program, err := s.program()
	if err != nil {
		return nil, err
	}
	// One that is given up while it attaches is what tmux 3.3a dies of.
	gone := ctx.Err
	ctx, cancel, err := settled(ctx, "attach-session")
	if err != nil {
		return nil, err
	}
	defer cancel()
	stdin, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	r, stdout, err := os.Pipe()
	if err != nil {
		w.Close()
		return nil, err
	}
	// -N: attaching would start a server otherwise.
	args := s.args("-u", "-N", "-C", "attach-session", "-t", "="+session, "-f", flags)
	c := &Client{
		server: s, cmd: exec.Command(program, args...), stdin: w, id: "end-" + rand.Text() + "-",
		turn:    make(chan struct{}, 1),
		session: session,
		stirs:   stirs{flag: make(chan struct{}, 1), panes: make(map[string]bool)},
		notices: make(chan Notice, 64), // a burst of starts; what is older is dropped
		ready:   make(chan struct{}), done: make(chan struct{}),
	}
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = s.Environ(), stdin, stdout, stdout
	c.cmd.SysProcAttr = childAttr()
	if err := startFresh(c.cmd); err != nil {
		w.Close()
		r.Close()
		stdout.Close()
		return nil, fmt.Errorf("tmux attach-session: %w", err)
	}
	go c.await(stdout)
	go c.read(r)
	begun := time.Now()
	select {
	case <-c.ready:
		c.turn <- struct{}{}
		if err := gone(); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("tmux attach-session: %w", err)
		}
		return c, nil
	case <-c.done:
		w.Close()
		return nil, c.err
	case <-ctx.Done():
		c.turn <- struct{}{}
		_ = c.Close()
		return nil, s.silent("attach-session", begun, ctx.Err())
	}
}

// startFresh starts cmd from a goroutine of its own, because a child that dies
// with its parent dies with the parent's thread, and a caller's may be locked.
func startFresh(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() { started <- cmd.Start() }()
	return <-started
}

// Notices are what tmux told unasked. When they are not read the oldest are
// dropped. The channel is closed when the client has ended.
func (c *Client) Notices() <-chan Notice { return c.notices }

// Close ends the client's process and waits for it: a second for it to go by
// itself, another when asked, then by force. Calls of Do that wait return
// [ErrClosed].
func (c *Client) Close() error {
	c.stop.Do(func() {
		_ = c.stdin.Close()
		for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t := time.NewTimer(time.Second)
			select {
			case <-c.done:
				t.Stop()
				return
			case <-t.C:
				_ = c.cmd.Process.Signal(sig)
			}
		}
	})
	<-c.done
	return nil
}

// Do carries out tmux command lines in order and returns what they printed,
// without the last line feed. A line may hold several commands (see [Quote] for
// words); an error ends its line, the lines after it are carried out. The first
// error is returned, beside the text of the others. Calls from several
// goroutines are pipelined. When ctx ends first, the lines may still be carried
// out.
func (c *Client) Do(ctx context.Context, line ...string) (string, error) {
	var b strings.Builder
	for _, l := range line {
		if err := oneLine(l); err != nil {
			return "", err
		}
		if l == "" {
			return "", errors.New("tmux: an empty command line, which would detach the client")
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	if len(line) == 0 {
		return "", nil
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	begun := time.Now()
	req := &request{verb: firstWord(line[0]), single: len(line) == 1 && single(line[0]), done: make(chan struct{})}
	if err := c.send(ctx, &b, req); err != nil {
		return "", err
	}
	select {
	case <-req.done:
	case <-c.done:
		select {
		case <-req.done:
		default:
			return "", c.err
		}
	case <-ctx.Done():
		return "", c.server.silent(req.verb, begun, ctx.Err())
	}
	return strings.TrimSuffix(req.text.String(), "\n"), req.err
}

// send writes the lines and the one that ends their reply.
func (c *Client) send(ctx context.Context, b *strings.Builder, req *request) error {
	begun := time.Now()
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return c.server.silent(req.verb, begun, ctx.Err())
	}
	c.mu.Lock()
	c.count++
	req.end = c.id + strconv.Itoa(c.count)
	c.pending = append(c.pending, req)
	c.mu.Unlock()
	if !req.single {
		b.WriteString("display-message -p ")
		b.WriteString(req.end)
		b.WriteByte('\n')
	}
	deadline, _ := ctx.Deadline()
	_ = c.stdin.SetWriteDeadline(deadline)
	n, err := io.WriteString(c.stdin, b.String())
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("tmux %s: server %s: %w", req.verb, c.server.label(), ErrClosed)
	case n == 0:
		c.forget(req)
	default:
		// Half a line can't be taken back: the client is of no use any more.
		_ = c.cmd.Process.Kill()
	}
	return c.server.silent(req.verb, begun, context.DeadlineExceeded)
}

// forget drops a request of which nothing was written; it is the last.
func (c *Client) forget(req *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.pending); n > 0 && c.pending[n-1] == req {
		c.pending = c.pending[:n-1]
	}
}
