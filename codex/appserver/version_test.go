package appserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/codex/appserver"
	"netsky/internal/testworld"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says, want string
		legacy     bool
	}{
		{"codex-cli 0.169.0\n", "0.169.0", false},
		{"codex-cli 0.154.0-alpha.2", "0.154.0", false},
		{"codex-cli 0.153.4", "0.153.4", true},
		{"codex-cli 0.9.0", "0.9.0", true},
		{"1.0.0", "1.0.0", false},
		{"codex-cli", "", false},
		{"", "", false},
		{strings.Repeat("error ", 100), "", false},
	} {
		v, err := appserver.ParseVersion(tt.says)
		if tt.want == "" {
			if err == nil || len(err.Error()) > 200 {
				t.Errorf("ParseVersion(%q) = %v, %v, want an error in short", tt.says, v, err)
			}
			continue
		}
		if err != nil || v.String() != tt.want || v.Legacy() != tt.legacy {
			t.Errorf("ParseVersion(%q) = %v, %v, legacy %v; want %s, legacy %v", tt.says, v, err, v.Legacy(), tt.want, tt.legacy)
		}
	}
}

// What npm puts on the PATH is a script; the program behind it is found.
func TestFind(t *testing.T) {
	t.Parallel()
	mustWrite := func(mode os.FileMode, text string, path ...string) string {
		file := filepath.Join(path...)
		testworld.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		testworld.Must(t, os.WriteFile(file, []byte(text), mode))
		return file
	}
	dir := t.TempDir()
	plain := mustWrite(0o700, "\x7fELF", dir, "plain", "codex")
	mustWrite(0o600, "x", dir, "notexecutable", "codex")
	install := func(root, native string) string {
		script := mustWrite(0o700, "#!/usr/bin/env node", dir, root, "lib/node_modules/@openai/codex/bin/codex.js")
		link := filepath.Join(dir, root, "bin", "codex")
		testworld.Must(t, os.MkdirAll(filepath.Dir(link), 0o700))
		testworld.Must(t, os.Symlink(script, link))
		if native != "" {
			mustWrite(0o700, "\x7fELF", dir, root, "lib/node_modules", native)
		}
		return link
	}
	const vendor = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
	install("global", "@openai/codex/node_modules/"+vendor)
	install("hoisted", vendor)
	broken := install("broken", "")
	for _, tt := range []struct{ path, want string }{
		{dir + "/nowhere:" + dir + "/notexecutable:relative:" + dir + "/plain", plain},
		{dir + "/global/bin:" + dir + "/plain", filepath.Join(dir, "global/lib/node_modules/@openai/codex/node_modules", vendor)},
		{dir + "/hoisted/bin", filepath.Join(dir, "hoisted/lib/node_modules", vendor)},
		{dir + "/broken/bin", broken},
	} {
		testworld.Equal(t, testworld.Got(appserver.Find(tt.path))(t), tt.want, "Find(%s)", tt.path)
	}
	testworld.ErrorIs(t, testworld.Err(appserver.Find(dir+"/notexecutable")), appserver.ErrMissing, "Find in vain")
}
