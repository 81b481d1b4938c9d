package appserver

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
)

// A Listener is an app-server that several clients use: netsky, and the TUI in the
// pane.
type Listener struct {
	home home.Dir
	id   agent.ID
	p    *process
}

// SocketPath returns where an agent's server listens.
func SocketPath(h home.Dir, id agent.ID) string { return h.Path(socketFile(id)) }

// socketFile is short: with the longest home it still fits in a socket's name.
func socketFile(id agent.ID) string { return home.RunDir + "/cx-" + id.N() + ".sock" }

// serverFile names the process that listens there.
func serverFile(id agent.ID) string { return home.RunDir + "/cx-" + id.N() + ".json" }

// Listen starts an app-server on the agent's socket. One left there by an earlier
// process is ended first: it has the agent's thread.
func Listen(ctx context.Context, h home.Dir, id agent.ID, o ServerOptions) (*Listener, error) {
	clearSocket(h, id)
	args := []string{"app-server", "--listen", "unix://" + h.Path(socketFile(id))}
	for _, c := range o.Config {
		args = append(args, "-c", c)
	}
	p, err := start(ctx, o.Program, args, o.Env, o.Dir)
	if err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, p.out) // ends with the process; its output is not needed
	l := &Listener{home: h, id: id, p: p}
	if p.self.Named() {
		if err := h.Save(serverFile(id), p.self, false); err != nil {
			l.Close()
			return nil, err
		}
	} // otherwise it has ended already, and dialing reports that
	return l, nil
}

// Socket is where it listens.
func (l *Listener) Socket() string { return SocketPath(l.home, l.id) }

// Over reports whether the server has ended.
func (l *Listener) Over() bool {
	select {
	case <-l.p.gone:
		return true
	default:
		return false
	}
}

// Connect connects to the server as soon as it listens.
func (l *Listener) Connect(ctx context.Context) (*Server, error) {
	t, err := dialSocket(ctx, l.Socket(), l.p)
	if err != nil {
		return nil, err
	}
	return greet(ctx, t, true)
}

// Close ends the server, waits for it and removes its files.
func (l *Listener) Close() {
	if !l.Over() {
		l.p.end()
	}
	l.p.close()
	clearSocket(l.home, l.id)
}

// clearSocket ends a server that outlived its netsky, and removes its socket: the link
// in the home, and its target.
func clearSocket(h home.Dir, id agent.ID) {
	if p, err := home.Load[proc.Process](h, serverFile(id)); err == nil {
		proc.End(context.Background(), []proc.Process{p}, endTime)
	}
	link := h.Path(socketFile(id))
	if target, err := os.Readlink(link); err == nil && strings.HasPrefix(filepath.Base(filepath.Dir(target)), "codex-daemon-") {
		os.Remove(target)
		os.Remove(target + ".lock")
	}
	os.Remove(link)
	h.Remove(serverFile(id))
}
