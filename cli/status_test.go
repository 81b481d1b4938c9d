package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/internal/execx"
	"netsky/internal/testworld"
)

// The agents and the ticker are seen by one look at the tmux server, which is most of what status costs.
func TestStatusLooksOnce(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "init")
	log := filepath.Join(t.TempDir(), "log")
	bin := filepath.Dir(testworld.Program(t, filepath.Join(t.TempDir(), "tmux"), fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\nexec %s \"$@\"\n", log, execx.Find(os.Getenv("PATH"), "tmux"))))
	w.env = append(w.env, "PATH="+bin+":"+os.Getenv("PATH"))
	w.must(t, "netsky", "status")
	if asked := string(testworld.Got(os.ReadFile(log))(t)); strings.Count(asked, "list-panes") != 1 || strings.Count(asked, "\n") != 1 {
		t.Errorf("tmux is asked:\n%s", asked)
	}
}
