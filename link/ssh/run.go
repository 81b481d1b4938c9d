package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/internal/execx"
	"netsky/internal/proc"
	"netsky/internal/words"
)

// Exit statuses that are not netsky's.
const (
	missing = 127 // of the shell, if it finds no netsky
	lost    = 255 // ssh's own
)

var (
	// ErrUnreachable is returned if there is no connection to a host, or it broke.
	ErrUnreachable = errors.New("there is no connection to it, or it broke")
	// ErrNoNetsky is returned if a host has no netsky, or it is elsewhere.
	ErrNoNetsky = errors.New("no netsky is there")
)

// Piped is a variable of a netsky that another host's runs: "1" has it end once nobody reads its
// output. Without a terminal, ssh passes no Ctrl-C on, and does not end what it runs when it ends itself.
const Piped = "NETSKY_PIPED"

// A Failed is the exit status of a netsky on another host.
type Failed struct{ Status int }

func (f Failed) Error() string { return fmt.Sprintf("exit status %d", f.Status) }

// places are where netsky may be, and what it starts, beside the short PATH that ssh's commands get.
const places = `PATH="$PATH:$HOME/.local/bin:$HOME/bin:$HOME/go/bin:/usr/local/bin:/opt/homebrew/bin"; export PATH; `

// quoted are the characters that mean something between single quotes: to fish the backslash, too.
var quoted = strings.NewReplacer("'", `'\''`, `\`, `'\\'`)

// shell returns a command for the user's shell there, whichever it is, that has sh run a script
// with these arguments.
func shell(script string, args ...string) string {
	command := "exec sh -c '" + quoted.Replace(script) + "' netsky"
	for _, a := range args {
		command += " '" + quoted.Replace(a) + "'"
	}
	return command
}

// Script returns lines of sh after which "$netsky" is the program there; without one they end.
func (h Host) Script() string {
	program := "netsky"
	if h.Netsky != "" {
		program = execx.Quote(h.Netsky)
		if rest, ok := strings.CutPrefix(h.Netsky, "~/"); ok {
			program = `"$HOME"/` + execx.Quote(rest)
		}
	}
	return fmt.Sprintf("%snetsky=$(command -v %s) || exit %d; ", places, program, missing)
}

// Run runs a netsky verb on a host, as if it were here: with these streams, and with a terminal
// if all of them are one. vars are variables that it gets there, as a shell assigns them. The error
// is nil, a Failed, or matches ErrNoNetsky or ErrUnreachable, for which ssh has said why.
func (c Client) Run(ctx context.Context, h Host, in io.Reader, out, errs io.Writer, vars string, line ...string) error {
	kind := "-T"
	if terminals(in, out, errs) {
		kind = "-t" // so that Ctrl-C and the window's size get there, too
	}
	script := `exec "$netsky" "$@"`
	if vars != "" {
		script = "export " + vars + "; " + script
	}
	return c.run(ctx, h, in, out, errs, kind, shell(h.Script()+script, line...))
}

// run runs a command of the user's shell on a host; kind says with a terminal or without.
func (c Client) run(ctx context.Context, h Host, in io.Reader, out, errs io.Writer, kind, command string) error {
	options, err := c.connect(ctx, h, errs)
	if err != nil {
		return err
	}
	cmd, err := c.command(ctx, options, kind, "--", h.Dest, command)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return ended(ctx, cmd.Run())
}

// signalled is how much later than ssh this process may hear of a signal that went to both.
const signalled = 200 * time.Millisecond

// ended returns what the exit of an ssh means.
func ended(ctx context.Context, err error) error {
	exit := new(exec.ExitError)
	if errors.As(err, &exit) && (!exit.Exited() || exit.ExitCode() == lost) { // Ctrl-C ends ssh, and perhaps ctx a moment later
		_ = proc.Sleep(ctx, signalled)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &exit) || !exit.Exited():
		return err
	case exit.ExitCode() == lost:
		return ErrUnreachable
	case exit.ExitCode() == missing:
		return ErrNoNetsky
	}
	return Failed{exit.ExitCode()}
}

// terminals reports whether all streams are terminals, so that a verb there gets one.
func terminals(streams ...any) bool {
	return !slices.ContainsFunc(streams, func(s any) bool { return !terminal(s) })
}

// terminal reports whether a stream is one.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// maxAnswer is the most that a script may print, in bytes.
const maxAnswer = 4 << 20

// Ask runs a script of sh on a host and returns what it prints. in is its input; wait is how long
// it may take. The errors are those of Run, with the last line that ssh or the script has said.
func (c Client) Ask(ctx context.Context, h Host, wait time.Duration, in io.Reader, script string, args ...string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out, said := limit{left: maxAnswer, over: cancel}, limit{left: maxAnswer, over: cancel}
	err := c.run(limited, h, in, &out, &said, "-T", shell(script, args...))
	switch last := lastLine(said.String()); {
	case err == nil || ctx.Err() != nil:
		return out.String(), ctx.Err()
	case out.left < 0 || said.left < 0:
		return "", fmt.Errorf("it prints more than %s where a short answer is expected", words.Size(maxAnswer))
	case limited.Err() != nil:
		return "", fmt.Errorf("%w: no answer within %v", ErrUnreachable, wait)
	case last != "" && !errors.Is(err, ErrNoNetsky):
		return out.String(), fmt.Errorf("%w: %s", err, last)
	}
	return out.String(), err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// A limit keeps the beginning of what is written to it, and calls over once that is not all.
type limit struct {
	text bytes.Buffer // not embedded: its ReadFrom would take all
	left int          // less than 0: more has come
	over func()
}

func (l *limit) String() string { return l.text.String() }

func (l *limit) Write(p []byte) (int, error) {
	l.text.Write(p[:min(len(p), max(l.left, 0))])
	if l.left -= len(p); l.left < 0 {
		l.left = -1
		l.over()
	}
	return len(p), nil
}
