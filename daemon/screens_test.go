package daemon_test

import (
	"os/exec"
	"strings"
)

// tmux runs one tmux command against the world's server, as a person would.
func (w *world) tmux(stdin string, args ...string) (string, error) {
	argv := w.l.Tmux.Argv(args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stdin = w.l.Tmux.Environ(), strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
