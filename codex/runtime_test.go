//go:build live

package codex_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/codex"
	"netsky/internal/testworld"
)

func TestRuntime(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	bin := filepath.Join(w.home.Root(), "bin")
	testworld.Must(t, os.Mkdir(bin, 0o700))
	r := &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	l := agent.Launch{Agent: agent.Infinity, Dir: w.dir, Env: append(w.env, "PATH="+bin)}
	testworld.ErrorIs(t, r.Check(w.ctx, l), codex.ErrMissing, "Check without a program")
	testworld.Must(t, os.Symlink(w.program, filepath.Join(bin, "codex")))
	r = &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	testworld.Equal(t, r.Check(w.ctx, l), nil, "Check")
	testworld.Must(t, os.WriteFile(w.home.Root()+".codex/config.toml", nil, 0o600))
	testworld.Equal(t, r.Check(w.ctx, l), nil, "what it knew")
	r = &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	testworld.ErrorIs(t, r.Check(w.ctx, l), codex.ErrLogin, "Check without a login")
	testworld.Equal(t, r.Prepare(w.ctx, &l), nil)
	testworld.Equal(t, strings.Join(l.Argv, " "), "/x/netsky codex agentinfinity --serve", "Argv")
	if want := "CODEX_CHANNEL_DIR=" + w.home.Path("channels/agent/agentinfinity"); !slices.Contains(l.Env, want) {
		t.Errorf("Env lacks %s", want)
	}
}

// A check leaves nothing behind where nobody has ever used Codex.
func TestCheckNeverUsed(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	home, bin := filepath.Join(w.dir, "nobody"), filepath.Join(w.dir, "bin")
	for _, dir := range []string{home, bin} {
		testworld.Must(t, os.Mkdir(dir, 0o700))
	}
	testworld.Must(t, os.Symlink(w.program, filepath.Join(bin, "codex")))
	// Below the directory for temporary files Codex makes less.
	l := agent.Launch{Agent: "agent1", Dir: w.dir, Env: []string{"HOME=" + home, "PATH=" + bin, "TMPDIR=/nowhere"}}
	left := func() (names []string) {
		list := testworld.Got(os.ReadDir(home))(t)
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	r := &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	testworld.ErrorIs(t, r.Check(w.ctx, l), codex.ErrLogin, "Check")
	testworld.EqualList(t, left(), nil, "left behind")
	testworld.Must(t, os.Mkdir(filepath.Join(home, ".codex"), 0o700))
	l.Env = append(l.Env, "OPENAI_API_KEY=sk-s3cret", "CODEX_API_KEY=sk-s3cret") // its app-server ignores both
	r = &codex.Runtime{Home: w.home, Binary: "/x/netsky"}
	if err := r.Check(w.ctx, l); !errors.Is(err, codex.ErrLogin) {
		t.Errorf("Check with a directory = %v, want %v by its own word", err, codex.ErrLogin)
	}
}
