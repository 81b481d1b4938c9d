package execx_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/internal/execx"
	"netsky/internal/testworld"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a/tool": 0o600, "b/tool": 0o700, "c/tool": 0o700} {
		file := filepath.Join(dir, name)
		testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		testworld.Must(t, os.WriteFile(file, nil, mode))
	}
	testworld.Must(t, os.MkdirAll(filepath.Join(dir, "d/tool"), 0o700))
	path := strings.Join([]string{"", "b", dir + "/none", dir + "/d", dir + "/a", dir + "/b", dir + "/c"}, ":")
	testworld.Equal(t, execx.Find(path, "tool"), dir+"/b/tool", "Find")
	testworld.Equal(t, execx.Find(dir+"/a:"+dir+"/d", "tool"), "", "Find")
}

func sh(script string) execx.Question {
	return execx.Question{Program: "/bin/sh", Args: []string{"-c", script}, Dir: "/", Wait: 30 * time.Second}
}

func TestAsk(t *testing.T) {
	out, err := sh(`echo 1.2.3; echo "$X" >&2`).Ask(t.Context())
	if err != nil || string(out) != "1.2.3\n" {
		t.Errorf("Ask = %q, %v", out, err)
	}
	out, err = sh(`echo half; printf 'no\033[31m good\nat all\n' >&2; exit 3`).Ask(t.Context())
	if string(out) != "half\n" || err == nil || !strings.HasSuffix(err.Error(), ": exit status 3: no[31m good") {
		t.Errorf("Ask = %q, %v", out, err)
	}
	// What never ends is cut off, in bytes and in time.
	q := sh(`while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done`)
	q.Wait = 200 * time.Millisecond
	if out, err = q.Ask(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "no answer within 200ms") || len(out) > 64<<10 {
		t.Errorf("Ask = %d bytes, %v", len(out), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sh(`sleep 1000`).Ask(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "sleep 1000") {
		t.Errorf("Ask = %v, want the caller's", err)
	}
}

func TestVersion(t *testing.T) {
	for word, want := range map[string]string{"2.1.329": "2.1.329", "0.154.0-alpha": "0.154.0", "1.2": "", "x": "", "-1.2.3": "", "": ""} {
		v, ok := execx.ParseVersion(word)
		if ok != (want != "") || ok && v.String() != want {
			t.Errorf("ParseVersion(%q) = %v, %v, want %q", word, v, ok, want)
		}
	}
	if v := (execx.Version{1, 10}); v.Before(execx.Version{1, 9, 9}) || !v.Before(execx.Version{2}) {
		t.Error("Before compares words")
	}
}

// A program is asked once, also if it refuses, but what the caller has broken off is
// asked again.
func TestAnswers(t *testing.T) {
	var a execx.Answers[int]
	asked, refusal := 0, errors.New("no")
	get := func(ctx context.Context) (int, error) {
		return a.Get(ctx, "key", func() (int, error) { asked++; return asked, refusal })
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, _ := get(ended); n != 1 {
		t.Errorf("Get = %d, want 1", n)
	}
	for range 3 {
		if n, err := get(t.Context()); n != 2 || !errors.Is(err, refusal) {
			t.Errorf("Get = %d, %v, want 2 and the refusal", n, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := []string{
		"A=1", "A=2", "MINE=yes", "CLAUDE_CODE_OAUTH_TOKEN=k", "CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CONFIG_DIR=/c", "CODEX_HOME=/x", "OPENAI_API_KEY=o",
		"CLAUDECODE=1", "CLAUDE_CODE_SESSION_ID=s", "CLAUDE_CODE_MESSAGING_TOKEN=m", "CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS=l", "CLAUDE_PID=1",
		"CODEX_THREAD_ID=t", "CODEX_SESSION_ID=t", "CODEX_CI=1", "AI_AGENT=x",
		"TMUX=/t", "TMUX_PANE=%1", "NETSKY_START=s", "AGENT_N=1", "_=/bin/x", "NETSKY_HOME=/h",
	}
	testworld.Equal(t, execx.Value(env, "A"), "2", "the last")
	settings := env[:8]
	if got, want := execx.Clean(env), slices.Concat(settings, env[17:]); !slices.Equal(got, want) {
		t.Errorf("Clean = %q, want %q", got, want)
	}
	if got, want := execx.Inherited(env), append(slices.Clone(settings), "NETSKY_HOME=/h"); !slices.Equal(got, want) {
		t.Errorf("Inherited = %q, want %q", got, want)
	}
	testworld.Equal(t, env[8], "CLAUDECODE=1", "the caller's list was changed")
}
