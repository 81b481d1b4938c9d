// Package git runs the git program, and says where a repository is. It knows nothing of agents.
//
// A git that looks changes nothing and starts no program that the repository names but its filters;
// one that acts does what the owner's own git does, hooks included. Where an agent can write the
// configuration, neither starts a program that is named there (programs.go). Both are limited in time
// and in what they may print. A git that is killed leaves what git leaves: a lock file, which its own
// message names.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"netsky/internal/execx"
)

// A Dir is a directory in which git runs, by its real path.
type Dir struct {
	Path    string
	Ceiling string        // no repository is looked for in it or above; "" is the parent of Path
	Env     []string      // further variables
	Acts    bool          // what runs may change something
	Hooks   string        // where one that acts finds hooks; "" is where git does
	Doubted []string      // scopes of the configuration that an agent can write: no program is started that they name
	Reaches bool          // it may reach other repositories, though Doubted has Local
	Within  time.Duration // how long it may take; 0 is a minute
	Holds   []*os.File    // stay open until it ends, even if its caller ends before: a lock, say
}

// NoHooks is where there are no hooks.
const NoHooks = "/dev/null"

// An Error is git's own complaint.
type Error struct {
	Status int    // its exit status
	Said   string // the first line
}

func (e *Error) Error() string { return e.Said }

const (
	defaultTime = time.Minute
	maxList     = 32 << 20 // bytes
	maxComplain = 4096     // bytes
)

// List returns all that git prints, which may be 32 MiB.
func (d Dir) List(ctx context.Context, args ...string) (string, error) {
	out, err := d.Run(ctx, maxList, args...)
	if err == nil && len(out) >= maxList {
		err = errors.New("its list of files is too long")
	}
	return out, err
}

// First returns the first line, or field, of what git prints.
func (d Dir) First(ctx context.Context, args ...string) (string, error) {
	out, err := d.Run(ctx, 4096, args...)
	out, _, _ = strings.Cut(out, "\x00")
	out, _, _ = strings.Cut(out, "\n")
	return out, err
}

// Run returns what git prints, up to limit bytes. What git itself complains of is an [*Error].
func (d Dir) Run(ctx context.Context, limit int, args ...string) (string, error) {
	out, errs := &Head{Limit: limit}, &Head{Limit: maxComplain}
	err := d.Stream(ctx, nil, out, errs, args...)
	if ee := new(exec.ExitError); errors.As(err, &ee) {
		err = &Error{Status: ee.ExitCode(), Said: cmp.Or(complaint(errs.String()), err.Error())}
	}
	if err != nil {
		return "", err
	}
	return out.String(), nil
}

// complaint returns the line in which git, or a program that it runs, says what is wrong: the first that
// does not say what it does, or warns.
func complaint(text string) string {
	first := ""
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		first = cmp.Or(first, line)
		if !slices.ContainsFunc([]string{"Preparing worktree", "warning: ", "hint: "}, func(sign string) bool { return strings.HasPrefix(line, sign) }) {
			return line
		}
	}
	return first
}

// Stream runs git with these as its standard streams. If git fails, the error is an
// [*exec.ExitError].
func (d Dir) Stream(ctx context.Context, in io.Reader, out, errs io.Writer, args ...string) error {
	within := cmp.Or(d.Within, defaultTime)
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	flags := []string{"-c", "core.fsmonitor=false", "-C", d.Path}
	hooks := d.Hooks
	if !d.Acts {
		hooks = NoHooks
	}
	if hooks != "" {
		flags = append([]string{"-c", "core.hooksPath=" + hooks}, flags...)
	}
	env := d.environ()
	if len(d.Doubted) > 0 {
		over, err := d.harmless(ctx)
		if err != nil {
			return err
		}
		flags, env = append(flags, always...), append(env, over...)
	}
	cmd := exec.CommandContext(limited, "git", append(flags, args...)...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	cmd.ExtraFiles = d.Holds
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("git %s: no answer in %s", args[0], within)
	}
	return err
}

// Whoever commits in a repository can have it show other objects or parents than are there, and would so
// have something else checked than lands. Git warns of any file of grafts that it can open.
var asStored = []string{"GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=" + os.DevNull + "/none"}

// kept are the variables of the caller's that say who the owner is and how to reach other machines.
var kept = []string{"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}

func (d Dir) environ() []string {
	above := cmp.Or(d.Ceiling, filepath.Dir(d.Path))
	if real, err := filepath.EvalSymlinks(above); err == nil {
		above = real
	}
	env := append(execx.Without(os.Environ(), "GIT_*", "NETSKY_*", "AGENT_N"), "GIT_CEILING_DIRECTORIES="+above, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	env = append(env, asStored...)
	if !d.Acts {
		env = append(env, "GIT_OPTIONAL_LOCKS=0")
	}
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, d.Env...)
}

// A Head keeps the beginning of what is written to it. It has no other way to be filled, such as a
// buffer's ReadFrom, by which a program's output would pass the limit.
type Head struct {
	Limit int // bytes
	kept  []byte
}

func (h *Head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), max(0, h.Limit-len(h.kept)))]...)
	return len(p), nil
}

// Len returns how much was kept; Limit means that there may have been more.
func (h *Head) Len() int { return len(h.kept) }

func (h *Head) String() string { return string(h.kept) }

// Shown returns a file's name, quoted if it could pass for something else on a line.
func Shown(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
		return quoted
	}
	return name
}
