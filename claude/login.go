package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"netsky/internal/advice"
	"netsky/internal/execx"
)

// ErrLogin is returned when Claude Code has no credentials.
var ErrLogin = advice.With(errors.New("claude: not logged in"),
	"run `claude` and /login, or set ANTHROPIC_API_KEY; `netsky up --type demo` starts agents without a model")

// login reports whether a start would find a login: in the environment, in its settings,
// or else according to Claude Code itself.
func login(ctx context.Context, file string, v Version, env []string, dir string, settings object) error {
	if envLogin(env) || settingsLogin(settings) {
		return nil
	}
	if v.Before(firstAuth) {
		// This release has no such command; the words would become a prompt.
		return fileLogin(env)
	}
	if len(settings) == 0 && neverUsed(env, dir) {
		// The command would create ~/.claude.json and ~/.claude.
		return fmt.Errorf("%w (%s)", ErrLogin, configDir(env))
	}
	out, err := execx.Question{
		Program: file, Args: []string{"auth", "status", "--json"}, Env: env, Dir: dir,
	}.Ask(ctx)
	var status struct {
		LoggedIn *bool `json:"loggedIn"`
	}
	if json.Unmarshal(out, &status) == nil && status.LoggedIn != nil {
		if *status.LoggedIn {
			return nil
		}
		return fmt.Errorf("%w (%s)", ErrLogin, configDir(env))
	}
	if err == nil {
		err = fmt.Errorf("claude auth status: %.200q does not say whether there is a login", out)
	}
	return err
}

// envLogin reports whether an environment holds something that counts as a login: a key, a
// token, another provider, or a base URL of the user's, where a gateway may require no key
// that netsky could see.
func envLogin(env []string) bool {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if execx.Value(env, name) != "" {
			return true
		}
	}
	return Cloud(env) != "" || Gateway(execx.Value(env, "ANTHROPIC_BASE_URL")) != ""
}

// neverUsed reports whether Claude Code can't be logged in, as none of the places that
// could hold a login exists. A place that exists without naming a login counts as
// existing: then Claude Code itself is asked.
func neverUsed(env []string, dir string) bool {
	if inKeychain || execx.Value(env, "HOME") == "" {
		return false
	}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if name != "CLAUDE_CONFIG_DIR" && (strings.HasPrefix(name, "ANTHROPIC_") || strings.HasPrefix(name, "CLAUDE_")) {
			return false
		}
	}
	home := execx.Value(env, "HOME")
	for _, file := range []string{
		globalConfig(env), configDir(env), filepath.Join(home, ".claude.json"), filepath.Join(home, ".claude"),
		filepath.Join(home, ".config", "anthropic"), filepath.Join(home, ".config", "claude"),
		managedDir, filepath.Join(dir, ".claude"),
	} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// settingsLogin is envLogin for a settings file.
func settingsLogin(settings object) bool {
	var s struct {
		APIKeyHelper string         `json:"apiKeyHelper"`
		Env          map[string]any `json:"env"`
	}
	for name, to := range map[string]any{"apiKeyHelper": &s.APIKeyHelper, "env": &s.Env} {
		json.Unmarshal(settings[name], to) // a value of another type is no login
	}
	var env []string
	for name, value := range s.Env {
		env = append(env, fmt.Sprintf("%s=%v", name, value))
	}
	return s.APIKeyHelper != "" || envLogin(env)
}

// fileLogin looks for what an older Claude Code leaves after a login. On macOS that may be
// in the keychain alone, so there it finds nothing.
func fileLogin(env []string) error {
	if _, err := os.Stat(filepath.Join(configDir(env), ".credentials.json")); err == nil || inKeychain {
		return nil
	}
	global, err := readObject(globalConfig(env))
	if err == nil && (global["primaryApiKey"] != nil || global["oauthAccount"] != nil) {
		return nil
	}
	return fmt.Errorf("%w (%s)", ErrLogin, configDir(env))
}

// loginOf returns where Claude Code with an environment, in a directory, finds its
// credentials; settings is the file that it is started with.
func loginOf(env []string, dir, settings string) *Login {
	config := configDir(env)
	return &Login{
		Env: env, Global: globalConfig(env), Credentials: filepath.Join(config, ".credentials.json"),
		Settings: []string{
			settings, filepath.Join(dir, ".claude", "settings.local.json"), filepath.Join(dir, ".claude", "settings.json"),
			filepath.Join(config, "settings.json"),
		},
	}
}
