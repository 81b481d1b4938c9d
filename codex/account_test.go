package codex_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/codex"
	"netsky/internal/testworld"
)

// An account is named by its login and its provider, the same for the launcher and the
// agent, and never by a secret.
func TestAccount(t *testing.T) {
	t.Parallel()
	const provider = "model_provider = \"p\"\n[model_providers.p]\nbase_url = \"https://user:word@models.example.com:8443/v1\"\n"
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"email":"me@example.com"}`)) + ".s3cret"
	tokens := fmt.Sprintf(`"tokens":{"id_token":%q,"access_token":"s3cret","account_id":"0a1b2c3d-4e5f"}`, token)
	for _, tt := range []struct {
		name, config, auth string
		env                []string
		want               string
		changed            string // the file that holds the credentials
	}{
		{name: "nobody"},
		{name: "plan", auth: `{"auth_mode":"chatgpt","OPENAI_API_KEY":null,` + tokens + `}`, want: "codex me@example.com 0a1b2c3d", changed: "auth.json"},
		{name: "plan with an old key", auth: `{"auth_mode":"chatgpt","OPENAI_API_KEY":"sk-s3cret",` + tokens + `}`, want: "codex me@example.com 0a1b2c3d", changed: "auth.json"},
		{name: "unreadable token", auth: `{"tokens":{"id_token":"s3cret"}}`, want: "codex login", changed: "auth.json"},
		{name: "key", auth: `{"OPENAI_API_KEY":"sk-s3cret"}`, want: "codex api key 7b2aaea8", changed: "auth.json"},
		{name: "logged out", auth: `{}`, changed: "auth.json"},
		{name: "half written", auth: `{"OPENAI`, changed: "auth.json"},
		{name: "keyring", config: "cli_auth_credentials_store = \"keyring\"\n", want: "codex login in the keyring"},
		{name: "other address", config: "openai_base_url = \"https://proxy.example.com/v1\"\n", auth: `{"OPENAI_API_KEY":"sk-s3cret"}`, want: "codex api key 7b2aaea8 at proxy.example.com", changed: "auth.json"},
		{name: "other provider", config: provider + "env_key = \"KEY\"\n", auth: `{"OPENAI_API_KEY":"x"}`, env: []string{"KEY=sk-s3cret"}, want: "codex api key 7b2aaea8 at models.example.com:8443", changed: "config.toml"},
		{name: "other provider with the login", config: provider + "requires_openai_auth = true\n", auth: `{"OPENAI_API_KEY":"sk-s3cret"}`, want: "codex api key 7b2aaea8 at models.example.com:8443", changed: "auth.json"},
		{name: "without a key", config: provider, want: "codex at models.example.com:8443", changed: "config.toml"},
		{name: "built-in", config: "model_provider = \"ollama\"\n", want: "codex at ollama", changed: "config.toml"},
		{name: "invalid", config: "model_provider = ", auth: `{"OPENAI_API_KEY":"x"}`, changed: "config.toml"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			dir := filepath.Join(home, ".codex")
			testworld.Must(t, os.Mkdir(dir, 0o700))
			env := append([]string{"HOME=" + home}, tt.env...)
			when := map[string]time.Time{"auth.json": time.Unix(1_700_000_000, 0), "config.toml": time.Unix(1_800_000_000, 0)}
			for file, text := range map[string]string{"auth.json": tt.auth, "config.toml": tt.config} {
				if text == "" {
					continue
				}
				path := filepath.Join(dir, file)
				testworld.Must(t, os.WriteFile(path, []byte(text), 0o600))
				testworld.Must(t, os.Chtimes(path, when[file], when[file]))
			}
			name, changed := new(codex.Runtime).Account(agent.Launch{Env: env})
			if name != tt.want || !changed.Equal(when[tt.changed]) {
				t.Errorf("Account = %q, %v, want %q, %v", name, changed, tt.want, when[tt.changed])
			}
			if strings.Contains(name, "s3cret") || strings.Contains(name, "word") {
				t.Errorf("%q contains a secret", name)
			}
		})
	}
}
