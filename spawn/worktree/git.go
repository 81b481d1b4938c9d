package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"netsky/agent/program"
)

// git runs git in a directory. It never looks above that directory for a
// repository, starts no monitor or hook that the repository names, writes nothing,
// and asks nothing.
type git struct {
	ctx context.Context
	dir string
}

// hidden returns a changed file that git was told to treat as unchanged, or as not wanted
// in the worktree; "" if there is none.
func (g git) hidden() (string, error) {
	list, err := g.list("ls-files", "-v", "-z")
	if err != nil {
		return "", err
	}
	compared := 0
	for entry := range strings.SplitSeq(list, "\x00") {
		if len(entry) < 3 || entry[0] != 'S' && (entry[0] < 'a' || entry[0] > 'z') {
			continue
		}
		name := entry[2:]
		if _, err := os.Lstat(filepath.Join(g.dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue // as in a sparse checkout
		}
		if compared++; compared > maxHidden {
			return "", fmt.Errorf("more than %d files that git was told to ignore changes in", maxHidden)
		}
		added, err := g.first("rev-parse", "--verify", "--quiet", ":"+name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if now, err := g.first("hash-object", "--", name); err != nil || now != added {
			return name, nil
		}
	}
	return "", nil
}

// list returns all that git prints, up to a limit.
func (g git) list(args ...string) (string, error) {
	out, err := g.run(maxList, args...)
	if err == nil && len(out) >= maxList {
		err = errors.New("its list of files is too long")
	}
	return out, err
}

// path returns a path of git's, made absolute.
func (g git) path(what string) (string, error) {
	path, err := g.first("rev-parse", what)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(g.dir, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path, err
}

// first returns the first line, or field, of what git prints.
func (g git) first(args ...string) (string, error) {
	out, err := g.run(4096, args...)
	out, _, _ = strings.Cut(out, "\x00")
	out, _, _ = strings.Cut(out, "\n")
	return out, err
}

func (g git) run(limit int, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(g.ctx, gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C", g.dir}, args...)...)
	above := filepath.Dir(g.dir)
	if real, err := filepath.EvalSymlinks(above); err == nil {
		above = real
	}
	cmd.Env = append(program.Without(os.Environ(), "GIT_*"), "GIT_CEILING_DIRECTORIES="+above, "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, errs := &head{limit: limit}, &head{limit: 4096}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("git %s: no answer in %s", args[0], gitTime)
	}
	if err != nil {
		if said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n"); said != "" {
			err = errors.New(said)
		}
		return "", err
	}
	return out.String(), nil
}

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	limit int
}

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, h.limit-h.Len()))])
	return len(p), nil
}
