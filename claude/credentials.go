// This file names the login with which a Claude Code would reach its vendor now: the
// provider and the person, key or project, and never a secret.
//
// It follows Claude Code's own order of credentials and reads its files; it runs no
// program and keeps nothing. A file that can't be read counts as missing, so that a name
// may be less exact or "", never wrong for want of a permission.

package claude

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/home"
	"netsky/internal/execx"
)

// A Login is where one Claude Code finds its credentials. Its fields are set before its
// first use; it is safe for concurrent use.
type Login struct {
	Env         []string // of the program
	Settings    []string // files whose variables and key helper apply, the strongest first
	Global      string   // .claude.json
	Credentials string   // .credentials.json, which does not exist everywhere

	mu    sync.Mutex
	files map[string]*file
}

// A file is what was read of one, and what it was then.
type file struct {
	size  int64
	time  time.Time
	words words
}

// words are what the files say about a login.
type words struct {
	APIKeyHelper string         `json:"apiKeyHelper"`
	Env          map[string]any `json:"env"`
	PrimaryKey   string         `json:"primaryApiKey"`
	Account      struct {
		Email string `json:"emailAddress"`
	} `json:"oauthAccount"`
	Keys struct {
		Rejected []string `json:"rejected"`
	} `json:"customApiKeyResponses"`
}

// maxFile limits the size of a file, in bytes: .claude.json grows with the projects that
// Claude Code has seen.
const maxFile = 64 << 20

// Account returns the login's name, "" if it is not known, and when its credentials were
// last changed, zero if that is not known: a key does not change, and on macOS a login is
// in the keychain. It reads only files that have changed since the last call. Nothing is
// known of the nil Login.
func (l *Login) Account() (name string, changed time.Time) {
	if l == nil {
		return "", time.Time{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	env, helper := slices.Clone(l.Env), ""
	for _, s := range slices.Backward(l.Settings) {
		w := l.read(s)
		for name, value := range w.Env {
			env = append(env, fmt.Sprintf("%s=%v", name, value))
		}
		helper = cmp.Or(w.APIKeyHelper, helper)
	}
	name, filed := l.name(env, helper)
	if filed || name == "" {
		if info, err := os.Stat(l.Credentials); err == nil {
			changed = info.ModTime()
		}
	}
	if name == "" {
		return "", changed
	}
	if host := Gateway(execx.Value(env, "ANTHROPIC_BASE_URL")); host != "" {
		name += " at " + host
	}
	return "claude " + name, changed
}

// clouds are the providers other than Anthropic, and the variable that names the account
// there, if there is one.
var clouds = []struct{ use, name, account string }{
	{"BEDROCK", "bedrock", "AWS_PROFILE"},
	{"VERTEX", "vertex", "ANTHROPIC_VERTEX_PROJECT_ID"},
	{"FOUNDRY", "foundry", "ANTHROPIC_FOUNDRY_RESOURCE"},
	{"MANTLE", "mantle", "AWS_PROFILE"},
	{"ANTHROPIC_AWS", "anthropic on aws", "AWS_PROFILE"},
	{"ANTHROPIC_GOOGLE_CLOUD", "anthropic on google cloud", "ANTHROPIC_VERTEX_PROJECT_ID"},
}

// Cloud names the provider in an environment if that is not Anthropic, and the account
// there; else it is "".
func Cloud(env []string) string {
	for _, c := range clouds {
		switch strings.ToLower(execx.Value(env, "CLAUDE_CODE_USE_"+c.use)) {
		case "1", "true", "yes", "on":
			return strings.TrimSpace(c.name + " " + printable(execx.Value(env, c.account)))
		}
	}
	return ""
}

// name returns the first login in Claude Code's order, and whether it is one that is made
// with /login, which changes its files.
func (l *Login) name(env []string, helper string) (name string, filed bool) {
	if c := Cloud(env); c != "" {
		return c, false
	}
	global := l.read(l.Global)
	key := execx.Value(env, "ANTHROPIC_API_KEY")
	if n := len(key); slices.Contains(global.Keys.Rejected, key[max(n-20, 0):]) {
		key = "" // its user has said no to it
	}
	switch token := execx.Value(env, "CLAUDE_CODE_OAUTH_TOKEN"); {
	case execx.Value(env, "ANTHROPIC_AUTH_TOKEN") != "":
		return "token " + keyDigest(execx.Value(env, "ANTHROPIC_AUTH_TOKEN")), false
	case key != "":
		return "api key " + keyDigest(key), false
	case helper != "":
		return "api key helper " + keyDigest(helper), false
	case token != "":
		return "token " + keyDigest(token), false
	case global.Account.Email != "":
		return printable(global.Account.Email), true
	case global.PrimaryKey != "":
		return "api key " + keyDigest(global.PrimaryKey), true
	}
	return "", false
}

// keyDigest stands for a secret.
func keyDigest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:4])
}

// Gateway returns the host of a base URL if it is not Anthropic's, else "".
func Gateway(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return ""
	}
	host := strings.ToLower(u.Host)
	if name := strings.ToLower(u.Hostname()); name == "anthropic.com" || strings.HasSuffix(name, ".anthropic.com") {
		return ""
	}
	return printable(host)
}

// printable keeps what may be part of a name or an address.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r > 0xffff {
			return -1
		}
		return r
	}, s[:min(len(s), 200)])
}

// read returns what a file says, or nothing if it can't be read.
func (l *Login) read(name string) words {
	info, err := os.Stat(name)
	if err != nil {
		return words{}
	}
	if f := l.files[name]; f != nil && f.size == info.Size() && f.time.Equal(info.ModTime()) {
		return f.words
	}
	data, err := home.ReadOwn(name, maxFile)
	if err != nil {
		return words{}
	}
	var w words
	if json.Unmarshal(data, &w) != nil {
		// Half written, perhaps: what it said before holds until the next call.
		if f := l.files[name]; f != nil {
			return f.words
		}
	}
	if l.files == nil {
		l.files = make(map[string]*file)
	}
	l.files[name] = &file{info.Size(), info.ModTime(), w}
	return w
}
