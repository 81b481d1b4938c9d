package cli_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// eachGo calls do with each line of our Go files, the tests' or the others, that names tmux or
// a place for temporary files.
func eachGo(t *testing.T, tests bool, do func(file string, n int, line string)) {
	t.Helper()
	testworld.Must(t, filepath.WalkDir("..", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") != tests {
			return err
		}
		data, err := os.ReadFile(file)
		for i, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, "tmux") || strings.Contains(line, "Temp") || strings.Contains(line, "tmp") {
				do(strings.TrimPrefix(file, "../"), i+1, line)
			}
		}
		return err
	}))
}

// Only the package tmux runs tmux, so that no call can forget which server it is for; and
// nothing that has to last is kept where the system tidies up.
func TestOnlyTmuxRunsTmux(t *testing.T) {
	t.Parallel()
	runs := regexp.MustCompile(`(exec\.Command(Context)?\((ctx, )?|execx\.(Find|Ask)\(.*)"tmux"`)
	temp := regexp.MustCompile(`os\.TempDir\(|os\.(MkdirTemp|CreateTemp)\(""|"/(var/)?tmp`)
	may := map[string]bool{
		"tmux/server.go":              true, // where tmux itself puts the sockets
		"link/ssh/kept.go":            true, // for sockets, where the home's path is too long
		"internal/chaos/throwaway.go": true, // its home is removed with it
		"cli/doctor/machine.go":       true, // asks for the version
		"work/tree/attributes.go":     true, // for the time of one merge
		"fleet/bridge/convert.go":     true, // for the time of one conversion
		"daemon/update/draft.go":      true, // while an update is prepared
		"fleet/update.go":             true, // whether there is room for that
	}
	eachGo(t, false, func(file string, n int, line string) {
		if strings.HasPrefix(file, "internal/") || may[file] {
			return
		}
		if runs.MatchString(line) || temp.MatchString(line) {
			t.Errorf("%s:%d: %s", file, n, strings.TrimSpace(line))
		}
	})
}

// A test that runs tmux names a socket of its own: the person's sessions are no fixtures.
func TestTestsHaveTheirOwnTmux(t *testing.T) {
	t.Parallel()
	runs := regexp.MustCompile(`exec\.Command(Context)?\((ctx, )?"tmux"|\.must\(.*, "tmux", `)
	own := regexp.MustCompile(`"-S"|"-L"`)
	seen := 0
	eachGo(t, true, func(file string, n int, line string) {
		if !runs.MatchString(line) || file == "cli/alone_test.go" {
			return
		}
		if seen++; !own.MatchString(line) {
			t.Errorf("%s:%d: %s", file, n, strings.TrimSpace(line))
		}
	})
	if seen == 0 {
		t.Error("no test runs tmux")
	}
}
