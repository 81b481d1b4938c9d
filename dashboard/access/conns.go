package access

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

const (
	// At most maxLarge requests of strangers may be larger than largeRequest at the
	// same time, so that strangers can't fill the memory.
	largeRequest = 128 << 10
	maxLarge     = 16
)

// A limited listener limits the simultaneous connections. One without an admitted
// request yet is a stranger's. A new one replaces the oldest stranger's, and some
// places are reserved for the owner, so that no number of silent connections keeps the
// owner out.
type limited struct {
	net.Listener
	most      int
	strangers int // the most simultaneous connections

	mu    sync.Mutex // guards the fields below, and all but Conn of each conn
	open  int
	queue list.List // strangers, the oldest first
	large list.List // those of them whose request is large
}

func limit(l net.Listener, most int) *limited {
	return &limited{Listener: l, most: most, strangers: max(most-most/4, 1)}
}

// Accept closes a connection at once only if all places are the owner's.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		conn, oldest := l.admit(c)
		if oldest != nil {
			oldest.Close()
		}
		if conn != nil {
			return conn, nil
		}
		c.Close()
	}
}

// admit gives the connection a place, and returns the connection to close in exchange.
func (l *limited) admit(c net.Conn) (conn, oldest *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() >= l.strangers || l.open >= l.most {
		first := l.queue.Front()
		if first == nil {
			return nil, nil
		}
		oldest = first.Value.(*limitedConn)
		l.leave(oldest)
	}
	conn = &limitedConn{Conn: c, of: l}
	conn.waits = l.queue.PushBack(conn)
	l.open++
	return conn, oldest
}

// leave gives a connection's place back, once. The caller holds mu.
func (l *limited) leave(c *limitedConn) {
	if !c.left {
		c.left = true
		l.open--
		l.known(c)
	}
}

// known makes a connection one of the owner's. The caller holds mu.
func (l *limited) known(c *limitedConn) {
	if c.waits != nil {
		l.queue.Remove(c.waits)
		c.waits = nil
	}
	l.small(c)
}

func (l *limited) small(c *limitedConn) {
	c.read = 0
	if c.large != nil {
		l.large.Remove(c.large)
		c.large = nil
	}
}

type limitedConn struct {
	net.Conn
	of *limited

	left  bool
	waits *list.Element // in queue; nil: not a stranger's
	large *list.Element // in large; nil: not large
	read  int           // bytes of a stranger's current request
}

func (c *limitedConn) Close() error {
	c.of.mu.Lock()
	c.of.leave(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (c *limitedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if oldest := c.of.count(c, n); oldest != nil {
		oldest.Close()
	}
	return n, err
}

// count adds bytes to the connection's request, and returns the connection to close in
// exchange.
func (l *limited) count(c *limitedConn, n int) (oldest *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.waits == nil {
		return nil
	}
	if c.read += n; c.read <= largeRequest || c.large != nil {
		return nil
	}
	if l.large.Len() >= maxLarge {
		oldest = l.large.Front().Value.(*limitedConn)
		l.leave(oldest)
	}
	c.large = l.large.PushBack(c)
	return oldest
}

type connKey struct{}

// withConn lets vouch find the connection of a request.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, limitedOf(c))
}

func limitedOf(c net.Conn) *limitedConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	own, _ := c.(*limitedConn)
	return own
}

// rested is called when a connection's state changes: a request that has been answered
// no longer uses memory.
func rested(c net.Conn, state http.ConnState) {
	if own := limitedOf(c); own != nil && state == http.StateIdle {
		own.of.mu.Lock()
		defer own.of.mu.Unlock()
		own.of.small(own)
	}
}

// vouch makes the connection of a request with valid credentials the owner's.
func vouch(r *http.Request) {
	if c, _ := r.Context().Value(connKey{}).(*limitedConn); c != nil {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.known(c)
	}
}
