package claude

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/execx"
)

// ErrRoot is returned when Claude Code would refuse to run without asking as root, because
// IS_SANDBOX is not set.
var ErrRoot = advice.With(errors.New("claude: refuses bypassPermissions as root unless IS_SANDBOX=1"),
	"run netsky as another user; or set permission_mode = \"acceptEdits\" under [claude] in netsky.toml; or, if this machine is a\nsandbox with nothing to lose, IS_SANDBOX=1 in the environment, which netsky never sets by itself")

// Check reports what prevents a start: no Claude Code on the PATH (ErrMissing), one that
// is too old (ErrOld) or lacks what was asked for, no login (ErrLogin), root (ErrRoot), an
// unreadable settings file, an unknown MCP server. It runs Claude Code once to ask it.
func (r *Runtime) Check(ctx context.Context, l agent.Launch) error {
	o := r.options(l.Agent)
	if err := o.validate(); err != nil {
		return err
	}
	file, err := Find(execx.Value(l.Env, "PATH"))
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

// root applies Claude Code's own check before it bypasses permissions.
func root(env []string, mode string) error {
	if mode == modeBypass && os.Geteuid() == 0 && execx.Value(env, "IS_SANDBOX") != "1" && !truthy(execx.Value(env, "CLAUDE_CODE_BUBBLEWRAP")) {
		return ErrRoot
	}
	return nil
}

// A source is a settings file that Claude Code reads by itself, or is started with.
type source struct {
	file string
	all  object

	managed    bool // by the machine's administrator
	repository bool // from the directory of the agent
}

// files checks all files that a start reads. Those that Claude Code reads by itself are
// included because it would ask in the pane about a damaged one.
func (r *Runtime) files(l agent.Launch, o Options, v Version) error {
	all, err := r.sources(l)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := s.refuse(o.Mode); err != nil {
			return err
		}
	}
	if _, err := readObject(globalConfig(l.Env)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := r.settings(o, v)
	if err != nil {
		return err
	}
	if _, err := r.mcpConfig(l, o); err != nil {
		return err
	}
	own, err := parseObject(o.Settings, data)
	if err != nil {
		return err
	}
	return r.hindered(l, o, append(all, source{file: o.Settings, all: own}))
}

// sources reads the settings files that Claude Code reads by itself.
func (r *Runtime) sources(l agent.Launch) (all []source, err error) {
	ruled := []string{filepath.Join(r.managedDir(), "managed-settings.json")}
	more, _ := filepath.Glob(filepath.Join(r.managedDir(), "managed-settings.d", "*.json")) // its only error is a bad pattern
	ruled = append(ruled, more...)
	for i, file := range append(ruled,
		filepath.Join(configDir(l.Env), "settings.json"),
		filepath.Join(l.Dir, ".claude", "settings.json"),
		filepath.Join(l.Dir, ".claude", "settings.local.json"),
	) {
		o, err := readObject(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, source{file, o, i < len(ruled), i > len(ruled)})
	}
	return all, nil
}

func (r *Runtime) managedDir() string { return cmp.Or(r.Managed, managedDir) }

// version returns which Claude Code a program is.
func (r *Runtime) version(ctx context.Context, file string, env []string) (Version, error) {
	return r.versions.Get(ctx, file, func() (Version, error) {
		v, err := Probe(ctx, file, env)
		if err == nil && v.Before(firstDriven) {
			err = fmt.Errorf("update Claude Code: %v is %w", v, ErrOld)
		}
		return v, err
	})
}

// login reports whether there is a login, which depends on the environment, the directory
// and the settings.
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
		return struct{}{}, login(ctx, file, v, execx.Clean(l.Env), l.Dir, settings)
	})
	return err
}
