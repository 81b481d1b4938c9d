// This file takes a person's terminal to a session: it attaches the terminal,
// switches the client that it runs in, or opens a window in another tmux.

package tmux

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// AttachOptions configure To.
type AttachOptions struct {
	Server   *Server
	Session  string
	ReadOnly bool
	Terminal bool     // there is one
	Outer    string   // $TMUX, if the person is in a tmux
	Environ  []string // the person's
}

// ErrNoTerminal is returned if there is no terminal to attach.
var ErrNoTerminal = errors.New("not a terminal")

// Attach shows the session. It returns only if it can't, or if it has switched or opened a
// window instead: then leave says how to leave that.
func Attach(ctx context.Context, o AttachOptions) (leave string, err error) {
	s := o.Server
	outer := o.Outer
	if outer == "" {
		if !o.Terminal {
			return "", ErrNoTerminal
		}
		return "", replace(s, o.words())
	}
	socket, _, _ := strings.Cut(outer, ",")
	if isOurs(s, socket) {
		words := []string{"switch-client", "-t", "=" + o.Session}
		if o.ReadOnly {
			words = append(words, "-r")
		}
		_, err := ask(ctx, s.Argv(words...), o.outside())
		return "", err
	}
	// A client inside a client: the inner one must not think itself nested.
	inner := append([]string{"env", "-u", "TMUX", "-u", "TMUX_PANE", "-u", "TMUX_TMPDIR"}, s.Argv(o.words()...)...)
	other := &Server{Socket: socket}
	words := append([]string{"new-window", "-P", "-F", "#{pane_pid}", "-n", o.Session}, inner...)
	client, err := ask(ctx, other.Argv(words...), o.outside())
	if err != nil {
		return "", err
	}
	return o.leaving(ctx, other, client), nil
}

// leaving returns how a person leaves a window of the other tmux in which a client of
// this one runs, and makes that client's status line show it too: if both have the same
// prefix, the other one takes it unless it is pressed twice.
func (o AttachOptions) leaving(ctx context.Context, other *Server, client string) string {
	s := o.Server
	theirs, err := ask(ctx, other.Argv("display-message", "-p", "#{prefix}"), o.outside())
	if err != nil {
		return "its prefix, or that twice, and d leaves it"
	}
	ours, err := ask(ctx, s.Argv("display-message", "-p", "-t", "="+o.Session+":", "#{prefix}"), s.Environ())
	if err != nil {
		return "its prefix, or that twice, and d leaves it"
	}
	if ours != theirs {
		return ours + " d leaves it"
	}
	// Those that have gone are left out: numbers are reused.
	noted, _ := ask(ctx, s.Argv("show-options", "-gqv", nestedOption), s.Environ())
	there, _ := ask(ctx, s.Argv("list-clients", "-F", "#{client_pid}"), s.Environ())
	list := []string{client}
	for pid := range strings.FieldsSeq(noted) {
		if slices.Contains(strings.Fields(there), pid) && pid != client {
			list = append(list, pid)
		}
	}
	// Not noted, the status line names the prefix once.
	_, _ = ask(ctx, s.Argv("set-option", "-g", nestedOption, " "+strings.Join(list, " ")+" "), s.Environ())
	return fmt.Sprintf("%s %s d leaves it, %s d leaves your tmux", ours, ours, theirs)
}

// nestedOption holds the process ids of the clients that run in a window of a tmux
// with the same prefix; tmux.conf reads it.
const nestedOption = "@netsky-nested"

func (o AttachOptions) words() []string {
	words := []string{"attach-session", "-t", "=" + o.Session}
	if o.ReadOnly {
		words = append(words, "-r")
	}
	return words
}

// isOurs reports whether the tmux socket that this process runs under is the
// home's own server.
func isOurs(s *Server, socket string) bool {
	if strings.ContainsRune(s.Socket, '/') {
		return socket == s.Socket
	}
	return filepath.Base(socket) == s.Socket
}

// outside returns the environment of the tmux that this process runs under, so it keeps
// TMUX.
func (o AttachOptions) outside() []string {
	return slices.DeleteFunc(slices.Clone(o.Environ), func(v string) bool { return strings.HasPrefix(v, "TMUX_TMPDIR=") })
}

// ask runs a command of tmux and returns the line that it prints.
func ask(ctx context.Context, argv, env []string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("tmux: %s: %w", strings.TrimSpace(stderr.String()), err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

func replace(s *Server, words []string) error {
	argv := s.Argv(words...)
	if err := syscall.Exec(argv[0], argv, s.Environ()); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}
