package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/claude"
	"netsky/internal/testworld"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	const (
		oauth  = `{"oauthAccount":{"emailAddress":"ann@example.org"},"numStartups":3,"customApiKeyResponses":{"rejected":["34567890123456789012"]}}`
		secret = "sk-ant-secret-1234567890123456789012"
	)
	for _, tt := range []struct {
		name, want    string
		env           []string
		global        string
		flag, project string // settings
		dated         bool
	}{
		{name: "nothing", dated: true},
		{name: "a login", global: oauth, want: "claude ann@example.org", dated: true},
		{name: "an elder key", global: `{"primaryApiKey":"k"}`, want: "claude api key 8254c329", dated: true},
		{name: "a key", env: []string{"ANTHROPIC_API_KEY=" + secret}, want: "claude api key *"},
		{name: "a key before a login", env: []string{"ANTHROPIC_API_KEY=other"}, global: oauth, want: "claude api key *"},
		{name: "a key that was refused", env: []string{"ANTHROPIC_API_KEY=" + secret[:16] + "34567890123456789012"}, global: oauth, want: "claude ann@example.org", dated: true},
		{name: "an empty key", env: []string{"ANTHROPIC_API_KEY="}, global: oauth, want: "claude ann@example.org", dated: true},
		{name: "a token", env: []string{"ANTHROPIC_AUTH_TOKEN=" + secret, "ANTHROPIC_API_KEY=k"}, want: "claude token *"},
		{name: "a subscription's token", env: []string{"CLAUDE_CODE_OAUTH_TOKEN=" + secret}, want: "claude token *"},
		{name: "a helper", flag: `{"apiKeyHelper":"/bin/key"}`, global: oauth, want: "claude api key helper *"},
		{name: "a key in settings", project: `{"env":{"ANTHROPIC_API_KEY":"k"}}`, want: "claude api key 8254c329"},
		{name: "the stronger settings", flag: `{"env":{"ANTHROPIC_API_KEY":"k"}}`, project: `{"env":{"ANTHROPIC_API_KEY":"l"}}`, want: "claude api key 8254c329"},
		{name: "a cloud", env: []string{"CLAUDE_CODE_USE_BEDROCK=1", "ANTHROPIC_API_KEY=k", "AWS_PROFILE=work"}, want: "claude bedrock work"},
		{name: "another cloud", env: []string{"CLAUDE_CODE_USE_VERTEX=true"}, want: "claude vertex"},
		{name: "a gateway", env: []string{"ANTHROPIC_BASE_URL=https://user:pass@Models.example.org:8443/v1", "ANTHROPIC_API_KEY=k"}, want: "claude api key 8254c329 at models.example.org:8443"},
		{name: "Anthropic's own", env: []string{"ANTHROPIC_BASE_URL=https://api.anthropic.com"}, global: oauth, want: "claude ann@example.org", dated: true},
		{name: "a damaged file", env: []string{"ANTHROPIC_API_KEY=k"}, global: `{"oauth`, want: "claude api key 8254c329"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := &claude.Login{
				Env: tt.env, Global: filepath.Join(dir, ".claude.json"), Credentials: filepath.Join(dir, ".credentials.json"),
				Settings: []string{filepath.Join(dir, "flag"), filepath.Join(dir, "project")},
			}
			for file, text := range map[string]string{l.Global: tt.global, l.Settings[0]: tt.flag, l.Settings[1]: tt.project, l.Credentials: secret} {
				if text != "" {
					mustWrite(t, file, text)
				}
			}
			got, changed := l.Account()
			if want, hashed := strings.CutSuffix(tt.want, "*"); hashed && len(got) == len(want)+8 && strings.HasPrefix(got, want) {
				tt.want = got
			}
			if got != tt.want || changed.IsZero() == tt.dated {
				t.Errorf("Account() = %q, %v, want %q", got, changed, tt.want)
			}
			if strings.Contains(got, "secret") || strings.Contains(got, "pass") {
				t.Errorf("Account() = %q tells a secret", got)
			}
		})
	}
}

// Another login is seen, and so is a new one of the same person.
func TestAccountChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &claude.Login{Global: filepath.Join(dir, ".claude.json"), Credentials: filepath.Join(dir, ".credentials.json")}
	expect := func(name string, at time.Time) {
		t.Helper()
		if got, changed := l.Account(); got != name || !changed.Equal(at) {
			t.Errorf("Account() = %q, %v, want %q, %v", got, changed, name, at)
		}
	}
	expect("", time.Time{})
	mustWrite(t, l.Global, `{"oauthAccount":{"emailAddress":"ann@example.org"}}`)
	expect("claude ann@example.org", time.Time{})
	for i, name := range []string{"ann", "bo", "bo"} {
		at := time.Unix(int64(1_700_000_000+i), 0)
		mustWrite(t, l.Global, `{"oauthAccount":{"emailAddress":"`+name+`@example.org"}}`)
		mustWrite(t, l.Credentials, "{}")
		testworld.Must(t, os.Chtimes(l.Credentials, at, at))
		expect("claude "+name+"@example.org", at)
	}
	mustWrite(t, l.Global, `{"oauth`) // is being written
	expect("claude bo@example.org", time.Unix(1_700_000_002, 0))
}

func mustWrite(t *testing.T, file, text string) {
	t.Helper()
	testworld.Must(t, os.WriteFile(file, []byte(text), 0o600))
}
