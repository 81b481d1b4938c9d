package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxLine is the longest line that is read. A tool's argument is at most an
	// envelope, and JSON may write each of its bytes as six.
	maxLine = 16 << 20
	readBuf = 64 << 10
)

// Methods that the SDK does not know, or must not see.
const (
	// methodDiscover asks for revisions of the protocol in which a server cannot push.
	// If it is unknown, the client falls back to initialize, and channel notifications
	// work.
	methodDiscover   = "server/discover"
	methodChannel    = "notifications/claude/channel"
	methodPermission = "notifications/claude/channel/permission_request"
)

// A wire is one client at the other end of two streams, one message per line. It is
// both the SDK's transport and its connection.
type wire struct {
	in  io.ReadCloser
	log func(what string, err error)

	lines chan jsonrpc.Message // unbuffered: a client that writes faster than the server works has to wait
	ended chan struct{}        // closed when the reader has returned
	cause error                // why it has returned; set before ended is closed

	writing sync.Mutex // guards out
	out     io.Writer

	closing sync.Once
	closed  chan struct{}
}

func newWire(in io.ReadCloser, out io.Writer, log func(string, error)) *wire {
	return &wire{
		in: endable(in), out: out, log: log,
		lines: make(chan jsonrpc.Message), ended: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Connect starts the reader, which ends with the stream or Close.
func (w *wire) Connect(context.Context) (sdk.Connection, error) {
	go w.read()
	return w, nil
}

// SessionID is empty: a stream is one session.
func (w *wire) SessionID() string { return "" }

// Read returns the next message for the SDK.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-w.lines:
		return m, nil
	case <-w.ended:
		return nil, w.cause
	case <-w.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message.
func (w *wire) Write(ctx context.Context, m jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case <-w.closed:
		return io.ErrClosedPipe
	default:
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	_, err = w.out.Write(append(data, '\n'))
	return err
}

// Close stops reading, which closes the client's stream to the server.
func (w *wire) Close() (err error) {
	w.closing.Do(func() {
		close(w.closed)
		err = w.in.Close()
	})
	return err
}

func (w *wire) read() {
	defer close(w.ended)
	r := bufio.NewReaderSize(w.in, readBuf)
	for {
		line, err := w.line(r)
		if len(line) > 0 && !w.accept(line) {
			w.cause = io.EOF
			return
		}
		if err != nil {
			w.cause = err
			return
		}
	}
}

// line reads one line without its end. One that is too long is skipped and comes back
// empty. Text before the end of the stream counts as a line.
func (w *wire) line(r *bufio.Reader) (line []byte, err error) {
	length := 0
	for {
		part, err := r.ReadSlice('\n')
		if length += len(part); length <= maxLine {
			line = append(line, part...)
		} else {
			line = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if length > maxLine {
			w.log("wire", fmt.Errorf("skipped a line of %d bytes; at most %d are allowed", length, maxLine))
		}
		return bytes.TrimSpace(line), err
	}
}

// accept handles one line; it returns false if the SDK has stopped reading. A line that
// is not a message is skipped: an answer would have no ID, and clients take one without
// as the end of the connection.
func (w *wire) accept(line []byte) bool {
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		w.log("wire", fmt.Errorf("skipped a line of %d bytes that is not a message: %w", len(line), err))
		return true
	}
	if req, ok := m.(*jsonrpc.Request); ok && w.own(req) {
		return true
	}
	select {
	case w.lines <- m:
		return true
	case <-w.closed:
		return false
	}
}

// own handles what the SDK must not see.
func (w *wire) own(req *jsonrpc.Request) bool {
	switch req.Method {
	case methodDiscover:
		if req.IsCall() {
			refusal := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: methodDiscover + ": unknown; use initialize"}
			if err := w.Write(context.Background(), &jsonrpc.Response{ID: req.ID, Error: refusal}); err != nil {
				w.log("wire", err)
			}
		}
		return true
	case methodPermission:
		w.log("wire", errors.New("ignored a permission request over the channel; the pane shows it"))
		return true
	}
	return false
}

// notify writes a channel notification.
func (w *wire) notify(ctx context.Context, text string, meta map[string]string) error {
	params, err := json.Marshal(struct {
		Content string            `json:"content"`
		Meta    map[string]string `json:"meta,omitempty"`
	}{text, meta})
	if err != nil {
		return err
	}
	return w.Write(ctx, &jsonrpc.Request{Method: methodChannel, Params: params})
}
