package bluebubbles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"netsky/internal/execx"

	"github.com/gorilla/websocket"
)

// The packets of engine.io 4 begin with its type; a message has the packet of socket.io 5 in it.
const (
	packetOpen    = '0'
	packetClose   = '1'
	packetPing    = '2'
	packetMessage = '4'
	pong          = "3"
	connect       = "40"

	ioConnect    = '0'
	ioDisconnect = '1'
	ioEvent      = '2'
	ioRefused    = '4'
)

// listen starts the socket's goroutine, once a query has succeeded: a server that refuses the
// password or is down is not asked in two ways.
func (t *Transport) listen() {
	t.start.Do(func() {
		t.done.Go(func() { t.follow(t.ctx) })
	})
}

// follow keeps a socket until ctx ends. It waits longer after each failure.
func (t *Transport) follow(ctx context.Context) {
	wait := t.opts.Poll / 5
	for ctx.Err() == nil {
		began := time.Now()
		err := t.socket(ctx)
		t.connected.Store(false)
		if errors.Is(err, errRefused) {
			wait = t.opts.Refused
		} else if time.Since(began) > time.Minute {
			wait = t.opts.Poll / 5
		}
		if t.pauseAfter(ctx, max(wait, time.Millisecond)) != nil {
			return
		}
		wait = min(2*wait, 12*t.opts.Poll)
	}
}

// dialSocket connects to the socket and returns how long it may be silent.
func (t *Transport) dialSocket(ctx context.Context) (*websocket.Conn, time.Duration, error) {
	password, err := t.secret.take()
	if err != nil {
		return nil, 0, err
	}
	u := t.base.JoinPath("socket.io", "/")
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	u.RawQuery = url.Values{"EIO": {"4"}, "transport": {"websocket"}, "guid": {password}}.Encode()
	d := websocket.Dialer{HandshakeTimeout: t.opts.Timeout, NetDialContext: execx.DialContext(t.dialer), Proxy: t.proxy()}
	conn, resp, err := d.DialContext(ctx, u.String(), nil)
	if err != nil {
		if resp != nil {
			if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
				return nil, 0, errRefused
			}
			return nil, 0, fmt.Errorf("the socket: HTTP status %d", resp.StatusCode)
		}
		return nil, 0, t.hide(err)
	}
	conn.SetReadLimit(maxBody)
	silence, err := t.greet(conn)
	if err != nil {
		conn.Close()
		return nil, 0, err
	}
	return conn, silence, nil
}

// greet reads the server's opening packet and joins its one namespace.
func (t *Transport) greet(conn *websocket.Conn) (time.Duration, error) {
	_ = conn.SetReadDeadline(time.Now().Add(t.opts.Timeout))
	_, data, err := conn.ReadMessage()
	if err != nil {
		return 0, err
	}
	var opening struct {
		Interval int64 `json:"pingInterval"`
		Timeout  int64 `json:"pingTimeout"`
	}
	if len(data) == 0 || data[0] != packetOpen || json.Unmarshal(data[1:], &opening) != nil {
		return 0, errors.New("the socket does not speak engine.io 4")
	}
	silence := time.Duration(min(opening.Interval, 3600_000)+min(opening.Timeout, 3600_000)) * time.Millisecond
	return min(max(silence, time.Second), 10*time.Minute), conn.WriteMessage(websocket.TextMessage, []byte(connect))
}

// socket connects and reads until the connection ends.
func (t *Transport) socket(ctx context.Context) error {
	conn, silence, err := t.dialSocket(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	began := time.Now()
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		_, data, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		if len(data) == 0 {
			continue
		}
		switch data[0] {
		case packetPing:
			_ = conn.SetWriteDeadline(time.Now().Add(t.opts.Timeout))
			if err := conn.WriteMessage(websocket.TextMessage, []byte(pong)); err != nil {
				return err
			}
		case packetClose:
			return errors.New("the server closed the socket")
		case packetMessage:
			if err := t.packet(data[1:]); err != nil {
				if time.Since(began) < t.opts.Timeout/3 {
					return errRefused // a wrong password ends the connection at once
				}
				return err
			}
		}
	}
}

// packet handles what the server has to say. What an event carries does not matter: the query
// that it causes finds out.
func (t *Transport) packet(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	switch data[0] {
	case ioConnect:
		t.connected.Store(true)
		t.rouse() // for what came while nobody listened
	case ioDisconnect, ioRefused:
		return errors.New("the server ended the connection")
	case ioEvent:
		for _, name := range []string{`["new-message"`, `["updated-message"`} {
			if bytes.HasPrefix(data[1:], []byte(name)) {
				t.rouse()
			}
		}
	}
	return nil
}

// rouse ends a pause of Next.
func (t *Transport) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
