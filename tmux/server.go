// Package tmux runs programs in detached sessions of one tmux server and watches over
// them. It promises that a target is exact: agent1 never means agent10, a pane that is
// gone never means its neighbour. Whatever tmux does not do although it exits with 0 is
// an error here.
//
// It does not know what the programs are. The caller distinguishes its own sessions
// from a person's by the tags (user options) it gave them.
//
// A caller that dies leaves its sessions running, which is what tmux is for. A control
// client dies with it; a hub session (see [Server.OpenHub]) stays and is replaced by
// the next OpenHub. A call that changes something is waited for once it has begun, even
// if its context is cancelled meanwhile: what it returns is what happened. Only a
// deadline ends it early. Then Start and Kill ask what exists now, as tmux answers
// after it has done everything that it was told before; if that is not answered either,
// the change may still be made once the server wakes up.
//
// It needs tmux 3.2 or newer and has been tested with 3.3a.
package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/proc"
)

var (
	// ErrNoServer is returned when no server listens on the socket.
	ErrNoServer = errors.New("no tmux server")
	// ErrNotFound is returned when the pane or session does not exist.
	ErrNotFound = errors.New("no such pane or session")
	// ErrUnanswered is returned when tmux answered neither a command nor the question
	// what exists now: it is unknown whether the command was executed, or will be once
	// the server wakes up.
	ErrUnanswered = advice.With(errors.New("nor an answer to what is there now"),
		"once tmux answers, `netsky status` shows what was started, and `netsky up` starts what is missing; `netsky down --force`\nends agents without tmux")
	// ErrInMode is returned when a pane is in copy mode, or another mode that would
	// receive keys and text in place of the program.
	ErrInMode = errors.New("in copy mode")
)

const (
	// patience is how long a call without a deadline waits.
	patience = 10 * time.Second
	// startPatience is how long Start waits: it makes many sessions in one call,
	// and has only begun because the server had answered before.
	startPatience = 20 * time.Second
)

// maxAnswer is the largest answer accepted from a tmux program. It is far above a
// pane's whole history and keeps a mistake from filling the memory.
const maxAnswer = 64 << 20

// A Server is one tmux server. The zero Server is the person's own. Its fields
// must not change once it is in use; its methods may be called concurrently.
type Server struct {
	// Socket is the server's name as for tmux -L; with a slash it is a path.
	// "" is the default server.
	Socket string
	// Conf is the configuration that a new server reads, and the only one:
	// ~/.tmux.conf never is. "" is none.
	Conf string
	// Env is the environment of the tmux program and so of a new server;
	// nil is this process's. Variables named TMUX… are always left out.
	Env []string
	// Tags are the user options to read with each pane, such as "@owner".
	Tags []string
	// Known remembers this server's process, so that it is found again when its socket has
	// been removed; nil: it is lost then, and a new one is started.
	Known Known

	through atomic.Pointer[through] // nil: Panes starts a program
}

// Version returns the tmux program's version, such as "3.3a".
func (s *Server) Version(ctx context.Context) (string, error) {
	ctx, cancel := withPatience(ctx)
	defer cancel()
	out, err := s.call(ctx, nil, "-V")
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(strings.TrimSpace(out), "tmux "), nil
}

// Argv returns the command line of a tmux program for this server, for the caller to
// run with [Server.Environ]. Its first word is an absolute path if there is such a
// program.
func (s *Server) Argv(args ...string) []string {
	file, err := s.program()
	if err != nil {
		file = "tmux"
	}
	return append([]string{file}, s.args(args...)...)
}

// Environ returns the environment for a program started by [Server.Argv]: without TMUX,
// with which tmux would refuse to nest, and without TMUX_TMPDIR, with which it would
// look for the socket elsewhere.
func (s *Server) Environ() []string {
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	return execx.Without(env, "TMUX*")
}

func (s *Server) args(args ...string) []string {
	conf := s.Conf
	if conf == "" {
		conf = os.DevNull
	}
	flag := "-L"
	if strings.Contains(s.Socket, "/") {
		flag = "-S"
	}
	return append([]string{"-f", conf, flag, s.label()}, args...)
}

// label names the server in errors and to tmux.
func (s *Server) label() string {
	if s.Socket == "" {
		return "default"
	}
	return s.Socket
}

func (s *Server) socket() socket { return socket{s.path(), s.label(), s.Known} }

// Unreachable returns the known servers of this socket that run, but are not what listens
// there. One that is just exiting is waited for.
func (s *Server) Unreachable(ctx context.Context) []proc.Process { return s.socket().unreachable(ctx) }

// path returns where tmux puts the socket when TMUX_TMPDIR is not set.
func (s *Server) path() string {
	if strings.Contains(s.Socket, "/") {
		return s.Socket
	}
	return filepath.Join("/tmp", "tmux-"+strconv.Itoa(os.Getuid()), s.label())
}

// program finds tmux in the PATH of the server's environment.
func (s *Server) program() (string, error) {
	file := execx.Find(execx.Value(s.Environ(), "PATH"), "tmux")
	if file == "" {
		return "", fmt.Errorf("tmux: no such program in PATH: %w", exec.ErrNotFound)
	}
	return file, nil
}

