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

	testworld.Must(t, os.WriteFile(filepath.Join(w.dir, "check"), []byte(checksOut), 0o600))
	s.types("sh check; clear; co/bin/netsky self update", "Enter")
	s.shows(`fi\\u202ene(?s:.*)Go on\? \[y/N\]`)
	s.keys("C-c")
}

// checksOut makes a checkout, whose upstream has a commit that names itself so that a terminal would show something else.
const checksOut = `mkdir -p co/bin co/scripts
cd co
git() { command git -c user.name=a -c user.email=a@example.org "$@"; }
git init -q -b main
echo module netsky >go.mod
echo bin/ >.gitignore
echo 'version() { echo 1; }' >scripts/tools
touch main.go
git add -A
git commit -qm one
git checkout -qb up
git commit -q --allow-empty -m "$(printf 'fi\342\200\256ne')"
git checkout -q main
git branch -q --set-upstream-to=up
cp "$(readlink -f "$(command -v netsky)")" bin/netsky
`

// packs makes a release of that version, with nothing that can be installed.
const packs = `mkdir rel
name=netsky_$1_linux_$(case $(uname -m) in x86_64) echo amd64 ;; *) echo arm64 ;; esac)
tar -czf rel/$name.tar.gz pack
cd rel
sha256sum *.gz >SHA256SUMS
`
