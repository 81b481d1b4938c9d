package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"

	"netsky/internal/execx"
)

// A peer is the user whose process is at the other end of a connection.
type peer struct {
	uid   int
	known bool  // the kernel could be asked
	err   error // why the user is unknown
}

type peerKey struct{}

// withPeer lets peerOf find the peer. It is looked up once for each connection, at its
// first request.
func (g *Guard) withPeer(ctx context.Context, c net.Conn) context.Context {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 || g.o.Wide || !g.loopback {
		return ctx // other machines may connect
	}
	look := sync.OnceValue(func() peer { return lookUp(g.o.Peer, remote.AddrPort(), local.AddrPort()) })
	return context.WithValue(ctx, peerKey{}, look)
}

func lookUp(ask func(remote, local netip.AddrPort) (int, bool, error), remote, local netip.AddrPort) (p peer) {
	p.uid, p.known, p.err = ask(remote, local)
	return p
}

// peerOf returns the sender of a request, or the zero peer if it is unknown.
func peerOf(r *http.Request) peer {
	if look, ok := r.Context().Value(peerKey{}).(func() peer); ok {
		return look()
	}
	return peer{}
}

// stranger returns why a request is refused as another user's, "" if it is not as far
// as is known. Root is accepted, because sshd forwards as root and root may do anything
// anyway.
func (p peer) stranger() string {
	switch {
	case !p.known:
		return ""
	case p.err != nil:
		return "cannot tell which user the connection belongs to: " + p.err.Error()
	case p.uid != os.Getuid() && p.uid != 0:
		return fmt.Sprintf("the connection belongs to another user of this machine (uid %d)", p.uid)
	}
	return ""
}

// A holder is the process that listens on a port, as far as the kernel reports.
type holder struct {
	PID     int    // 0: unknown; another user's processes can't be inspected
	Program string // its name
	Dir     string // its working directory, which for a netsky daemon is its home
	UID     int    // -1: unknown
}

func (h holder) String() string {
	text := "another program"
	switch {
	case h.Program == "netsky" && h.Dir != "":
		text = fmt.Sprintf("the netsky of %s (pid %d)", h.Dir, h.PID)
	case h.PID > 0:
		text = fmt.Sprintf("%s (pid %d)", h.Program, h.PID)
	}
	if h.UID < 0 || h.UID == os.Getuid() {
		return text
	}
	name := ""
	if u, err := execx.LookupUser(h.UID); err == nil {
		name = u.Username + ", "
	}
	return text + fmt.Sprintf(" of another user (%suid %d)", name, h.UID)
}
