package appserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// dialed is a connection to an app-server that listens on a unix socket, where it
// speaks WebSocket, one message per frame.
type dialed struct {
	conn *websocket.Conn
	p    *process // the server
}

// dialSocket connects to a server that is starting, as soon as it listens.
func dialSocket(ctx context.Context, socket string, p *process) (*dialed, error) {
	d := websocket.Dialer{
		HandshakeTimeout: answerTime, ReadBufferSize: 64 << 10,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var n net.Dialer
			return n.DialContext(ctx, "unix", socket)
		},
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		conn, _, err := d.DialContext(ctx, "ws://localhost/", nil)
		if err == nil {
			conn.SetReadLimit(maxLine)
			return &dialed{conn: conn, p: p}, nil
		}
		select {
		case <-p.gone:
			return nil, fmt.Errorf("%w: %s", ErrLost, p.why())
		case <-ctx.Done():
			return nil, fmt.Errorf("codex app-server: %w (%w)", ctx.Err(), err)
		case <-time.After(wait):
		}
	}
}

func (d *dialed) read() ([]byte, error) {
	_, data, err := d.conn.ReadMessage()
	if errors.Is(err, websocket.ErrReadLimit) {
		err = errLine
	}
	return data, err
}

func (d *dialed) write(message []byte) error {
	return d.conn.WriteMessage(websocket.TextMessage, message)
}

func (d *dialed) close() error { return d.conn.Close() }

// why returns how the server ended, without its standard error: a listening server logs
// much there that is not a reason.
func (d *dialed) why() string {
	select {
	case <-d.p.gone:
		return d.p.state
	case <-time.After(answerTime / 20):
		return ""
	}
}
