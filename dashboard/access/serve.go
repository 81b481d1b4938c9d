package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"netsky/internal/advice"
	"netsky/internal/execx"
)

// ErrWide reports an address that other machines could reach.
var ErrWide = advice.With(errors.New("is not a loopback address"),
	"under [dashboard] in netsky.toml, set `cert` and `key` to serve it encrypted, or `wide = true` to allow it unencrypted")

// ErrTaken reports an address on which another program listens.
var ErrTaken = errors.New("is taken")

// Listen listens on an address, "127.0.0.1:7717". If it is taken, the error matches
// ErrTaken and names the holder; Listen never uses another port instead, as a browser
// that returns must not find another server there. Port 0 is the port that the home had
// last, so that open pages reconnect, or a free one if that is taken. If the address is
// not a loopback address, the error matches ErrWide, unless TLS or Wide is set.
func (g *Guard) Listen(ctx context.Context, addr string) (net.Listener, error) {
	tcp, err := CheckListen(addr, g.o.TLS != nil, g.o.Wide)
	if err != nil {
		return nil, err
	}
	if tcp.Port != 0 {
		return listen(ctx, tcp)
	}
	if last := g.state.lastPort(); last != 0 {
		again := *tcp
		again.Port = last
		l, err := listen(ctx, &again)
		if err == nil {
			return l, nil
		}
		g.o.Log.Warn("last port", "error", err)
	}
	l, err := listen(ctx, tcp)
	if err != nil {
		return nil, err
	}
	if err := g.state.keepPort(l.Addr().(*net.TCPAddr).Port); err != nil {
		g.o.Log.Warn("cannot save the port", "error", err)
	}
	return l, nil
}

func listen(ctx context.Context, tcp *net.TCPAddr) (net.Listener, error) {
	network := "tcp"
	if tcp.IP.To4() != nil {
		network = "tcp4" // else 0.0.0.0 would include all of IPv6
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, tcp.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("dashboard: %s %w by %s", tcp, ErrTaken, portHolder(tcp.AddrPort()))
	case err != nil:
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return l, nil
}

// CheckListen parses an address, and returns why Listen would refuse it.
func CheckListen(addr string, encrypted, wide bool) (*net.TCPAddr, error) {
	tcp, err := execx.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return tcp, mayServe(tcp, encrypted, wide)
}

func mayServe(addr net.Addr, encrypted, wide bool) error {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() || encrypted || wide {
		return nil
	}
	return fmt.Errorf("dashboard: refusing to listen on %s without TLS: it %w", addr, ErrWide)
}

// Cookies ignore ports: those that other servers on this machine have set arrive as
// well. A browser keeps at most 180 of 4 KiB for one name.
const maxHeader = 1 << 20

// Serve answers on the listener until ctx ends, then closes it. Requests in progress
// have one second to finish; ending is called first, to end streams.
func (g *Guard) Serve(ctx context.Context, l net.Listener, ending func()) error {
	defer l.Close()
	if err := mayServe(l.Addr(), g.o.TLS != nil, g.o.Wide); err != nil {
		return err
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	g.loopback = ok && tcp.IP.IsLoopback()
	l = limit(l, g.o.MaxConns)
	if g.o.TLS != nil {
		l = tls.NewListener(l, g.o.TLS)
	}
	srv := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return g.withPeer(withConn(ctx, c), c) },
		ConnState:         rested,
		ErrorLog:          slog.NewLogLogger(g.o.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("dashboard: %w", err)
	case <-ctx.Done():
	}
	ending() // else streams would keep Shutdown waiting
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(end) != nil {
		srv.Close()
	}
	<-ended
	return nil
}
