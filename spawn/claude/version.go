package claude

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrMissing: there is no Claude Code on the PATH.
var ErrMissing = errors.New("claude: not on the PATH")

// ErrOld: this Claude Code takes no settings file, or has no hook that says when
// a conversation begins. Without them nobody learns what it does.
var ErrOld = errors.New("older than 1.0.62")

// A Version is a release of Claude Code.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Before reports whether the release is older than another.
func (v Version) Before(w Version) bool {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch)) < 0
}

// ParseVersion reads a version at the beginning of a text: "2.1.329 (Claude
// Code)", as `claude --version` prints it.
func ParseVersion(s string) (Version, error) {
	var v Version
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	if n, _ := fmt.Sscanf(first, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch); n == 3 && v.Major >= 0 && v.Minor >= 0 && v.Patch >= 0 {
		return v, nil
	}
	if len(s) > 80 {
		s = s[:80]
	}
	return Version{}, fmt.Errorf("%q is no version of Claude Code", s)
}

// Find is the program that "claude" is on a PATH. Links are not resolved: what
// npm and the installer put there is the native program or a link to it, and an
// update replaces the link.
func Find(path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, "claude")
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", ErrMissing
}

// Probe asks a program which Claude Code it is.
func Probe(ctx context.Context, program string, env []string) (Version, error) {
	out, err := ask(ctx, patience, program, env, "/", "--version")
	if err != nil {
		return Version{}, err
	}
	v, err := ParseVersion(string(out))
	if err != nil {
		err = fmt.Errorf("%s --version: %w", program, err)
	}
	return v, err
}

// patience is how long Claude Code may take to answer a question. It takes
// 10 ms for its version and 0.2 s for its login on an idle machine.
const patience = 20 * time.Second

// ask runs the program for a word from it. With an error what it printed is
// returned too.
func ask(ctx context.Context, wait time.Duration, program string, env []string, dir string, args ...string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	cmd := exec.CommandContext(limited, program, args...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stderr, cmd.WaitDelay = env, dir, &stderr, time.Second
	out, err := cmd.Output()
	what := program + " " + strings.Join(args, " ") // there may be several
	switch {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, ctx.Err()
	case limited.Err() != nil:
		return out, fmt.Errorf("%s: no answer within %v", what, wait)
	}
	if words := firstLine(stderr.String()); words != "" {
		return out, fmt.Errorf("%s: %w: %s", what, err, words)
	}
	return out, fmt.Errorf("%s: %w", what, err)
}

// firstLine is what a program says in its first line, made fit to be shown.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