// run executes commands. tmux's standard output is returned even with an error. A known
// server whose socket has been removed makes it again first: it has not ended, and another
// must not be started beside it.
func (s *Server) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	verb := verbOf(args)
	ctx, cancel := withPatience(ctx)
	defer cancel()
	socket := s.socket()
	if err := socket.revive(ctx, args[0] == "start-server"); err != nil {
		return "", fmt.Errorf("tmux %s: %w", verb, err)
	}
	out, err := s.call(ctx, stdin, args...)
	if !errors.Is(err, ErrNoServer) || socket.listens(true) || len(socket.living()) == 0 {
		return out, err
	}
	if err := socket.revive(ctx, true); err != nil {
		return "", fmt.Errorf("tmux %s: %w", verb, err)
	}
	if again, ok := stdin.(io.Seeker); ok {
		_, _ = again.Seek(0, io.SeekStart)
	}
	return s.call(ctx, stdin, args...)
}

// call starts the tmux program, the only place that does except Control.
func (s *Server) call(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	file, err := s.program()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx) // for an answer that is too large
	defer cancel()
	verb := verbOf(args)
	begun := time.Now()
	// -u: tmux replaces what is not ASCII by underscores otherwise, if the
	// locale says so.
	cmd := exec.CommandContext(ctx, file, append([]string{"-u"}, s.args(args...)...)...)
	out, errs := answer{over: cancel}, answer{over: cancel}
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Environ(), stdin, &out, &errs
	// A person's Ctrl-C is for netsky, not for a call in progress.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The server holds the program's output too. After an answer it closes it soon, also
	// on a busy machine; one that hangs, so that the program is killed, keeps it open.
	cmd.WaitDelay = 3 * time.Second
	cmd.Cancel = func() error {
		cmd.WaitDelay = 250 * time.Millisecond
		return cmd.Process.Kill()
	}
	err = cmd.Run()
	switch {
	case out.full || errs.full:
		return "", unheard{fmt.Errorf("tmux %s: server %s: an answer of more than %d bytes", verb, s.label(), maxAnswer)}
	case err == nil && errs.text.Len() == 0:
		return out.text.String(), nil
	case ctx.Err() != nil && (cmd.ProcessState == nil || !cmd.ProcessState.Exited()):
		return out.text.String(), unheard{s.silent(verb, begun, ctx.Err())}
	case errs.text.Len() == 0 && cmd.ProcessState != nil && (!cmd.ProcessState.Exited() || errors.Is(err, exec.ErrWaitDelay)):
		return out.text.String(), unheard{fmt.Errorf("tmux %s: %w", verb, err)}
	case errs.text.Len() == 0:
		return out.text.String(), fmt.Errorf("tmux %s: %w", verb, err)
	}
	return out.text.String(), s.refusal(verb, errs.text.String())
}

// unheard is the error of a call whose tmux program was ended before the whole answer
// had arrived, or whose output stayed open so long that nobody knows whether it had: the
// server may have executed the command, and may yet do so.
type unheard struct{ error }

func (e unheard) Unwrap() error { return e.error }

// afterwards lists what exists after a call that ended with err, which is unheard.
// Whatever the server had received of it has been executed by the time it answers
// another: tmux has a single thread, and executes a batch in one go. It waits as long
// again as the call did, patience at most. Without an answer the error matches
// ErrUnanswered.
func (s *Server) afterwards(ctx context.Context, begun time.Time, err error) (panes []listed, lerr error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(time.Since(begun), patience))
	defer cancel()
	// Asked twice: the first answer may be given in the same round in which the server
	// reads the end of the call from its socket.
	for range 2 {
		if panes, lerr = s.list(ctx); lerr != nil {
			break
		}
	}
	if lerr != nil && !errors.Is(lerr, ErrNoServer) {
		return nil, fmt.Errorf("%w, %w", err, ErrUnanswered)
	}
	return panes, lerr
}

// An answer keeps what a tmux program writes, up to maxAnswer bytes.
type answer struct {
	text bytes.Buffer
	over func() // ends the program
	full bool
}

func (a *answer) Write(b []byte) (int, error) {
	if a.text.Len()+len(b) > maxAnswer {
		a.full = true
		a.over()
		return 0, io.ErrShortWrite
	}
	return a.text.Write(b)
}

// silent is the error of a server that did not answer in time.
func (s *Server) silent(verb string, begun time.Time, cause error) error {
	return fmt.Errorf("tmux %s: server %s: no answer in %v: %w",
		verb, s.label(), time.Since(begun).Round(10*time.Millisecond), cause)
}

// refusal is the error for what tmux wrote on its standard error.
func (s *Server) refusal(verb, text string) error {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	for _, sign := range []string{
		"no server running on ", "(No such file or directory)", "(Connection refused)",
		"server exited", "lost server", "no sessions", "no current target",
	} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("tmux %s: %w at %s: %s", verb, ErrNoServer, s.label(), text)
		}
	}
	if strings.Contains(text, "can't find ") {
		return fmt.Errorf("tmux %s: %w: %s", verb, ErrNotFound, text)
	}
	return fmt.Errorf("tmux %s: %s", verb, text)
}

// withPatience gives ctx a deadline if it has none.
func withPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, patience)
}

// settled gives a call that changes something a context that its caller can't cancel,
// with ctx's deadline or patience. The error is that of a caller whose context had
// ended before.
func settled(ctx context.Context, verb string) (context.Context, context.CancelFunc, error) {
	return settledWithin(ctx, verb, patience)
}

// settledWithin is settled with another patience.
func settledWithin(ctx context.Context, verb string, patience time.Duration) (context.Context, context.CancelFunc, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("tmux %s: %w", verb, err)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(patience)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	return ctx, cancel, nil
}

// verbOf returns the name of a call for errors. Arguments may contain secrets and are
// never shown.
func verbOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if args[0] == "start-server" && len(args) > 2 {
		return args[2]
	}
	return args[0]
}
