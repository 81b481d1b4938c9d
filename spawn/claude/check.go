package claude

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/agent/program"
	"netsky/internal/advice"
)

// ErrRoot: Claude Code refuses to run without asking as root, unless the one who
// starts it has said that this is a sandbox.
var ErrRoot = advice.With(errors.New("claude: bypassPermissions is refused to root, and IS_SANDBOX is not 1"),
	"run netsky as another user; or set permission_mode = \"acceptEdits\" under [claude] in netsky.toml; or, if this machine is a\nsandbox with nothing to lose, IS_SANDBOX=1 in the environment, which netsky never sets by itself")

// Check says what stands in the way of a start: no Claude Code on the PATH
// (ErrMissing), one that is too old (ErrOld) or lacks what was asked for, no
// login (ErrLogin), root (ErrRoot), a settings file that can't be read, an MCP
// server that nobody knows. It starts Claude Code to ask it, once.
func (r *Runtime) Check(ctx context.Context, l agent.Launch) error {
	o := r.options(l.Agent)
	if err := o.validate(); err != nil {
		return err
	}
	file, err := Find(program.Value(l.Env, "PATH"))
	if err != nil {
		return err
	}
	v, err := r.version(ctx, file, l.Env)
	if err != nil {
		return err
	}
	if err := o.known(v); err != nil {
		return err
	}
	if err := root(l.Env, o.Mode); err != nil {
		return err
	}
	if err := r.files(l, o, v); err != nil {
		return err
	}
	return r.login(ctx, file, v, l, o)
}

// root is what Claude Code asks of itself before it bypasses its permissions.
func root(env []string, mode string) error {
	if mode == modeBypass && os.Geteuid() == 0 && program.Value(env, "IS_SANDBOX") != "1" && !truthy(program.Value(env, "CLAUDE_CODE_BUBBLEWRAP")) {
		return ErrRoot
	}
	return nil
}

// files looks through all that a start reads. What Claude Code reads by itself is
// looked at because it would ask in the pane what to do about a damaged one.
func (r *Runtime) files(l agent.Launch, o Options, v Version) error {
	for _, file := range []string{
		managedSettings,
		filepath.Join(configDir(l.Env), "settings.json"),
		filepath.Join(l.Dir, ".claude", "settings.json"),
		filepath.Join(l.Dir, ".claude", "settings.local.json"),
	} {
		all, err := readObject(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := refuse(file, all, o.Mode); err != nil {
			return err
		}
	}
	if _, err := readObject(globalConfig(l.Env)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := r.settings(o, v); err != nil {
		return err
	}
	_, err := r.mcpConfig(l, o)
	return err
}

// version is which Claude Code a program is.
func (r *Runtime) version(ctx context.Context, file string, env []string) (Version, error) {
	return r.versions.Get(ctx, file, func() (Version, error) {
		v, err := Probe(ctx, file, env)
		if err == nil && v.Before(firstDriven) {
			err = fmt.Errorf("update Claude Code: %v is %w", v, ErrOld)
		}
		return v, err
	})
}

// login is whether there is one, which is a matter of the environment, the
// directory and the settings.
func (r *Runtime) login(ctx context.Context, file string, v Version, l agent.Launch, o Options) error {
	settings := object{}
	if o.Settings != "" {
		var err error
		if settings, err = readObject(o.Settings); err != nil {
			return settingsError(err)
		}
	}
	about := slices.DeleteFunc(slices.Clone(l.Env), func(e string) bool {
		return !strings.HasPrefix(e, "ANTHROPIC_") && !strings.HasPrefix(e, "CLAUDE_") && !strings.HasPrefix(e, "HOME=")
	})
	slices.Sort(about)
	key := strings.Join(append([]string{file, l.Dir, o.Settings}, about...), "\x00")
	_, err := r.logins.Get(ctx, key, func() (struct{}, error) {
		return struct{}{}, login(ctx, r.patience, file, v, program.Clean(l.Env), l.Dir, settings)
	})
	return err
}
