package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// ErrLost is what the error of everything matches that was under way when the
// connection to Codex ended.
var ErrLost = errors.New("codex has gone")

// A transport carries whole messages to a server and back. read and write are
// called from one goroutine each; close makes both of them return and waits for
// the server's end where it is ours. It may be called more than once.
type transport interface {
	read() ([]byte, error)
	write([]byte) error
	close() error
	// why says what is known about the end of the other side.
	why() string
}

// A handler is what a server may ask of us, without being asked.
type handler interface {
	// notify is called in the order of the wire; it must be quick and must not
	// call the peer.
	notify(method string, params json.RawMessage)
	// request answers a request. It has a goroutine of its own. When answered
	// is false, somebody else has given the answer.
	request(ctx context.Context, id, method string, params json.RawMessage) (result any, answered bool, err error)
}

// A remoteError is an error in the words of the server.
type remoteError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *remoteError) Error() string { return e.Message }

const (
	codeNoMethod = -32601
	codeInternal = -32603
)

// A message is any line of JSON-RPC. What has a method is a request or a
// notification, also when its id is one of ours: the server counts its own.
type message struct {
	Version string          `json:"jsonrpc,omitempty"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *remoteError    `json:"error,omitempty"`
}

type inbound struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *remoteError    `json:"error"`
}

// maxRequests bounds how many requests of the server's are answered at a time;
// more than that is a server gone mad, and is refused.
const maxRequests = 64

// A peer speaks JSON-RPC over a transport. newPeer starts its goroutines, close
// ends them and waits.
type peer struct {
	t       transport
	h       handler
	version string      // of the protocol, where the server wants it said
	out     chan []byte // as many as may wait while the server is busy reading
	done    chan struct{}
	cancel  context.CancelFunc // ends the answering of requests
	slots   chan struct{}
	group   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	next  int64
	calls map[int64]chan inbound
	err   error // why it ended
}

func newPeer(t transport, h handler, version string) *peer {
	ctx, cancel := context.WithCancel(context.Background())
	p := &peer{
		t: t, h: h, version: version,
		out: make(chan []byte, 16), done: make(chan struct{}), cancel: cancel,
		slots: make(chan struct{}, maxRequests), calls: make(map[int64]chan inbound),
	}
	p.group.Go(func() { p.readAll(ctx) })
	p.group.Go(p.writeAll)
	return p
}

// close ends the connection and waits for all that it had under way.
func (p *peer) close() error {
	p.end(ErrLost)
	err := p.t.close()
	p.group.Wait()
	return err
}

// end notes why the connection is over; the first reason stays.
func (p *peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		p.cancel()
		close(p.done)
	}
}

// failure is why the connection is over.
func (p *peer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *peer) writeAll() {
	for {
		select {
		case line := <-p.out:
			if err := p.t.write(line); err != nil {
				p.lost(err)
				return
			}
		case <-p.done:
			return
		}
	}
}

// lost ends the connection after an error of the transport's.
func (p *peer) lost(err error) {
	text := p.t.why()
	if text == "" {
		text = err.Error()
	}
	p.end(fmt.Errorf("%w: %s", ErrLost, text))
}

func (p *peer) readAll(ctx context.Context) {
	for {
		line, err := p.t.read()
		if err != nil {
			p.lost(err)
			return
		}
		var m inbound
		if json.Unmarshal(line, &m) != nil {
			continue // what is no message is nobody's answer
		}
		switch {
		case m.Method != "" && m.ID != nil:
			p.serve(ctx, m)
		case m.Method != "":
			p.h.notify(m.Method, m.Params)
		case m.ID != nil:
			p.settle(m)
		}
	}
}

// settle hands an answer to whoever waits for it.
func (p *peer) settle(m inbound) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	answer := p.calls[id]
	delete(p.calls, id)
	p.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// serve answers a request of the server's.
func (p *peer) serve(ctx context.Context, m inbound) {
	select {
	case p.slots <- struct{}{}:
	default:
		p.group.Go(func() { p.answer(m.ID, nil, &remoteError{Code: codeInternal, Message: "too many requests at a time"}) })
		return
	}
	p.group.Go(func() {
		defer func() { <-p.slots }()
		result, answered, err := p.h.request(ctx, string(m.ID), m.Method, m.Params)
		if answered {
			p.answer(m.ID, result, err)
		}
	})
}

func (p *peer) answer(id json.RawMessage, result any, err error) {
	m := message{Version: p.version, ID: id, Result: result}
	if err != nil {
		var remote *remoteError
		if !errors.As(err, &remote) {
			remote = &remoteError{Code: codeInternal, Message: err.Error()}
		}
		m.Result, m.Error = nil, remote
	}
	p.send(context.Background(), m)
}

// send puts a message on its way. Without an end of the connection or of ctx it
// waits until the server reads.
func (p *peer) send(ctx context.Context, m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case p.out <- line:
		return nil
	case <-p.done:
		return p.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// call asks the server and waits for its answer, which result is filled from.
// What the server refuses is a *remoteError behind the method's name.
func (p *peer) call(ctx context.Context, method string, params, result any) error {
	answer := make(chan inbound, 1)
	p.mu.Lock()
	p.next++
	id := p.next
	p.calls[id] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.calls, id)
		p.mu.Unlock()
	}()
	m := message{Version: p.version, ID: json.RawMessage(strconv.FormatInt(id, 10)), Method: method, Params: params}
	if err := p.send(ctx, m); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var got inbound
	select {
	case got = <-answer:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case <-p.done:
		select {
		case got = <-answer: // it came before the end
		default:
			return fmt.Errorf("%s: %w", method, p.failure())
		}
	}
	if got.Error != nil {
		return fmt.Errorf("%s: %w", method, got.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(got.Result, result); err != nil {
		return fmt.Errorf("%s: answer not understood: %w", method, err)
	}
	return nil
}

// note sends a notification.
func (p *peer) note(ctx context.Context, method string, params any) error {
	return p.send(ctx, message{Version: p.version, Method: method, Params: params})
}
