package tmux_test

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/tmux"
)

// newServer is a server on a socket of its own, ended with the test.
func newServer(tb testing.TB, tags ...string) *tmux.Server {
	tb.Helper()
	s := &tmux.Server{Socket: "test-" + rand.Text()[:10], Tags: tags}
	tb.Cleanup(func() { mustStop(tb, s) })
	return s
}

func mustStop(tb testing.TB, s *tmux.Server) {
	tb.Helper()
	testworld.Equal(tb, s.Stop(context.Background()), nil, "Stop()")
}

func mustStart(tb testing.TB, s *tmux.Server, list ...tmux.Session) []tmux.Pane {
	tb.Helper()
	panes, err := s.Start(tb.Context(), nil, list)
	testworld.Must(tb, err, "Start()")
	return panes
}

func mustPanes(tb testing.TB, s *tmux.Server) []tmux.Pane {
	tb.Helper()
	panes, err := s.Panes(tb.Context())
	testworld.Must(tb, err, "Panes()")
	return panes
}

// idle is a session whose program does nothing.
func idle(name string) tmux.Session {
	return tmux.Session{Name: name, Command: "exec sleep 1000"}
}

func names(panes []tmux.Pane) []string {
	var list []string
	for _, p := range panes {
		list = append(list, p.Session)
	}
	slices.Sort(list)
	return list
}

func find(tb testing.TB, panes []tmux.Pane, session string) tmux.Pane {
	tb.Helper()
	for _, p := range panes {
		if p.Session == session {
			return p
		}
	}
	tb.Fatalf("no session %s among %v", session, names(panes))
	return tmux.Pane{}
}

// plain runs one tmux command against the server, as a person would.
func plain(tb testing.TB, s *tmux.Server, args ...string) string {
	tb.Helper()
	out, err := plainCommand(s, args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func serverPID(tb testing.TB, s *tmux.Server) int {
	tb.Helper()
	return testworld.Got(strconv.Atoi(plain(tb, s, "display-message", "-p", "#{pid}")))(tb)
}

func mustRead(tb testing.TB, path string) string {
	tb.Helper()
	data := testworld.Got(os.ReadFile(path))(tb)
	return string(data)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	got, err := new(tmux.Server).Version(t.Context())
	if err != nil || got == "" || strings.Contains(got, "tmux") {
		t.Errorf("Version() = %q, %v, want a bare version", got, err)
	}
	none := &tmux.Server{Env: []string{"PATH=" + t.TempDir()}}
	testworld.Fails(t, testworld.Err(none.Version(t.Context())), "no such program", "an error that says so")
}

func TestArgv(t *testing.T) {
	t.Setenv("TMUX", "/tmp/x,1,0")
	t.Setenv("TMUX_PANE", "%1")
	for _, tt := range []struct {
		server *tmux.Server
		want   []string
	}{
		{&tmux.Server{}, []string{"-f", "/dev/null", "-L", "default", "attach"}},
		{&tmux.Server{Socket: "a", Conf: "/c"}, []string{"-f", "/c", "-L", "a", "attach"}},
		{&tmux.Server{Socket: "/s/a"}, []string{"-f", "/dev/null", "-S", "/s/a", "attach"}},
	} {
		got := tt.server.Argv("attach")
		if !filepath.IsAbs(got[0]) || !slices.Equal(got[1:], tt.want) {
			t.Errorf("Argv() = %q, want an absolute path and %q", got, tt.want)
		}
		for _, v := range tt.server.Environ() {
			if strings.HasPrefix(v, "TMUX") {
				t.Errorf("Environ() has %s", v)
			}
		}
	}
}
