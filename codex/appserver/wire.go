package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
)

// ErrLost is returned for everything that was in progress when the connection to Codex
// ended.
var ErrLost = errors.New("the connection to codex was lost")

// A transport carries whole messages to a server and back. read and write are called
// from one goroutine each; close makes both return and waits for the end of a child
// server. It may be called more than once.
type transport interface {
	read() ([]byte, error)
	write([]byte) error
	close() error
	// why returns what is known about the end of the other side.
	why() string
}

// A handler handles what the server sends on its own.
type handler interface {
	// notify is called in the order of the wire; it must return quickly and must not
	// call the peer.
	notify(method string, params json.RawMessage)
	// request answers a request, in its own goroutine. answered is false if another
	// client has given the answer.
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

// A message is any line of JSON-RPC. One with a method is a request or a notification,
// even if its id is one of ours: the server has its own numbering.
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

// maxRequests limits how many requests of the server are handled at the same time; more
// than that is a misbehaving server, and is refused.
const maxRequests = 64

// A peer speaks JSON-RPC over a transport. newPeer starts its goroutines, close
// ends them and waits.
type peer struct {
	t       transport
	h       handler
	version string      // of the protocol, if the server wants it stated
	out     chan []byte // as many as may wait while the server is busy reading
	done    chan struct{}
	cancel  context.CancelFunc // ends the handling of requests
	slots   chan struct{}
	group   sync.WaitGroup

	mu    sync.Mutex // guards the fields below
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

// close ends the connection and waits for everything in progress.
func (p *peer) close() error {
	p.end(ErrLost)
	err := p.t.close()
	p.group.Wait()
	return err
}

// end records why the connection has ended; the first reason is kept.
func (p *peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		p.cancel()
		close(p.done)
	}
}

// failure returns why the connection has ended.
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

// lost ends the connection after an error of the transport.
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
			continue // an invalid message answers no call
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

// settle passes an answer to the call that waits for it.
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

// serve answers a request from the server.
func (p *peer) serve(ctx context.Context, m inbound) {
	select {
	case p.slots <- struct{}{}:
	default:
		p.group.Go(func() {
			p.answer(m.ID, nil, &remoteError{Code: codeInternal, Message: "too many simultaneous requests"})
		})
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

// send sends a message. It waits until the server reads, or the connection or ctx ends.
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

// call sends a request and waits for the answer, which it stores in result. A refusal
// is a *remoteError behind the method's name.
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
		return fmt.Errorf("%s: cannot parse the answer: %w", method, err)
	}
	return nil
}

// note sends a notification.
func (p *peer) note(ctx context.Context, method string, params any) error {
	return p.send(ctx, message{Version: p.version, Method: method, Params: params})
}
