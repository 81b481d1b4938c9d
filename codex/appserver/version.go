package appserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/internal/advice"
	"netsky/internal/execx"
)

// ErrMissing is returned if there is no Codex on the PATH.
var ErrMissing = advice.With(errors.New("codex: not on the PATH"),
	"npm install -g @openai/codex installs it; `netsky up --type demo` starts agents without a model")

// ErrOld reports a Codex older than 0.154.0, which keeps no thread from one process to
// the next.
var ErrOld = errors.New("older than 0.154.0")

// Tested is the release that netsky is tested with; scripts/codex reads it here.
var Tested = execx.Version{0, 169, 0}

// A Version is a release of Codex.
type Version struct{ execx.Version }

// Legacy reports whether this Codex is driven through `codex mcp-server`: up to
// 0.153.4, the last that has it. Such a Codex cannot stay resident.
func (v Version) Legacy() bool { return v.Before(execx.Version{0, 154}) }

// ParseVersion reads a version at the end of a text: "codex-cli 0.169.0", as
// `codex --version` prints it.
func ParseVersion(s string) (Version, error) {
	fields := strings.Fields(s)
	if len(fields) > 0 {
		if v, ok := execx.ParseVersion(fields[len(fields)-1]); ok {
			return Version{v}, nil
		}
	}
	return Version{}, fmt.Errorf("codex: %.80q is not a version", s)
}

// Probe asks a program for its version. It names a CODEX_HOME that does not exist: in
// an existing one Codex would create files before it prints its version.
func Probe(ctx context.Context, file string, env []string) (Version, error) {
	out, err := execx.Question{
		Program: file, Args: []string{"--version"}, Env: append(slices.Clone(env), "CODEX_HOME=/dev/null/none"), Wait: 10 * time.Second,
	}.Ask(ctx)
	if err != nil {
		return Version{}, err
	}
	return ParseVersion(string(out))
}

// Find returns the program that "codex" is on a PATH. npm installs a script that takes
// 85 ms to start the native program; if that program is beside the script, Find returns
// it. The error matches ErrMissing if there is none.
func Find(path string) (string, error) {
	if file := execx.Find(path, "codex"); file != "" {
		return native(file), nil
	}
	return "", ErrMissing
}

// native returns the program behind npm's script, or the file itself.
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

// isProgram reports whether a file is a program for this system.
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
