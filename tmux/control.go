package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrClosed is returned when a control client has ended.
var ErrClosed = errors.New("control client has ended")

// maxReply limits a reply. It is far above a pane's whole history, and guards memory.
const maxReply = 64 << 20

// A Notice is a notification from tmux to a control client.
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
	stirred atomic.Pointer[func(pane []byte)] // nil: not called
	session string                            // it is attached to
	ready   chan struct{}                     // closed when attached
	done    chan struct{}                     // closed when the process has ended; err is set then
	err     error
	stop    sync.Once

	mu      sync.Mutex // guards below
	count   int
	pending []*request // in the order written
}

// A request is lines and their answers.
type request struct {
	lines  []string
	verb   string
	blocks int    // of the reply that are still to come, fewer if a command fails, as tmux skips the rest of its line; 0: as many as come before end
	vis    bool   // it is text as show-buffer writes it; what is kept is the text itself
	end    string // the text of the block that ends the reply
	text   strings.Builder
	err    error
	done   chan struct{} // closed when it has been answered; nil for those that wait on another's
}

// startFresh starts cmd from a goroutine of its own, because a child that dies
// with its parent dies with the parent's thread, and a caller's may be locked.
func startFresh(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() { started <- cmd.Start() }()
	return <-started
}

// Notices returns tmux's notifications. If they are not read the oldest are dropped. The
// channel is closed when the client has ended.
func (c *Client) Notices() <-chan Notice { return c.notices }

// Close ends the client's process and waits for it: one second for it to exit, another
// after TERM, then by force. Waiting calls of Do return [ErrClosed].
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

// Do executes tmux command lines in order and returns what they printed, without the
// last line feed. A line may hold several commands (see [Quote] for words); an error
// ends its line, but the lines after it are executed. The first error is returned, with
// the output of the others. Calls from several goroutines are pipelined. If ctx ends
// first, the lines may still be executed.
func (c *Client) Do(ctx context.Context, line ...string) (string, error) {
	for _, l := range line {
		if err := oneLine(l); err != nil {
			return "", err
		}
		if l == "" {
			return "", errors.New("tmux: an empty command line, which would detach the client")
		}
	}
	if len(line) == 0 {
		return "", nil
	}
	req := newRequest(line...)
	if err := c.ask(ctx, req); err != nil {
		return "", err
	}
	return strings.TrimSuffix(req.text.String(), "\n"), req.err
}

// newRequest makes a request of command lines.
func newRequest(lines ...string) *request {
	req := &request{lines: lines, verb: firstWord(lines[0])}
	if len(lines) == 1 && single(lines[0]) {
		req.blocks = 1
	}
	return req
}

// ask writes the requests, at least one, together and waits until all have been
// answered.
func (c *Client) ask(ctx context.Context, reqs ...*request) error {
	ctx, cancel := withPatience(ctx)
	defer cancel()
	begun := time.Now()
	last := reqs[len(reqs)-1]
	last.done = make(chan struct{})
	if err := c.send(ctx, reqs); err != nil {
		return err
	}
	select {
	case <-last.done:
	case <-c.done:
		select {
		case <-last.done:
		default:
			return c.err
		}
	case <-ctx.Done():
		return c.server.silent(last.verb, begun, ctx.Err())
	}
	return nil
}

// send writes the requests' lines, and after each the one that ends its reply.
func (c *Client) send(ctx context.Context, reqs []*request) error {
	begun := time.Now()
	verb := reqs[0].verb
	select {
	case <-c.turn:
		defer func() { c.turn <- struct{}{} }()
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return c.server.silent(verb, begun, ctx.Err())
	}
	var b []byte
	c.mu.Lock()
	for _, req := range reqs {
		for _, l := range req.lines {
			b = append(append(b, l...), '\n')
		}
		if req.blocks == 0 {
			c.count++
			req.end = c.id + strconv.Itoa(c.count)
			b = append(append(append(b, "display-message -p "...), req.end...), '\n')
		}
		c.pending = append(c.pending, req)
	}
	c.mu.Unlock()
	deadline, _ := ctx.Deadline()
	_ = c.stdin.SetWriteDeadline(deadline)
	n, err := c.stdin.Write(b)
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("tmux %s: server %s: %w", verb, c.server.label(), ErrClosed)
	case n == 0:
		c.forget(reqs)
	default:
		// Half a line can't be taken back: the client is no longer usable.
		_ = c.cmd.Process.Kill()
	}
	return c.server.silent(verb, begun, context.DeadlineExceeded)
}

// forget drops requests of which nothing was written; they are the last ones.
func (c *Client) forget(reqs []*request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.pending) - len(reqs); n >= 0 && c.pending[n] == reqs[0] {
		c.pending = c.pending[:n]
	}
}
