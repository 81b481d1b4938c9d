package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/cli/view"
	"netsky/home"
	"netsky/link/ssh"
)

// looks reports whether a command line only shows something, and may be answered by the daemon of a host.
func looks(line []string) bool {
	return len(line) > 0 && slices.Contains([]string{"status", "ps", "ls", "list"}, line[0]) &&
		!slices.ContainsFunc(line[1:], func(w string) bool { return !slices.Contains([]string{"--json", "-v", "--verbose"}, w) })
}

// look returns a service that prints for other hosts what such a line prints here, at a socket for nothing
// else. What it can't answer as the program would that is installed here, it refuses, and that is started.
func (a hostVerbs) look(h home.Dir) func(context.Context) error {
	return func(ctx context.Context) error {
		file, err := os.Executable()
		if err != nil {
			return err
		}
		own, err := os.Stat(file)
		if err == nil {
			err = h.Remove(home.LookSocket) // of a daemon that is dead, as this one has the lock
		}
		if err != nil {
			return err
		}
		door, err := net.Listen("unix", h.Path(home.LookSocket))
		if err != nil {
			return err
		}
		var one sync.Mutex // verbs share the options that all have
		srv := &http.Server{ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 4 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var l ssh.Look
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
			if err == nil {
				err = json.Unmarshal(body, &l)
			}
			var text []byte
			if err == nil {
				one.Lock()
				text, err = a.seen(r.Context(), h, own, l)
				one.Unlock()
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
				return
			}
			w.Write(text)
		})}
		defer context.AfterFunc(ctx, func() { srv.Close() })()
		if err := srv.Serve(door); ctx.Err() == nil {
			return err
		}
		return ctx.Err()
	}
}

var errOther = errors.New("look: the program there would print something else")

// seen returns what a line prints, if nothing about it is unlike in the program that would be started: its
// file, its home, its tmux server, its time zone, who runs it. Of the caller's variables nothing is run.
func (a hostVerbs) seen(ctx context.Context, h home.Dir, own os.FileInfo, l ssh.Look) ([]byte, error) {
	var out, errs bytes.Buffer
	b := newApp(strings.NewReader(""), &out, &errs, a.environ)
	b.getenv = func(name string) string { return l.Vars[name] }
	if l.Vars["TERM"] != "" {
		b.out = view.Elsewhere{Writer: &out}
	}
	file, err := os.Stat(l.Netsky)
	at, herr := home.Find(b.getenv)
	same := func(name string) bool { return l.Vars[name] == a.getenv(name) }
	switch {
	case !looks(l.Words), err != nil, !filepath.IsAbs(l.Netsky), !os.SameFile(file, own), herr != nil, at.Root() != h.Root(), !same("NETSKY_TMUX_SOCKET"), !same("TZ"), l.Vars["AGENT_N"] != "":
		return nil, errOther
	}
	if err := b.run(ctx, append([]string{"netsky"}, l.Words...)); err != nil || b.broken != nil || errs.Len() > 0 {
		return nil, errOther
	}
	return out.Bytes(), nil
}
