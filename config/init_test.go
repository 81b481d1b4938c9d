package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// Whatever is in a netsky.toml, the completed file means the same, keeps every line, has every key of
// the sample once, and is complete.
func TestComplete(t *testing.T) {
	for _, have := range []string{
		"", "\n", string(Sample), "# mine\n", "[claude]\npermission_mode = \"manual\"",
		"\n[codex]\nsandbox = \"read-only\"\napproval = \"untrusted\"\n\n\n[work] # where\n  check   = \"make\"\n\n# an end\n",
		"[agents]\n#clones = 3\n[agents.1]\nruntime = \"demo\"\n[runtime.mine]\ncommand = [\"x\"]\n[price.\"m\"]\ninput = 1.0\noutput = 2.0\n",
		strings.Replace(string(Sample), "# check = \"\"", "check = \"go test\"", 1),
	} {
		full := complete(have)
		before, err := Parse([]byte(have))
		after, err2 := Parse([]byte(full))
		if err != nil || err2 != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q: %v, %v, or another meaning:\n%s", have, err, err2, full)
		}
		at := 0
		for line := range strings.SplitSeq(strings.TrimSpace(have), "\n") {
			i := strings.Index(full[at:], line)
			if i < 0 {
				t.Errorf("%q: %q is lost or moved:\n%s", have, line, full)
				break
			}
			at += i + len(line)
		}
		testworld.Equal(t, complete(full), full, "%q: a second time adds", have)
		for _, key := range []string{"setup", "permission_mode", "sandbox", "clones", "listen", "day_tokens"} {
			if n := strings.Count(full, "\n"+key+" = ") + strings.Count(full, "\n# "+key+" = ") + strings.Count(full, "\n#"+key+" = ") + strings.Count(full, "  "+key+"   = "); n != 1 {
				t.Errorf("%q: %s is there %d times:\n%s", have, key, n, full)
			}
		}
	}
}

// TestWarrantWrite: the answer is in the file, and what else is there stays; where it
// would not be read as said, nothing is written.
func TestWarrantWrite(t *testing.T) {
	claude, codex := Warrants()[0], Warrants()[1]
	for _, tt := range []struct {
		name, before string
		w            Warrant
		want         string // "" is a refusal
	}{
		{"no file", "", claude, "\n[claude]\npermission_mode = \"acceptEdits\"\ncommit_and_check = \"allow\"\n"},
		{"an empty value gives way", "[claude] # mine\npermission_mode = \"\"\nmodel = \"m\"\n", claude, "[claude] # mine\npermission_mode = \"acceptEdits\"\ncommit_and_check = \"allow\"\nmodel = \"m\"\n"},
		{"no newline at the end", "[bus]\nkeep = \"1h\"", codex, "[bus]\nkeep = \"1h\"\n\n[codex]\nsandbox = \"workspace-write\"\napproval = \"on-request\"\ncommit_and_check = \"allow\"\n"},
		{"a table in a text", "[owner]\nname = \"\"\"\n[claude]\n\"\"\"\n", claude, ""},
		{"an inline table", "claude = {model = \"m\"}\n", claude, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := home.At(filepath.Join(t.TempDir(), "h"))
			testworld.Must(t, err)
			testworld.Got(h.Make())(t)
			file := h.Path(home.ConfigFile)
			testworld.Must(t, os.WriteFile(file, []byte(tt.before), 0o600))
			err = tt.w.Write(h, tt.w.Modes[1])
			got := testworld.Got(os.ReadFile(file))(t)
			if tt.want == "" {
				if err == nil || !strings.Contains(err.Error(), "set it by hand") || string(got) != tt.before {
					t.Errorf("Write = %v, file %q", err, got)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Errorf("Write = %v, file %q, want %q", err, got, tt.want)
			}
			if c, _, err := Load(h); err != nil || !tt.w.Given(c) || c.May(tt.w.Runtime) != "may "+mayEdit {
				t.Errorf("it is read as %q, %v", c.May(tt.w.Runtime), err)
			}
		})
	}
	old, err := Parse([]byte("[claude]\npermission_mode = \"acceptEdits\"\n[codex]\nsandbox = \"workspace-write\"\napproval = \"on-request\"\ncommit_and_check = \"ask\"\n"))
	if err != nil || !claude.Given(old) || !codex.Given(old) || old.May("claude") != "may "+mayEditOnly || old.May("codex") != "may "+mayEditOnly {
		t.Errorf("an answer of before: %q, %q, %v", old.May("claude"), old.May("codex"), err)
	}
	testworld.Fails(t, testworld.Err(Parse([]byte("[codex]\ncommit_and_check = \"yes\"\n"))), "", "another word is taken")
	if c := Default(); claude.Given(c) || codex.Given(c) {
		t.Error("without an answer a warrant is given")
	}
}
