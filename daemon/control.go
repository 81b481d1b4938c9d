// This file is the daemon at its control socket; client.go is who asks there.

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/proc"
	"netsky/store"
)

// open takes the door's socket and passes it to serve. We hold the lock, so an existing
// socket file belongs to a dead daemon.
func (d *daemon) open() error {
	if err := d.o.Home.Remove(home.DaemonSocket); err != nil {
		return err
	}
	old := unix.Umask(0o177) // the socket is made 0600; other files created now set their mode explicitly
	l, err := net.Listen("unix", d.o.Home.Path(home.DaemonSocket))
	unix.Umask(old)
	if err != nil {
		return err
	}
	// Run removes it, if it is still ours then.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	d.door, err = os.Lstat(d.o.Home.Path(home.DaemonSocket))
	if err != nil {
		l.Close()
		return err
	}
	d.doors <- l
	return nil
}

// reopen opens the door again if its socket's file is gone.
func (d *daemon) reopen() error {
	there, err := os.Lstat(d.o.Home.Path(home.DaemonSocket))
	if err == nil && os.SameFile(there, d.door) {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.open()
}

type peerKey struct{}

type peer struct {
	proc.Process
	conn *net.UnixConn
}

// WithPeer is the [http.Server.ConnContext] of a server on the control socket.
func WithPeer(ctx context.Context, c net.Conn) context.Context {
	if u, ok := c.(*net.UnixConn); ok {
		if pid, err := proc.Peer(u); err == nil {
			p, _ := proc.Find(pid) // now, as the number may be another's when the request comes
			return context.WithValue(ctx, peerKey{}, peer{p, u})
		}
	}
	return ctx
}

// PeerOf returns the process that has opened the connection of a request over the control socket; ok is false if it
// is not known, or has ended.
func PeerOf(ctx context.Context) (p proc.Process, ok bool) {
	who, ok := ctx.Value(peerKey{}).(peer)
	return who.Process, ok && who.Alive() && !proc.PeerEnded(who.conn)
}

// may returns an error unless whoever asks may do what the verb does.
func (d *daemon) may(r *http.Request, verb string) error {
	if d.o.May == nil {
		return nil
	}
	return d.o.May(r.Context(), verb)
}

func (d *daemon) serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, web := d.webNow()
		json.NewEncoder(w).Encode(Pong{
			PID: os.Getpid(), StartMS: d.started.UnixMilli(), Version: d.o.Version, Schema: store.Schema(), Web: web,
			Binary: d.o.Launcher.Binary,
		})
	})
	mux.HandleFunc("POST /wake", func(w http.ResponseWriter, _ *http.Request) {
		d.wake()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /sync", func(w http.ResponseWriter, r *http.Request) {
		if err := d.sync(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, r *http.Request) {
		if err := d.may(r, "daemon stop"); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		d.stop()
	})
	d.webRoutes(mux)
	if d.o.Deeds != nil {
		mux.Handle("GET /api", d.o.Deeds)
		mux.Handle("/deeds/", d.o.Deeds)
		mux.Handle("/hosts/", d.o.Deeds)
	}
	srv := &http.Server{Handler: mux, ConnContext: WithPeer, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	ended := make(chan error, 1) // of that one listener
	var door net.Listener
	for ctx.Err() == nil {
		select {
		case err := <-ended:
			return err
		case next := <-d.doors:
			if door != nil { // its file is gone, so nobody can connect
				door.Close()
				<-ended
			}
			door = next
			go func() { ended <- srv.Serve(next) }()
		case <-ctx.Done():
		}
	}
	// Requests in progress are answered; idle clients are cut off.
	sctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if srv.Shutdown(sctx) != nil {
		srv.Close()
	}
	if door != nil {
		<-ended
	}
	select {
	case l := <-d.doors:
		l.Close()
	default:
	}
	return nil
}
