package config

import (
	"reflect"
	"strings"
	"testing"

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
		for _, key := range []string{"check", "permission_mode", "sandbox", "clones", "listen", "day_tokens"} {
			if n := strings.Count(full, "\n"+key+" = ") + strings.Count(full, "\n# "+key+" = ") + strings.Count(full, "\n#"+key+" = ") + strings.Count(full, "  "+key+"   = "); n != 1 {
				t.Errorf("%q: %s is there %d times:\n%s", have, key, n, full)
			}
		}
	}
}
