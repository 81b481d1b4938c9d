package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
)

// A peer is whose process is at the other end of a connection.
type peer struct {
	uid   int
	known bool  // the kernel has said so
	err   error // it could have, and knows of nobody
}

type peerKey struct{}

// withPeer lets peerOf find out who has called. It is looked up once for each
// connection, when that asks for something.
func (g *Guard) withPeer(ctx context.Context, c net.Conn) context.Context {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 || g.o.Wide || !g.loopback {
		return ctx // others may call
	}
	look := sync.OnceValue(func() peer { return lookUp(g.o.Peer, remote.AddrPort(), local.AddrPort()) })
	return context.WithValue(ctx, peerKey{}, look)
}

func lookUp(ask func(remote, local netip.AddrPort) (int, bool, error), remote, local netip.AddrPort) (p peer) {
	p.uid, p.known, p.err = ask(remote, local)
	return p
}

// peerOf is who has sent a request; its zero if that can't be told.
func peerOf(r *http.Request) peer {
	if look, ok := r.Context().Value(peerKey{}).(func() peer); ok {
		return look()
	}
	return peer{}
}

// stranger says why a request is another user's, "" if it is not, for all that
// is known. What root forwards, such as sshd, is let in: root may do anything.
func (p peer) stranger() string {
	switch {
	case !p.known:
		return ""
	case p.err != nil:
		return "the kernel does not say whose connection it is: " + p.err.Error()
	case p.uid != os.Getuid() && p.uid != 0:
		return fmt.Sprintf("the connection is another user's of this machine (uid %d)", p.uid)
	}
	return ""
}
