// Package command is the runtime for the user's own commands: [runtime.NAME] in
// netsky.toml. Such a command is started without a shell, and netsky knows nothing
// about it but its pane.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/internal/execx"
	"netsky/spawn"
)

// A Runtime runs one command.
type Runtime struct {
	name    string
	command []string
}

var _ spawn.Silent = Runtime{}

// New returns the runtime for [runtime.NAME].
func New(name string, command []string) Runtime { return Runtime{name, command} }

// Name returns the table's name.
func (r Runtime) Name() string { return r.name }

// Silent reports that such a program reports nothing and takes no mail by itself.
func (Runtime) Silent() {}

// Check returns what prevents the command from starting.
func (r Runtime) Check(_ context.Context, l agent.Launch) error {
	_, err := r.program(l)
	return err
}

// Prepare puts the command into the launch.
func (r Runtime) Prepare(_ context.Context, l *agent.Launch) error {
	program, err := r.program(*l)
	if err != nil {
		return err
	}
	l.Argv = append([]string{program}, r.command[1:]...)
	return nil
}

// program returns the command's first word as an absolute path: found in the agent's
// PATH, or, if it has a slash, relative to its home or its directory.
func (r Runtime) program(l agent.Launch) (string, error) {
	if err := CheckTable(r.name, r.command); err != nil {
		return "", err
	}
	word := r.command[0]
	path := word
	switch rest, home := strings.CutPrefix(word, "~/"); {
	case home:
		path = filepath.Join(execx.Value(l.Env, "HOME"), rest)
	case !strings.Contains(word, "/"):
		for _, dir := range filepath.SplitList(execx.Value(l.Env, "PATH")) {
			if path := filepath.Join(dir, word); filepath.IsAbs(path) && executable(path) == nil {
				return path, nil
			}
		}
		return "", fmt.Errorf("runtime.%s: %q: no such program in PATH", r.name, word)
	case !filepath.IsAbs(word):
		path = filepath.Join(l.Dir, word)
	}
	if err := executable(path); err != nil {
		return "", fmt.Errorf("runtime.%s: program %s: %v", r.name, path, err) // not wrapped: its advice is about other files
	}
	return path, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		var p *os.PathError
		if errors.As(err, &p) {
			return p.Err
		}
		return err
	case info.IsDir():
		return unix.EISDIR
	}
	return unix.Access(path, unix.X_OK)
}

// netskys are the names of runtimes that netsky.toml can't give to a command.
var netskys = []string{"auto", "claude", "codex", "demo"}

// isOwnName reports whether a name matches ^[a-z0-9][a-z0-9_-]{0,31}$; compiling that
// would slow every process.
func isOwnName(name string) bool {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= 32 && strings.Contains(first, name[:1]) && strings.Trim(name, first+"-_") == ""
}

// CheckTable reports what is wrong with a table [runtime.NAME].
func CheckTable(name string, command []string) error {
	switch {
	case slices.Contains(netskys, name):
		return fmt.Errorf("runtime.%s: netsky has a built-in runtime of that name", name)
	case !isOwnName(name):
		return fmt.Errorf("runtime.%s: a name has at most 32 characters of a-z, 0-9, - and _", name)
	case len(command) == 0 || command[0] == "":
		return fmt.Errorf("runtime.%s: no command", name)
	}
	for _, word := range command {
		if strings.ContainsRune(word, 0) {
			return fmt.Errorf("runtime.%s: command: %q contains a NUL", name, word)
		}
	}
	return nil
}
