package claude

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/internal/advice"
	"netsky/internal/execx"
)

// ErrMissing is returned when there is no Claude Code on the PATH.
var ErrMissing = advice.With(errors.New("claude: not on the PATH"),
	"npm install -g @anthropic-ai/claude-code installs it; `netsky up --type demo` starts agents without a model")

// ErrOld is returned for a Claude Code that accepts no settings file, or has no hook for
// the start of a conversation. Without them netsky can't observe it.
var ErrOld = advice.With(errors.New("older than 1.0.62"),
	"`claude update` brings a newer one; `netsky up --type demo` starts agents without a model")

// Tested is the release that netsky is tested with; scripts/claude reads it here.
var Tested = Version{2, 1, 332}

// A Version is a release of Claude Code.
type Version = execx.Version

// ParseVersion reads a version at the beginning of a text: "2.1.329 (Claude Code)", as
// `claude --version` prints it.
func ParseVersion(s string) (Version, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	if v, ok := execx.ParseVersion(first); ok {
		return v, nil
	}
	return Version{}, fmt.Errorf("%.80q is not a version of Claude Code", s)
}

// Find returns the program that "claude" is on a PATH. Links are not resolved: npm and the
// installer put there the native program or a link to it, and an update replaces the link.
func Find(path string) (string, error) {
	if file := execx.Find(path, "claude"); file != "" {
		return file, nil
	}
	return "", ErrMissing
}

// Probe runs a program to find out which Claude Code it is.
func Probe(ctx context.Context, file string, env []string) (Version, error) {
	out, err := execx.Question{Program: file, Args: []string{"--version"}, Env: env, Dir: "/"}.Ask(ctx)
	if err != nil {
		return Version{}, err
	}
	v, err := ParseVersion(string(out))
	if err != nil {
		err = fmt.Errorf("%s --version: %w", file, err)
	}
	return v, err
}
