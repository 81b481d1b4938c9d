package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netsky/agent/program"
	"netsky/internal/advice"
)

// ErrLogin: Claude Code has nothing to show to a model's server.
var ErrLogin = advice.With(errors.New("claude: not logged in"),
	"run `claude` and /login, or set ANTHROPIC_API_KEY; `netsky up --type demo` starts agents without a model")

// login reports whether a start would find a login: in the environment, in the
// settings it is given, or else by Claude Code's own word.
func login(ctx context.Context, wait time.Duration, file string, v Version, env []string, dir string, settings object) error {
	if envLogin(env) || settingsLogin(settings) {
		return nil
	}
	if v.Before(firstAuth) {
		// It has no such question; the words would become a prompt.
		return fileLogin(env)
	}
	if len(settings) == 0 && neverUsed(env, dir) {
		// Asked, it would make ~/.claude.json and ~/.claude for its answer.
		return fmt.Errorf("%w (%s)", ErrLogin, configDir(env))
	}
	out, err := program.Question{
		Program: file, Args: []string{"auth", "status", "--json"}, Env: env, Dir: dir, Wait: wait,
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

// envLogin reports whether an environment holds what counts as a login: a key, a
// token, another provider, or a base URL of the user's own, behind which a
// gateway may ask for no key that we could see.
func envLogin(env []string) bool {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if program.Value(env, name) != "" {
			return true
		}
	}
	for _, provider := range []string{"BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD"} {
		if truthy(program.Value(env, "CLAUDE_CODE_USE_"+provider)) {
			return true
		}
	}
	return ownBase(program.Value(env, "ANTHROPIC_BASE_URL"))
}

// neverUsed reports whether Claude Code can't be logged in, as there is none of the
// places that it could have a login from. What is there and says nothing of a
// login counts as well: then Claude Code itself is asked.
func neverUsed(env []string, dir string) bool {
	if inKeychain || program.Value(env, "HOME") == "" {
		return false
	}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if name != "CLAUDE_CONFIG_DIR" && (strings.HasPrefix(name, "ANTHROPIC_") || strings.HasPrefix(name, "CLAUDE_")) {
			return false
		}
	}
	home := program.Value(env, "HOME")
	for _, file := range []string{
		globalConfig(env), configDir(env), filepath.Join(home, ".claude.json"), filepath.Join(home, ".claude"),
		filepath.Join(home, ".config", "anthropic"), filepath.Join(home, ".config", "claude"),
		filepath.Dir(managedSettings), filepath.Join(dir, ".claude"),
	} {
		if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

func ownBase(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	return host != "anthropic.com" && !strings.HasSuffix(host, ".anthropic.com")
}

// settingsLogin is envLogin for a settings file.
func settingsLogin(settings object) bool {
	var s struct {
		APIKeyHelper string         `json:"apiKeyHelper"`
		Env          map[string]any `json:"env"`
	}
	for name, to := range map[string]any{"apiKeyHelper": &s.APIKeyHelper, "env": &s.Env} {
		json.Unmarshal(settings[name], to) // what is of another type is no login
	}
	var env []string
	for name, value := range s.Env {
		env = append(env, fmt.Sprintf("%s=%v", name, value))
	}
	return s.APIKeyHelper != "" || envLogin(env)
}

// fileLogin looks for what an older Claude Code leaves when someone logs in. On
// macOS that may be in the keychain alone, so there it says nothing.
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
