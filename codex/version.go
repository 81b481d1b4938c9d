package codex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ErrMissing: there is no Codex on the PATH.
var ErrMissing = errors.New("codex: not on the PATH")

// ErrOld: this Codex is older than 0.154.0 and keeps no thread from one process
// to the next.
var ErrOld = errors.New("older than 0.154.0")

// A Version is a release of Codex.
type Version struct{ Major, Minor, Patch int }

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Legacy says whether this Codex is driven through `codex mcp-server`: up to
// 0.153.4, the last that has it. Such a Codex cannot stay resident.
func (v Version) Legacy() bool { return v.Major == 0 && v.Minor <= 153 }

// ParseVersion reads a version at the end of a text: "codex-cli 0.169.0", as
// `codex --version` prints it.
func ParseVersion(s string) (Version, error) {
	var v Version
	fields := strings.Fields(s)
	if len(fields) > 0 {
		if n, _ := fmt.Sscanf(fields[len(fields)-1], "%d.%d.%d", &v.Major, &v.Minor, &v.Patch); n == 3 {
			return v, nil
		}
	}
	if len(s) > 80 {
		s = s[:80]
	}
	return Version{}, fmt.Errorf("codex: %q is no version", s)
}

// Probe asks a program which Codex it is. It names no CODEX_HOME that exists:
// Codex would make it, and files there, before it says its version.
func Probe(ctx context.Context, program string, env []string) (Version, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	var stderr tail
	cmd.Env = append(slices.Clone(env), "CODEX_HOME=/dev/null/none")
	cmd.Stderr, cmd.WaitDelay = &stderr, time.Second
	out, err := cmd.Output()
	if err != nil {
		if words := stderr.String(); words != "" {
			return Version{}, fmt.Errorf("codex --version: %w: %s", err, words)
		}
		return Version{}, fmt.Errorf("codex --version: %w", err)
	}
	return ParseVersion(string(out))
}

// Find is the program that "codex" is on a PATH. What npm puts there is a script
// that takes 85 ms to start the native program; where the program lies beside
// it, that is the answer. The error matches ErrMissing if there is none.
func Find(path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, "codex")
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			continue
		}
		if err != nil {
			continue // a directory of the PATH that we may not look into
		}
		return native(file), nil
	}
	return "", ErrMissing
}

// native is the program behind npm's script, or the file itself.
func native(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return file
	}
	script, ok := strings.CutSuffix(real, filepath.FromSlash("/@openai/codex/bin/codex.js"))
	if !ok {
		return file
	}
	for _, modules := range []string{filepath.Join(script, "@openai", "codex", "node_modules"), script} {
		found, _ := filepath.Glob(filepath.Join(modules, "@openai", "codex-*", "vendor", "*", "bin", "codex"))
		if len(found) == 1 && isProgram(found[0]) {
			return found[0]
		}
	}
	return file
}

// isProgram says whether a file is a program of this system.
func isProgram(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := f.Read(magic); err != nil {
		return false
	}
	return bytes.Equal(magic, []byte("\x7fELF")) || bytes.Equal(magic, []byte("\xcf\xfa\xed\xfe"))
}
