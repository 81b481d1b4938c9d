package cli_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"netsky/internal/testworld"
)

// Every netsky initialises every package, also an agent's hook and its keeper. So ours make tables and
// regular expressions only once they are used.
func TestStart(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("netsky", "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out := testworld.Got(cmd.CombinedOutput())(t)
	all := regexp.MustCompile(`(?m)^init (netsky/\S+) .* (\d+) bytes`).FindAllSubmatch(out, -1)
	if len(all) == 0 {
		t.Fatalf("no package of ours is initialised:\n%s", out)
	}
	for _, m := range all {
		if n, _ := strconv.Atoi(string(m[2])); n > 32<<10 {
			t.Errorf("%s: allocates %d bytes before main runs; make it when it is first used", m[1], n)
		}
	}
}
