package dashboard

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"netsky/agent"
)

const (
	eventsPath = "/events"
	socketPath = "/ws"

	writeWait = 10 * time.Second // for one write to a browser; then it is given up
	beatEvery = 20 * time.Second // so that a connection that is gone is found
	pongWait  = 75 * time.Second
	maxAsk    = 8 << 10               // bytes of what a browser says on a websocket
	watchRest = 50 * time.Millisecond // between two changes of what a browser watches

	// Events that are due together go in writes of about so many bytes, which is
	// what a browser's own memory for them is kept to.
	writeSize = 32 << 10
)

// An asked is what a browser that follows asks for.
type asked struct {
	after int64
	watch []agent.ID
}

func askedBy(r *http.Request) (a asked, err error) {
	q := newQuery(r)
	after, watch := q.text("after"), q.text("watch")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		after = id // it has seen more since
	}
	if a.after = -1; after != "" {
		if a.after, err = parseLog(after); err != nil {
			return a, err
		}
	}
	if watch != "" {
		if a.watch, err = parseWatch(strings.Split(watch, ",")); err != nil {
			return a, err
		}
	}
	return a, q.done()
}

// join makes the request one that follows, or refuses it.
func (s *Server) join(w http.ResponseWriter, r *http.Request, cut func()) (*client, bool) {
	a, err := askedBy(r)
	if err != nil {
		s.fail(w, r, err)
		return nil, false
	}
	c, err := s.hub.join(a.after, cut)
	if err != nil {
		w.Header().Set("Retry-After", "5")
		refuse(w, r, http.StatusServiceUnavailable, err.Error())
		return nil, false
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.watch(c, a.watch)
	return c, true
}

// parseWatch reads the names of panes.
func parseWatch(list []string) ([]agent.ID, error) {
	if len(list) > maxWatched {
		return nil, badf("watch: %d panes, at most %d", len(list), maxWatched)
	}
	ids := []agent.ID{}
	for _, text := range list {
		id, err := agent.Parse(text)
		if err != nil || !id.IsAgent() {
			return nil, badf("watch: %s is no agent", quote(text))
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// events carries the events by SSE.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	c, ok := s.join(w, r, func() { rc.SetWriteDeadline(time.Now()) })
	if !ok {
		return
	}
	defer s.hub.leave(c)
	rc.SetReadDeadline(time.Time{}) // the request has been read; the answer goes on
	send := func(b []byte) error {
		rc.SetWriteDeadline(time.Now().Add(writeWait))
		if c.ended() {
			return errEnded
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		return rc.Flush()
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	out := outbox{write: send, wrap: sseEvent}
	for err := send([]byte("retry: 2000\n\n")); err == nil; {
		select {
		case <-r.Context().Done():
			return
		case <-c.gone:
			return
		case <-beat.C:
			err = send([]byte(": still here\n\n"))
		case <-c.wake:
			err = out.send(s.hub.take(c))
		}
	}
}

// An outbox writes events that are due together together.
type outbox struct {
	write func([]byte) error
	wrap  func(b []byte, id int64, event []byte) []byte // adds the event

	event, buf []byte // their memory is used again
}

func (o *outbox) send(events []event) error {
	for i, e := range events {
		o.event = e.append(o.event[:0])
		o.buf = o.wrap(o.buf, e.id, o.event)
		if len(o.buf) < writeSize && i < len(events)-1 {
			continue
		}
		if err := o.write(o.buf); err != nil {
			return err
		}
		if o.buf = o.buf[:0]; cap(o.buf) > 2*writeSize {
			o.event, o.buf = nil, nil
		}
	}
	return nil
}

func sseEvent(b []byte, id int64, event []byte) []byte {
	b = appendInt(append(b, "id: "...), id)
	b = append(append(b, "\ndata: "...), event...)
	return append(b, "\n\n"...)
}

// socket carries the same events by a websocket, whose browser may say at any
// time which panes it looks at: {"watch":["agent1"]}. Of what it says faster than
// every watchRest only the last counts.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		refuse(w, r, http.StatusUpgradeRequired, "only websockets here")
		return
	}
	var conn atomic.Pointer[websocket.Conn]
	c, ok := s.join(w, r, func() {
		if conn := conn.Load(); conn != nil {
			conn.NetConn().Close()
		}
	})
	if !ok {
		return
	}
	defer s.hub.leave(c)
	up := websocket.Upgrader{
		HandshakeTimeout: writeWait, ReadBufferSize: 1024, WriteBufferSize: 4096,
		CheckOrigin:  func(*http.Request) bool { return true }, // the guard has
		Subprotocols: []string{socketProtocol},
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			refuse(w, r, status, reason.Error())
		},
	}
	made, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // it has been refused
	}
	conn.Store(made)
	defer context.AfterFunc(r.Context(), func() { made.NetConn().Close() })() // signed out
	if proof, ok := r.Context().Value(proofKey{}).(string); ok {
		made.SetWriteDeadline(time.Now().Add(writeWait))
		if made.WriteMessage(websocket.TextMessage, []byte(`{"proof":"`+proof+`"}`)) != nil {
			made.Close()
			return
		}
		made.SetWriteDeadline(time.Time{})
	}
	s.converse(made, c)
}

// converse ends when the browser or the server does, and waits for both ways.
func (s *Server) converse(conn *websocket.Conn, c *client) {
	pings := make(chan string, 1) // what is asked back; all but the last may be left out
	conn.SetPingHandler(func(data string) error {
		select {
		case <-pings:
		default:
		}
		pings <- data
		return nil
	})
	conn.SetCloseHandler(func(int, string) error { return nil }) // or events would follow its echo
	heard := make(chan error, 1)
	go func() { heard <- s.listen(conn, c) }()
	code, over := s.speak(conn, c, heard, pings)
	end := websocket.FormatCloseMessage(code, "")
	conn.WriteControl(websocket.CloseMessage, end, time.Now().Add(time.Second))
	conn.Close()
	if !over {
		<-heard
	}
}

// speak sends events until the browser or the server ends, and says with which
// code; over says that listen is. It alone writes: the frames of several events go
// to the connection in one write, of which the websocket package knows nothing.
func (s *Server) speak(conn *websocket.Conn, c *client, heard <-chan error, pings <-chan string) (code int, over bool) {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	out := outbox{wrap: textFrame, write: func(b []byte) error {
		conn.NetConn().SetWriteDeadline(time.Now().Add(writeWait))
		_, err := conn.NetConn().Write(b)
		return err
	}}
	asks := c.asks
	var rested <-chan time.Time
	for {
		var err error
		select {
		case ids := <-asks:
			s.hub.mu.Lock()
			s.hub.watch(c, ids)
			s.hub.mu.Unlock()
			asks, rested = nil, time.After(watchRest)
		case <-rested:
			asks, rested = c.asks, nil
		case err := <-heard:
			var closed *websocket.CloseError
			if errors.As(err, &closed) {
				return closed.Code, true
			}
			return websocket.ClosePolicyViolation, true
		case <-c.gone:
			return websocket.CloseGoingAway, false
		case <-beat.C:
			err = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWait))
		case data := <-pings:
			err = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWait))
		case <-c.wake:
			err = out.send(s.hub.take(c))
		}
		if err != nil {
			return websocket.CloseInternalServerErr, false
		}
	}
}

// textFrame is a text message in one frame, as a server sends it (RFC 6455, 5.2).
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

// listen hears what the browser says, until it is gone or says something wrong.
func (s *Server) listen(conn *websocket.Conn, c *client) error {
	conn.SetReadLimit(maxAsk)
	alive := func(string) error { return conn.SetReadDeadline(time.Now().Add(pongWait)) }
	conn.SetPongHandler(alive)
	for alive("") == nil {
		kind, data, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		ids, err := parseAsk(kind, data)
		if err != nil {
			return err
		}
		select {
		case <-c.asks: // it counts no more
		default:
		}
		c.asks <- ids
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
		return nil, errors.New(`not {"watch":[…]}`)
	}
	return parseWatch(ask.Watch)
}
