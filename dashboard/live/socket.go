package live

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
	"netsky/dashboard/access"
)

const (
	// socketProtocol is the protocol that the dashboard's script asks for; a browser
	// can send its pass only as the name of another protocol.
	socketProtocol = "netsky"

	pongWait  = 75 * time.Second
	maxAsk    = 8 << 10               // of one message from a browser
	watchRest = 50 * time.Millisecond // between two changes of what a browser watches
)

// ServeSocket sends the same events over a websocket, on which the browser may change
// at any time which panes it watches: {"watch":["agent1"]}. Of changes that follow each
// other faster than watchRest only the last takes effect.
func (b *Broadcaster) ServeSocket(w http.ResponseWriter, r *http.Request, s Subscription) {
	var made atomic.Pointer[websocket.Conn]
	c, ok := b.follow(w, r, s, func() {
		if conn := made.Load(); conn != nil {
			conn.NetConn().Close()
		}
	})
	if !ok {
		return
	}
	defer c.done()
	up := websocket.Upgrader{
		HandshakeTimeout: b.o.WriteWait, ReadBufferSize: 1024, WriteBufferSize: 4096,
		CheckOrigin:  func(*http.Request) bool { return true }, // package access has checked it
		Subprotocols: []string{socketProtocol},
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			access.Refuse(w, r, status, reason.Error())
		},
	}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // it has been refused
	}
	made.Store(conn)
	defer context.AfterFunc(r.Context(), func() { conn.NetConn().Close() })() // signed out
	if proof := access.Proof(r); proof != "" {
		conn.SetWriteDeadline(time.Now().Add(b.o.WriteWait))
		if conn.WriteMessage(websocket.TextMessage, []byte(`{"proof":"`+proof+`"}`)) != nil {
			conn.Close()
			return
		}
		conn.SetWriteDeadline(time.Time{})
	}
	(&socket{conn: conn, client: c, asks: make(chan []agent.ID, 1), pings: make(chan string, 1)}).run()
}

// A socket is a browser that follows by websocket.
type socket struct {
	conn   *websocket.Conn
	client *client
	asks   chan []agent.ID // what it wants to watch; a newer one replaces it
	pings  chan string     // what to send back; a newer one replaces it
}

// replace puts the value in the channel in place of one that has not been received. The
// caller must be the only sender.
func replace[T any](c chan T, v T) {
	select {
	case <-c:
	default:
	}
	c <- v
}

// run ends when the browser or the server closes, and waits for both directions.
func (s *socket) run() {
	s.conn.SetPingHandler(func(data string) error { replace(s.pings, data); return nil })
	s.conn.SetCloseHandler(func(int, string) error { return nil }) // or events would follow its echo
	heard := make(chan error, 1)
	go func() { heard <- s.listen() }()
	code, over := s.speak(heard)
	end := websocket.FormatCloseMessage(code, "")
	s.conn.WriteControl(websocket.CloseMessage, end, time.Now().Add(time.Second))
	s.conn.Close()
	if !over {
		<-heard
	}
}

// speak sends events until the browser or the server closes, and returns the close code
// and whether listen has returned. Only speak writes: the frames of several events go
// out in one write, which the websocket package can't do.
func (s *socket) speak(heard <-chan error) (code int, over bool) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	out := outbox{wrap: textFrame, write: func(b []byte) error {
		s.conn.NetConn().SetWriteDeadline(time.Now().Add(s.client.b.o.WriteWait))
		_, err := s.conn.NetConn().Write(b)
		return err
	}}
	asks := s.asks
	var rested <-chan time.Time
	for {
		var err error
		select {
		case ids := <-asks:
			s.client.watch(ids)
			asks, rested = nil, time.After(watchRest)
		case <-rested:
			asks, rested = s.asks, nil
		case err := <-heard:
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				return closed.Code, true
			}
			return websocket.ClosePolicyViolation, true
		case <-s.client.gone:
			return websocket.CloseGoingAway, false
		case <-beat.C:
			err = s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(s.client.b.o.WriteWait))
		case data := <-s.pings:
			err = s.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(s.client.b.o.WriteWait))
		case <-s.client.wake:
			err = out.send(s.client.take())
		}
		if err != nil {
			return websocket.CloseInternalServerErr, false
		}
	}
}

// textFrame returns a text message in one frame, as a server sends it (RFC 6455, 5.2).
func textFrame(b []byte, _ int64, event []byte) []byte {
	b = append(b, 0x80|websocket.TextMessage)
	switch n := len(event); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, event...)
}

// listen reads from the browser until it is gone or sends anything but a list of panes
// to watch.
func (s *socket) listen() error {
	s.conn.SetReadLimit(maxAsk)
	alive := func(string) error { return s.conn.SetReadDeadline(time.Now().Add(pongWait)) }
	s.conn.SetPongHandler(alive)
	for alive("") == nil {
		kind, data, err := s.conn.ReadMessage()
		if err != nil {
			return err
		}
		ids, err := parseAsk(kind, data)
		if err != nil {
			return err
		}
		replace(s.asks, ids)
	}
	return errEnded
}

func parseAsk(kind int, data []byte) ([]agent.ID, error) {
	var ask struct {
		Watch []string `json:"watch"`
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if kind != websocket.TextMessage || dec.Decode(&ask) != nil || ask.Watch == nil {
		return nil, errors.New(`expected {"watch":[…]}`)
	}
	return ParseWatch(ask.Watch)
}
