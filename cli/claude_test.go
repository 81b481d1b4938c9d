package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// config writes the world's netsky.toml.
func (w *world) config(t testing.TB, text string) {
	t.Helper()
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, home.ConfigFile), []byte(text), 0o600))
}
