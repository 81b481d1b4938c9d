package codex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"netsky/agent"
	"netsky/codex/appserver"
	"netsky/home"
	"netsky/internal/execx"
)

// A Runtime starts Codex agents: netsky's own sidecar in each pane. It serves one up,
// for which its findings about the program and the login are valid. It is safe for
// concurrent use.
type Runtime struct {
	Home   home.Dir
	Binary string // this netsky, absolute

	checked  execx.Answers[struct{}]
	versions execx.Answers[appserver.Version]
}

// Name returns "codex".
func (r *Runtime) Name() string { return "codex" }

// Check returns what prevents a start: no Codex on the PATH (ErrMissing), one that is
// too old (ErrOld), or no login (ErrLogin). It starts Codex to ask it, once for each
// environment, which takes 0.1 s: a key in the environment is no login for its app-server.
func (r *Runtime) Check(ctx context.Context, l agent.Launch) error {
	key := ""
	for _, name := range []string{"PATH", "HOME", "CODEX_HOME"} {
		key += execx.Value(l.Env, name) + "\x00"
	}
	_, err := r.checked.Get(ctx, key, func() (struct{}, error) { return struct{}{}, r.check(ctx, l) })
	return err
}

// version returns which Codex a launch would start, and where it is.
func (r *Runtime) version(ctx context.Context, env []string) (file string, v appserver.Version, err error) {
	if file, err = appserver.Find(execx.Value(env, "PATH")); err != nil {
		return "", v, err
	}
	v, err = r.versions.Get(ctx, file, func() (appserver.Version, error) { return appserver.Probe(ctx, file, env) })
	return file, v, err
}

func (r *Runtime) check(ctx context.Context, l agent.Launch) error {
	file, version, err := r.version(ctx, l.Env)
	if err != nil {
		return err
	}
	if version.Legacy() {
		return fmt.Errorf("update Codex: %v is %w", version, appserver.ErrOld)
	}
	if neverUsed(l) {
		return ErrLogin
	}
	ctx, cancel := context.WithTimeout(ctx, 2*grace)
	defer cancel()
	s, err := appserver.StartServer(ctx, appserver.ServerOptions{Program: file, Env: l.Env, Dir: l.Dir})
	if err != nil {
		return err
	}
	return errors.Join(s.Account(ctx), s.Close())
}

// neverUsed reports whether Codex can have neither a login nor a provider that needs
// none, because it has no directory and no configuration. Asking it would create that
// directory.
func neverUsed(l agent.Launch) bool {
	home := execx.Value(l.Env, "HOME")
	if home == "" || execx.Value(l.Env, "CODEX_HOME") != "" {
		return false // it does not create a directory that was configured
	}
	for _, file := range []string{filepath.Join(home, ".codex"), "/etc/codex", filepath.Join(l.Dir, ".codex")} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// Prepare completes the launch: the sidecar, and the location of its mailbox.
func (r *Runtime) Prepare(ctx context.Context, l *agent.Launch) error {
	if _, v, err := r.version(ctx, l.Env); err == nil { // else Check or the start itself reports that
		l.Untested = v.Untested("Codex", appserver.Tested)
	}
	l.Argv = []string{r.Binary, "codex", string(l.Agent), "--serve"}
	const channel = "CODEX_CHANNEL_DIR"
	l.Env = append(execx.Without(l.Env, channel), channel+"="+r.Home.Path(home.Mailbox(l.Agent)))
	return nil
}
