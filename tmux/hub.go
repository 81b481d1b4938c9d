package tmux

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// OpenHub makes a session into which windows of other sessions can be linked to watch
// them, and attaches a control client to it. A hub that an earlier process left under
// this name is ended first, with the windows that only it still has; windows of other
// sessions stay as they are. Hubs are left out of every list of panes. The session
// outlives the client; a session of this name that is not a hub is an error.
func (s *Server) OpenHub(ctx context.Context, name string) (*Client, error) {
	if !nameOK(name) {
		return nil, fmt.Errorf("tmux: hub %q: want letters, digits, - or _", name)
	}
	gone := ctx.Err
	ctx, cancel, err := settled(ctx, "new-session")
	if err != nil {
		return nil, err
	}
	defer cancel()
	at := " -t =" + name + ":"
	// The remains of an earlier process are not listed: it may have thousands of links.
	// The hub's own program is cat, which only has to exist. The hub must never have
	// destroy-unattached: with that option and two control clients, tmux 3.3a dies when
	// their parent is killed.
	out, err := s.run(ctx, strings.NewReader(strings.Join([]string{
		endHub(name),
		"new-session -d -s " + name + " -n hub -x 200 -y 50 -- /bin/sh -c \"exec cat\" ; set-option" + at + " " + hubTag + " 1",
		"display-message -p" + at + ` "#{?` + hubTag + `,` + mark + `,}"`, "",
	}, "\n")), "start-server", ";", "source-file", "-")
	if err == nil && !strings.Contains(out, mark+"\n") {
		err = errors.New("missing after it was created")
	}
	if err != nil {
		return nil, fmt.Errorf("tmux: hub %s: %w", name, err)
	}
	c, err := s.attach(ctx, name, "ignore-size")
	if err == nil && gone() != nil {
		_ = c.Close()
		err = fmt.Errorf("tmux attach-session: %w", gone())
	}
	if err != nil {
		// Nobody who knows of it could end it later.
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return nil, errors.Join(err, s.CloseHub(undo, name))
	}
	return c, nil
}

// endHub is the line that ends the session of that name if it is a hub: tmux checks
// that in the same call.
func endHub(name string) string {
	return "if-shell -F -t =" + name + `: "#{` + hubTag + `}" { kill-session -t =` + name + " }"
}

// CloseHub ends the hub session of that name, with the windows that only it has. A
// missing one is no error; a session that is not a hub stays.
func (s *Server) CloseHub(ctx context.Context, name string) error {
	if !nameOK(name) {
		return fmt.Errorf("tmux: hub %q: want letters, digits, - or _", name)
	}
	ctx, cancel, err := settled(ctx, "kill-session")
	if err != nil {
		return err
	}
	defer cancel()
	_, err = s.run(ctx, strings.NewReader(endHub(name)+"\n"), "source-file", "-")
	if err = ignoreNoServer(err); err != nil { // without a server there is none, or it was the last session
		return fmt.Errorf("hub %s: %w", name, err)
	}
	return nil
}

// HubProcess returns the number of the process that tmux started in the hub's own window.
// The error matches ErrNoServer or ErrNotFound if there is no such hub.
func (s *Server) HubProcess(ctx context.Context, name string) (int, error) {
	if !nameOK(name) {
		return 0, fmt.Errorf("tmux: hub %q: want letters, digits, - or _", name)
	}
	out, err := s.run(ctx, nil, "display-message", "-p", "-t", "="+name+":=hub", "#{?"+hubTag+",#{pane_pid},}")
	if err != nil {
		return 0, fmt.Errorf("hub %s: %w", name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("tmux: hub %s: %w", name, ErrNotFound)
	}
	return pid, nil
}

// Capture is [Server.Capture] by the control client. It goes through a buffer
// of tmux's, because tmux 3.3a never frees the text of a direct one.
func (c *Client) Capture(ctx context.Context, pane string, o Capture) (string, error) {
	target, err := exact(pane)
	if err != nil {
		return "", err
	}
	b := " -b " + c.id + "capture"
	req := newRequest("capture-pane" + o.flags() + " -t " + Quote(target) + b + " ; show-buffer" + b + " ; delete-buffer" + b)
	req.vis, req.blocks = true, 3
	if err = c.ask(ctx, req); err == nil {
		err = req.err
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(req.text.String(), "\n"), nil
}

// unvis adds text to b and undoes tmux's encoding for a control client: \\ for a
// backslash, \$ for a dollar, \ooo and C's letters for control characters.
func unvis(b *strings.Builder, text []byte) error {
	b.Grow(len(text))
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			b.Write(text)
			return nil
		}
		b.Write(text[:i])
		if text = text[i+1:]; len(text) == 0 {
			return errors.New("a backslash at the end")
		}
		took := 1
		if len(text) >= 3 && text[0] <= '3' && octal(text[0]) && octal(text[1]) && octal(text[2]) {
			b.WriteByte((text[0]-'0')<<6 | (text[1]-'0')<<3 | (text[2] - '0'))
			took = 3
		} else if at := strings.IndexByte("abtnvfrsE0", text[0]); at >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r \x1b\x00"[at])
		} else {
			b.WriteByte(text[0])
		}
		text = text[took:]
	}
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// Control attaches a control client to the session of exactly that name. It neither
// resizes its windows nor receives their output. The caller must call Close.
//
// While it attaches, the caller should keep sessions from being made or ended: tmux 3.3a
// notifies clients of that before they are ready, and dies, in one of twenty such
// coincidences.
func (s *Server) Control(ctx context.Context, session string) (*Client, error) {
	return s.attach(ctx, session, "no-output,ignore-size")
}

// attach is Control with tmux's own flags for the client, which must not change later:
// tmux 3.3a loses track of output in progress when no-output is set or lifted, and the
// client is never answered again.
func (s *Server) attach(ctx context.Context, session, flags string) (*Client, error) {
	if !nameOK(session) {
		return nil, fmt.Errorf("tmux attach-session: session %q: want letters, digits, - or _", session)
	}
	program, err := s.program()
	if err != nil {
		return nil, err
	}
	// Giving up on one while it attaches is what kills tmux 3.3a.
	gone := ctx.Err
	ctx, cancel, err := settled(ctx, "attach-session")
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := s.socket().revive(ctx, false); err != nil {
		return nil, err
	}
	stdin, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	r, stdout, err := os.Pipe()
	if err != nil {
		w.Close()
		return nil, err
	}
	// -N: attaching would start a server otherwise.
	args := s.args("-u", "-N", "-C", "attach-session", "-t", "="+session, "-f", flags)
	c := &Client{
		server: s, cmd: exec.Command(program, args...), stdin: w, id: "end-" + rand.Text() + "-",
		turn:    make(chan struct{}, 1),
		session: session,
		notices: make(chan Notice, 64), // a burst of starts; older ones are dropped
		ready:   make(chan struct{}), done: make(chan struct{}),
	}
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = s.Environ(), stdin, stdout, stdout
	c.cmd.SysProcAttr = childAttr()
	if err := startFresh(c.cmd); err != nil {
		w.Close()
		r.Close()
		stdout.Close()
		return nil, fmt.Errorf("tmux attach-session: %w", err)
	}
	go c.await(stdout)
	go c.read(r)
	begun := time.Now()
	select {
	case <-c.ready:
		c.turn <- struct{}{}
		if err := gone(); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("tmux attach-session: %w", err)
		}
		return c, nil
	case <-c.done:
		w.Close()
		return nil, c.err
	case <-ctx.Done():
		c.turn <- struct{}{}
		_ = c.Close()
		return nil, s.silent("attach-session", begun, ctx.Err())
	}
}
