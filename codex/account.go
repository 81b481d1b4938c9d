package codex

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2"

	"netsky/agent"
	"netsky/bus/envelope"
)

// Account names the provider and the login that a launch of Codex would use, without a
// secret, and returns when its credentials were last changed. The name is "" if
// nobody is logged in, the time zero if it is not known.
func (r *Runtime) Account(l agent.Launch) (name string, changed time.Time) {
	name, changed, _ = readAccount(l.Env)
	return name, changed
}

// A login is an account, known as long as the files that name it do not change. It is safe
// for concurrent use.
type login struct {
	env []string

	mu      sync.Mutex // guards the fields below
	stamp   string
	name    string
	changed time.Time
}

// A loginState is what account has returned.
type loginState struct {
	name    string
	changed time.Time
}

// state is what account returns, for comparisons.
func (l *login) state() (s loginState) {
	s.name, s.changed = l.account()
	return s
}

// account returns what readAccount does, or did before a file was half written.
func (l *login) account() (name string, changed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stamp := l.files(); stamp != l.stamp {
		if name, changed, ok := readAccount(l.env); ok {
			l.name, l.changed, l.stamp = name, changed, stamp
		}
	}
	return l.name, l.changed
}

// files identifies the state of the files by which Codex chooses an account.
func (l *login) files() (stamp string) {
	for _, name := range []string{authFile, configFile} {
		if info, err := os.Stat(filepath.Join(codexHome(l.env), name)); err == nil {
			stamp += fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
		}
		stamp += "\n"
	}
	return stamp
}

const (
	authFile   = "auth.json"
	configFile = "config.toml"
)

func codexHome(env []string) string {
	if dir := getenv(env, "CODEX_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(getenv(env, "HOME"), ".codex")
}

// readAccount reads which account Codex would use, from its configuration and its
// credentials; ok is false if one of them is not valid now.
func readAccount(env []string) (name string, changed time.Time, ok bool) {
	dir := codexHome(env)
	var c struct {
		Provider  string `toml:"model_provider"`
		BaseURL   string `toml:"openai_base_url"`
		Store     string `toml:"cli_auth_credentials_store"`
		Providers map[string]struct {
			BaseURL string `toml:"base_url"`
			EnvKey  string `toml:"env_key"`
			Login   bool   `toml:"requires_openai_auth"`
		} `toml:"model_providers"`
	}
	data, configured := readFile(filepath.Join(dir, configFile))
	if toml.Unmarshal(data, &c) != nil { // Codex reports that
		return "", configured, false
	}
	at := ""
	p, own := c.Providers[c.Provider]
	switch {
	case own:
		at = cmp.Or(host(p.BaseURL), c.Provider)
	case c.Provider != "" && c.Provider != "openai":
		at = c.Provider
	default:
		p.Login, at = true, host(c.BaseURL)
	}
	who := ""
	if p.Login {
		data, changed = readFile(filepath.Join(dir, authFile))
		if who, ok = credentials(data); !ok && data != nil {
			return "", changed, false
		}
		if who == "" && changed.IsZero() && c.Store != "" && c.Store != "file" {
			who = "login in the keyring"
		}
		if who == "" {
			return "", changed, true
		}
	} else {
		who, changed = apiKey(getenv(env, p.EnvKey)), configured
	}
	name = "codex"
	if who != "" {
		name += " " + who
	}
	if at != "" {
		name += " at " + at
	}
	return envelope.Line(name, maxWords), changed, true
}

// credentials names who is logged in according to auth.json, "" if nobody is; ok is false
// if that is not JSON.
func credentials(data []byte) (who string, ok bool) {
	var a struct {
		Mode   string `json:"auth_mode"`
		Key    string `json:"OPENAI_API_KEY"`
		Tokens *struct {
			ID      string `json:"id_token"`
			Account string `json:"account_id"`
		} `json:"tokens"`
	}
	switch {
	case json.Unmarshal(data, &a) != nil:
		return "", false
	case a.Key != "" && (a.Tokens == nil || !strings.HasPrefix(a.Mode, "chatgpt")):
		return apiKey(a.Key), true
	case a.Tokens == nil:
		return "", true
	}
	// One person may have several accounts, and one account several people.
	who = strings.TrimSpace(email(a.Tokens.ID) + " " + a.Tokens.Account[:min(len(a.Tokens.Account), 8)])
	return cmp.Or(who, "login"), true
}

// email reads the address in an identity token, "" if there is none.
func email(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	body, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.DecodeString(body)
	var claims struct {
		Email string `json:"email"`
	}
	if err != nil || json.Unmarshal(data, &claims) != nil {
		return ""
	}
	return claims.Email
}

// apiKey names a key without revealing it.
func apiKey(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return "api key " + hex.EncodeToString(sum[:4])
}

// host is the part of a URL that holds no secret.
func host(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}

// readFile returns a small file and when it was changed; nothing if it can't be read.
func readFile(path string) (data []byte, changed time.Time) {
	f, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, time.Time{}
	}
	if data, err = io.ReadAll(io.LimitReader(f, maxState)); err != nil {
		return nil, time.Time{}
	}
	return data, info.ModTime()
}
