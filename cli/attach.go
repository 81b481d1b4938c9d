package cli

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/tmux"
)

func (a *app) attachCommand() *cli.Command {
	return &cli.Command{
		Name:      "attach",
		Usage:     "go to an agent's pane; C-b d leaves it",
		ArgsUsage: "[AGENT]",
		Description: "Outside tmux it attaches this terminal; inside netsky's own tmux it switches; inside another tmux it opens a\n" +
			"window there, which C-b C-b d leaves if that tmux has the prefix C-b too; the status line says which it is.\n" +
			"Without AGENT it is agent0.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "read-only", Aliases: []string{"r"}, Usage: "look, and let no key through"}},
		Action: func(c *cli.Context) error {
			id := agent.Root
			if c.NArg() > 0 {
				arg, err := one(c, "at most one agent")
				if err != nil {
					return err
				}
				if id, err = agent.ParseAgent(arg); err != nil {
					return err
				}
			}
			l, err := a.launcher()
			if err != nil {
				return err
			}
			list, err := l.Inspect(c.Context)
			if err != nil {
				return err
			}
			if st := list.Find(id); st.Pane() == "" {
				return noPane(st.Agent, st.State)
			}
			return a.attach(c.Context, l.Tmux, id, c.Bool("read-only"))
		},
	}
}

// attach goes to the agent's session. It returns only when it can't, or when it
// has switched or opened a window instead.
func (a *app) attach(ctx context.Context, s *tmux.Server, id agent.ID, readOnly bool) error {
	outer := a.getenv("TMUX")
	if outer == "" {
		if _, ok := terminal(a.out); !ok {
			return usagef("attach: this is no terminal; `netsky peek %s` shows the pane", id)
		}
		return a.execTmux(s, attachWords(id, readOnly))
	}
	socket, _, _ := strings.Cut(outer, ",")
	if a.isOurs(s, socket) {
		words := []string{"switch-client", "-t", "=" + string(id)}
		if readOnly {
			words = append(words, "-r")
		}
		return a.runTmux(ctx, s.Argv(words...))
	}
	// A client inside a client: the inner one must not think itself nested.
	inner := append([]string{"env", "-u", "TMUX", "-u", "TMUX_PANE", "-u", "TMUX_TMPDIR"}, s.Argv(attachWords(id, readOnly)...)...)
	other := &tmux.Server{Socket: socket}
	words := append([]string{"new-window", "-P", "-F", "#{pane_pid}", "-n", string(id)}, inner...)
	client, err := a.askTmux(ctx, other.Argv(words...), a.outerEnv())
	if err != nil {
		return err
	}
	a.warn("opened %s in a new window of your tmux: %s", id, a.leaving(ctx, s, other, id, client))
	return nil
}

// leaving says how a person leaves a window of the other tmux in which a client of
// ours runs, and has that client's status line say so too: where both have the
// same prefix, the other one takes it unless it is pressed twice.
func (a *app) leaving(ctx context.Context, s, other *tmux.Server, id agent.ID, client string) string {
	theirs, err := a.askTmux(ctx, other.Argv("display-message", "-p", "#{prefix}"), a.outerEnv())
	if err != nil {
		return "its prefix, or that twice, and d leaves it"
	}
	ours, err := a.askTmux(ctx, s.Argv("display-message", "-p", "-t", "="+string(id)+":", "#{prefix}"), s.Environ())
	if err != nil {
		return "its prefix, or that twice, and d leaves it"
	}
	if ours != theirs {
		return ours + " d leaves it"
	}
	// Those that have gone are left out: numbers are given out again.
	noted, _ := a.askTmux(ctx, s.Argv("show-options", "-gqv", nestedOption), s.Environ())
	there, _ := a.askTmux(ctx, s.Argv("list-clients", "-F", "#{client_pid}"), s.Environ())
	list := []string{client}
	for _, pid := range strings.Fields(noted) {
		if slices.Contains(strings.Fields(there), pid) && pid != client {
			list = append(list, pid)
		}
	}
	// Not noted, the status line names the prefix once.
	_, _ = a.askTmux(ctx, s.Argv("set-option", "-g", nestedOption, " "+strings.Join(list, " ")+" "), s.Environ())
	return fmt.Sprintf("%s %s d leaves it, %s d leaves your tmux", ours, ours, theirs)
}

// nestedOption holds the process ids of the clients that run in a window of a tmux
// with the same prefix; tmux.conf reads it.
const nestedOption = "@netsky-nested"

func attachWords(id agent.ID, readOnly bool) []string {
	words := []string{"attach-session", "-t", "=" + string(id)}
	if readOnly {
		words = append(words, "-r")
	}
	return words
}

// isOurs reports whether the tmux socket that this process runs under is the
// home's own server.
func (a *app) isOurs(s *tmux.Server, socket string) bool {
	if strings.ContainsRune(s.Socket, '/') {
		return socket == s.Socket
	}
	return filepath.Base(socket) == s.Socket
}

// runTmux asks the tmux that this process runs under, so it keeps TMUX.
func (a *app) runTmux(ctx context.Context, argv []string) error {
	_, err := a.askTmux(ctx, argv, a.outerEnv())
	return err
}

func (a *app) outerEnv() []string {
	return slices.DeleteFunc(slices.Clone(a.environ), func(v string) bool { return strings.HasPrefix(v, "TMUX_TMPDIR=") })
}

// askTmux runs a command of tmux and returns the line that it prints.
func (a *app) askTmux(ctx context.Context, argv, env []string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stdout, stderr strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("tmux: %s: %w", strings.TrimSpace(stderr.String()), err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

func (a *app) execTmux(s *tmux.Server, words []string) error {
	argv := s.Argv(words...)
	if err := syscall.Exec(argv[0], argv, s.Environ()); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

func noPane(id agent.ID, s agent.State) error {
	return needUp{id, fmt.Errorf("%s: is %s: it has no pane", id, s)}
}

// needUp is an error that bringing the agent up would cure.
type needUp struct {
	id agent.ID
	error
}

func (e needUp) Unwrap() error { return e.error }
