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
	"time"

	"netsky/agent"
)

// ErrRoot: Claude Code refuses to run without asking as root, unless the one who
// starts it has said that this is a sandbox.
var ErrRoot = errors.New("claude: bypassPermissions is refused to root, and IS_SANDBOX is not 1")

// A verdict is what a check found, for a while: many agents start at a time.
type verdict struct {
	version Version
	err     error
	when    time.Time
}

// believed is how long a verdict is good for.
const believed = 30 * time.Second

// Check says what stands in the way of a start: no Claude Code on the PATH
// (ErrMissing), one that is too old (ErrOld) or lacks what was asked for, no
// login (ErrLogin), root (ErrRoot), a settings file that can't be read, an MCP
// server that nobody knows. It starts Claude Code to ask it, and keeps the
// answer for 30 s.
func (r *Runtime) Check(ctx context.Context, l agent.Launch) error {
	o := r.options(l.Agent)
	if err := o.validate(); err != nil {
		return err
	}
	program, err := Find(getenv(l.Env, "PATH"))
	if err != nil {
		return err
	}
	v, err := r.version(ctx, program, l.Env)
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
	return r.login(ctx, program, v, l, o)
}

// root is what Claude Code asks of itself before it bypasses its permissions.
func root(env []string, mode string) error {
	if mode == modeBypass && os.Geteuid() == 0 && getenv(env, "IS_SANDBOX") != "1" && !truthy(getenv(env, "CLAUDE_CODE_BUBBLEWRAP")) {
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
func (r *Runtime) version(ctx context.Context, program string, env []string) (Version, error) {
	v := r.remember(ctx, "version\x00"+program, func() verdict {
		v, err := Probe(ctx, program, env)
		if err == nil && v.Before(firstDriven) {
			err = fmt.Errorf("update Claude Code: %v is %w", v, ErrOld)
		}
		return verdict{version: v, err: err}
	})
	return v.version, v.err
}

// login is whether there is one, which is a matter of the environment, the
// directory and the settings.
func (r *Runtime) login(ctx context.Context, program string, v Version, l agent.Launch, o Options) error {
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
	key := strings.Join(append([]string{"login", program, l.Dir, o.Settings}, about...), "\x00")
	return r.remember(ctx, key, func() verdict {
		return verdict{err: login(ctx, cmp.Or(r.patience, patience), program, v, cleaned(l.Env), l.Dir, settings)}
	}).err
}

// remember returns what find found for the key within the last 30 s, and else
// lets it look. Who comes while it does waits for it.
func (r *Runtime) remember(ctx context.Context, key string, find func() verdict) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.checked[key]; ok && time.Since(v.when) < believed {
		return v
	}
	v := find()
	if ctx.Err() != nil {
		return v // which says more of the caller than of the program
	}
	if r.checked == nil {
		r.checked = make(map[string]verdict)
	}
	v.when = time.Now()
	r.checked[key] = v
	return v
}
