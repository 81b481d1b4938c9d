package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"netsky/home"
)

// config writes the world's netsky.toml.
func (w *world) config(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, home.ConfigFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
