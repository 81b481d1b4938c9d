package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"netsky/internal/testworld"
)

// Ctrl-C at the question of an update ends it, and Ctrl-D is no agreement.
func TestSelfUpdateAsks(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	testworld.Must(t, os.WriteFile(filepath.Join(w.dir, "pack"), []byte(packs), 0o600))
	s := w.mustScreen(t, "update", "env -u TMUX -u TMUX_PANE sh")
	s.types("cd "+w.dir+"; sh pack 9.0.0; clear; netsky self update rel; echo status $?", "Enter")
	s.shows(`This installs netsky 9\.0\.0 (?s:.*)Go on\? \[y/N\]`)
	s.keys("C-c")
	s.shows(`netsky: interrupted: nothing was changed\nstatus 130`)
	s.types("clear; netsky self update rel; echo status $?", "Enter")
	s.shows(`Go on\? \[y/N\]`)
	s.keys("C-d")
	s.shows(`netsky: not done: you did not agree\nstatus 1`)
}

// packs makes a release of that version, with nothing that can be installed.
const packs = `mkdir rel
name=netsky_$1_linux_$(case $(uname -m) in x86_64) echo amd64 ;; *) echo arm64 ;; esac)
tar -czf rel/$name.tar.gz pack
cd rel
sha256sum *.gz >SHA256SUMS
`
