package testworld

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/GianlucaP106/gotmux/gotmux"

	"netsky/internal/execx"
	"netsky/tmux"
)

// witnessVar makes a test program the witness of the socket and the tags that it names.
const witnessVar = "NETSKY_TEST_WITNESS"

// Witness returns what gotmux, which shares no code with package tmux, reads of a server: a
// line for each pane, sorted, in the form of [Believed]. Without a server there are none.
//
// gotmux has no time limit and panics at a pane title that contains its separator, so it
// runs in a process of its own, which is this test program once more (see [Testify]) and is
// ended after a minute.
func Witness(ctx context.Context, socket string, tags ...string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(execx.Without(os.Environ(), "TMUX*"), "LC_ALL=C.UTF-8", witnessVar+"="+strings.Join(append([]string{socket}, tags...), " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with the tmux that it waits for
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("the witness of %s: %w: %s", socket, err, exit.Stderr)
	} else if err != nil {
		return nil, fmt.Errorf("the witness of %s: %w", socket, err)
	}
	lines := slices.Collect(strings.Lines(string(out)))
	slices.Sort(lines)
	return lines, nil
}

// Testify reports whether this process is a witness, after it has printed what it sees. A
// TestMain calls it first.
func Testify() bool {
	words := strings.Fields(os.Getenv(witnessVar))
	if len(words) == 0 {
		return false
	}
	if err := testify(words[0], words[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// testify only reads, and asks by ids: gotmux hands a name to tmux as it is, and tmux takes
// agent1 for agent10 once agent1 is gone.
func testify(socket string, tags []string) error {
	server, err := gotmux.NewTmux(socket)
	if err != nil {
		return nil // nobody listens
	}
	life, err := server.Command("display-message", "-p", "#{pid}-#{start_time}") // GetServerInformation panics with a socket
	if err != nil {
		return err
	}
	sessions, err := server.ListSessions()
	if err != nil {
		return err
	}
	for _, s := range sessions {
		name := s.Name
		s.Name = s.Id
		if o, err := s.Option("@linked-hub"); err == nil && o.Value != "" { // other sessions' windows; package tmux leaves it out
			continue
		}
		p := tmux.Pane{Session: name, SessionID: s.Id, Attached: s.Attached, Server: strings.TrimSpace(life), Tags: make(map[string]string)}
		for _, tag := range tags {
			// An option that is not set is an error here.
			if o, err := s.Option(tag); err == nil && o.Value != "" {
				p.Tags[tag] = strings.TrimSuffix(o.Value, "\n")
			}
		}
		windows, err := s.ListWindows()
		if err != nil {
			return err
		}
		for _, w := range windows {
			panes, err := w.ListPanes()
			if err != nil {
				return err
			}
			if len(panes) != w.Panes {
				return fmt.Errorf("window %s: %d panes, and %d in its list", w.Id, w.Panes, len(panes))
			}
			for _, g := range panes {
				p.Window, p.ID, p.PID, p.Width, p.Height = w.Id, g.Id, int(g.Pid), g.Width, g.Height
				p.InMode, p.Dead, p.Title, p.Command = g.InMode, g.Dead, g.Title, g.CurrentCommand
				fmt.Print(Believed([]tmux.Pane{p})[0])
			}
		}
	}
	return nil
}

// Believed returns a line for each pane, sorted, with all that a witness can see of it.
func Believed(panes []tmux.Pane) []string {
	var lines []string
	for _, p := range panes {
		p.Activity = time.Time{}
		lines = append(lines, fmt.Sprintf("%+v\n", p))
	}
	slices.Sort(lines)
	return lines
}

// Agree waits until package tmux and the witness see the same on a server, and returns the
// sessions. What neither may change, as what a program calls itself, may differ for a moment.
func Agree(ctx context.Context, s *tmux.Server) ([]string, error) {
	socket := s.Socket
	if !strings.Contains(socket, "/") {
		socket = filepath.Join("/tmp", fmt.Sprintf("tmux-%d", os.Getuid()), socket)
	}
	var panes []tmux.Pane
	var seen []string
	var err, werr error
	if !Until(func() bool {
		panes, err = s.Panes(ctx)
		seen, werr = Witness(ctx, socket, s.Tags...)
		return err == nil && werr == nil && slices.Equal(Believed(panes), seen)
	}) {
		return nil, errors.Join(fmt.Errorf("tmux on %s: package tmux sees\n%sthe witness\n%s", socket, strings.Join(Believed(panes), ""), strings.Join(seen, "")), err, werr)
	}
	var sessions []string
	for _, p := range panes {
		sessions = append(sessions, p.Session)
	}
	slices.Sort(sessions)
	return slices.Compact(sessions), nil
}
