package tmux_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/tmux"
)

func plainCommand(s *tmux.Server, args ...string) *exec.Cmd {
	argv := s.Argv(args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.Environ()
	return cmd
}

func TestStart(t *testing.T) {
	t.Parallel()
	s := newServer(t, "@owner", "@run")
	dir := t.TempDir()
	odd := filepath.Join(dir, "a #{pid} #(id) ##[x #, b;")
	testworld.Must(t, os.Mkdir(odd, 0o700))
	secret := "s3cr3t-value"
	panes := testworld.Got(s.Start(t.Context(), []string{`set -g @made "by us"`}, []tmux.Session{{
		Name: "agent1", Dir: odd, Width: 90, Height: 30,
		Command: `{ pwd; env; } > "$OUT.x"; mv "$OUT.x" "$OUT"; exec sleep 1000`,
		Env:     []string{"OUT=" + dir + "/out", "KEY=" + secret, "ODD=a\n  b;\\ \"'$HOME ~ü", "PATH=/odd dir:/usr/bin:/bin"},
		Tags:    map[string]string{"@owner": "/home/x y;", "@run": "1"},
	}, {
		Name: "agent10", Command: "exec sleep 1000", Tags: map[string]string{"@run": "2\n  ü"},
	}}))(t)
	if got := names(panes); !slices.Equal(got, []string{"agent1", "agent10"}) {
		t.Fatalf("Start() = %v", got)
	}
	p := find(t, panes, "agent1")
	if p.Width != 90 || p.Height != 30 || p.PID == 0 || p.Tags["@owner"] != "/home/x y;" || p.Tags["@run"] != "1" {
		t.Errorf("agent1 is %+v", p)
	}
	if q := find(t, panes, "agent10"); q.Width != 200 || q.Height != 50 || q.Tags["@run"] != "2\n  ü" || q.Tags["@owner"] != "" {
		t.Errorf("agent10 is %+v", q)
	}
	testworld.Equal(t, plain(t, s, "show", "-gv", "@made"), "by us", "@made")
	testworld.Wait(t, "output of agent1", func() bool {
		_, err := os.Stat(dir + "/out")
		return err == nil
	})
	out := mustRead(t, dir+"/out")
	for _, want := range []string{odd + "\n", "KEY=" + secret + "\n", "ODD=a\n  b;\\ \"'$HOME ~ü\n", "PATH=/odd dir:/usr/bin:/bin\n"} {
		testworld.Contains(t, out, want, "agent1 does not say")
	}
	testworld.Lacks(t, mustRead(t, fmt.Sprintf("/proc/%d/cmdline", serverPID(t, s))), secret, "the server's argument list shows a secret")
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := filepath.Join(t.TempDir(), "file")
	testworld.Must(t, os.WriteFile(file, nil, 0o600))
	big := strings.Repeat("v", 128<<10)
	for _, tt := range []struct {
		name string
		edit func(*tmux.Session)
		want string
	}{
		{"name", func(x *tmux.Session) { x.Name = "a.b" }, `session "a.b": want letters`},
		{"dash name", func(x *tmux.Session) { x.Name = "-a" }, `session "-a": want letters`},
		{"no command", func(x *tmux.Session) { x.Command = "" }, "no command"},
		{"no such directory", func(x *tmux.Session) { x.Dir = file + "x" }, "no such file or directory"},
		{"no directory", func(x *tmux.Session) { x.Dir = file }, "not a directory"},
		{"big variable", func(x *tmux.Session) { x.Env = []string{"BIG=" + big} }, "variable BIG: 131076 bytes"},
		{"big command", func(x *tmux.Session) { x.Command = big }, "command: 131"},
		{"NUL in variable", func(x *tmux.Session) { x.Env = []string{"A=\x00"} }, "variable A: a NUL"},
		{"no variable", func(x *tmux.Session) { x.Env = []string{"secret"} }, "environment: want name=value"},
		{"tag", func(x *tmux.Session) { x.Tags = map[string]string{"status": "off"} }, `tag "status"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := idle("agent1")
			tt.edit(&x)
			_, err := s.Start(t.Context(), nil, []tmux.Session{x})
			testworld.Fails(t, err, tt.want, "Start()")
			if err != nil && strings.Contains(err.Error(), "vvv") {
				t.Error("the error shows the value")
			}
		})
	}
	testworld.Fails(t, testworld.Err(s.Start(t.Context(), []string{"set -g @a 1\nkill-server"}, nil)), "", "Start() took a setup line of two lines")
}

// The largest variable that is let through really reaches the program.
func TestStartLargest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	out := filepath.Join(t.TempDir(), "out")
	x := tmux.Session{Name: "agent1", Command: `echo ${#BIG} > ` + out + `; exec sleep 1000`}
	x.Env = []string{"BIG=" + strings.Repeat("v", 128<<10-1-len("BIG="))}
	mustStart(t, s, x)
	testworld.Wait(t, "the size", func() bool { data, _ := os.ReadFile(out); return string(data) == "131067\n" })
}

// What tmux does not carry out is an error though tmux may answer 0, and a
// session that was there before keeps its tags.
func TestStartPartly(t *testing.T) {
	t.Parallel()
	s := newServer(t, "@run")
	first := idle("agent1")
	first.Tags = map[string]string{"@run": "old"}
	mustStart(t, s, first)
	again := idle("agent1")
	again.Tags = map[string]string{"@run": "new"}
	panes, err := s.Start(t.Context(), []string{"set -g no-such-option 1"}, []tmux.Session{again, idle("agent10")})
	for _, want := range []string{"not started: agent1\n", "duplicate session: agent1", "invalid option: no-such-option"} {
		testworld.Fails(t, err, want, "Start()")
	}
	if got := names(panes); !slices.Equal(got, []string{"agent1", "agent10"}) {
		t.Fatalf("Start() = %v", got)
	}
	if got := find(t, panes, "agent1").Tags["@run"]; got != "old" {
		t.Errorf("the tag of the old session is %q now", got)
	}
	if _, err := s.Start(t.Context(), []string{"no-such-command"}, []tmux.Session{idle("agent2")}); err == nil {
		t.Error("Start() with a line that tmux does not know = nil")
	}
}

func TestPanesWithoutServer(t *testing.T) {
	t.Parallel()
	if panes, err := newServer(t).Panes(t.Context()); panes != nil || err != nil {
		t.Errorf("Panes() = %v, %v, want nothing", panes, err)
	}
}

func TestPanesOddTitle(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	x := idle("agent1")
	x.Command = `printf '\033]2;7:a b, #{pid} 3:ü\033\\'; exec sleep 1000`
	mustStart(t, s, x)
	testworld.Wait(t, "title", func() bool {
		p := find(t, mustPanes(t, s), "agent1")
		return p.Title == "7:a b, #{pid} 3:ü" && p.Command == "sleep"
	})
}

func TestKillIsExact(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	panes := mustStart(t, s, idle("agent1"), idle("agent10"), idle("agent2"), idle("mine"))
	plain(t, s, "new-window", "-d", "-t", "=agent1:", "sleep 1000")
	plain(t, s, "link-window", "-d", "-s", "=agent1:1", "-t", "=mine:")
	plain(t, s, "link-window", "-d", "-s", "=agent2:0", "-t", "=mine:")
	testworld.Must(t, s.Kill(t.Context(), find(t, panes, "agent1"), find(t, panes, "agent2")))
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent10", "mine"}, "left")
	testworld.Equal(t, s.Kill(t.Context(), find(t, panes, "agent1")), nil, "Kill() of a session that is gone")
	testworld.Fails(t, s.Kill(t.Context(), tmux.Pane{Session: "agent10"}), "", "Kill() of a pane without ids = nil")
	testworld.Equal(t, s.Kill(t.Context(), mustPanes(t, s)...), nil, "Kill() of all")
	if got := mustPanes(t, s); got != nil {
		t.Errorf("left are %v", names(got))
	}
	testworld.Equal(t, s.Kill(t.Context(), panes...), nil, "Kill() without a server")
}

// The ids of a server that is gone mean nothing in the next one.
func TestKillOtherServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	old := mustStart(t, s, idle("agent1"))
	mustStop(t, s)
	mustStart(t, s, idle("agent1"))
	testworld.Must(t, s.Kill(t.Context(), old...))
	testworld.EqualList(t, names(mustPanes(t, s)), []string{"agent1"}, "the new agent1")
}

// ~/.tmux.conf is never read.
func TestHostileConf(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	conf := "set -g destroy-unattached on\nset -g base-index 1\nset -g default-command false\n" +
		"set-hook -g session-created kill-session\nset -g default-shell /bin/false\n"
	for _, name := range []string{".tmux.conf", ".config/tmux/tmux.conf"} {
		path := filepath.Join(home, name)
		testworld.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		testworld.Must(t, os.WriteFile(path, []byte(conf), 0o600))
	}
	s := newServer(t)
	s.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "TMUX=/tmp/x,1,0", "TMUX_TMPDIR="+home)
	mustStart(t, s, idle("agent1"))
	p := find(t, mustPanes(t, s), "agent1")
	testworld.Equal(t, plain(t, s, "display-message", "-p", "-t", p.ID, "#{window_index} #{destroy-unattached}"), "0 0", "0 0")
}

func TestStop(t *testing.T) {
	t.Parallel()
	if err := new(tmux.Server).Stop(t.Context()); err == nil {
		t.Fatal("Stop() of the default server = nil")
	}
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	socket := plain(t, s, "display-message", "-p", "#{socket_path}")
	// A client of somebody else's that keeps its input open.
	cmd := plainCommand(s, "-C", "attach-session", "-t", "=agent1")
	in := testworld.Got(cmd.StdinPipe())(t)
	testworld.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); <-ended; close(ended) })
	testworld.Wait(t, "control client", func() bool { return plain(t, s, "list-clients", "-F", "#{client_name}") != "" })
	// One that does not leave is waited for; to end the server under it would
	// leave both hanging.
	testworld.Must(t, cmd.Process.Signal(syscall.SIGSTOP))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || names(mustPanes(t, s)) == nil {
		t.Errorf("Stop() under a client that does not leave = %v, want a deadline error and the server alive", err)
	}
	testworld.Must(t, cmd.Process.Signal(syscall.SIGCONT))
	testworld.Must(t, s.Stop(t.Context()))
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("socket %s: %v, want gone", socket, err)
	}
	testworld.Equal(t, s.Stop(t.Context()), nil, "Stop() again")
}

// A server whose last session has ended may answer for a while yet: its socket is
// removed all the same, once it is gone.
func TestSweepEmptyServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	mustStart(t, s, idle("agent1"))
	path := strings.Split(plain(t, s, "display-message", "-p", "#{socket_path}"), "\n")[0]
	plain(t, s, "set-option", "-s", "exit-empty", "off", ";", "kill-session", "-t", "=agent1")
	swept := make(chan error, 1)
	go func() { swept <- s.Sweep(t.Context()) }()
	testworld.Wait(t, "a look at the socket", func() bool { _, err := os.Stat(path + ".lock"); return err == nil })
	plain(t, s, "set-option", "-s", "exit-empty", "on")
	testworld.Equal(t, <-swept, nil)
	testworld.ErrorIs(t, testworld.Err(os.Lstat(path)), fs.ErrNotExist, "the socket is still there")
}
