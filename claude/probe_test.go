package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netsky/claude"
	"netsky/internal/testworld"
)

// There may be several programs of that name: an error names the one it is about.
func TestProbeNamesTheProgram(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"echo hello", "exit 3"} {
		program := filepath.Join(t.TempDir(), "claude")
		testworld.Must(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
		if _, err := claude.Probe(t.Context(), program, nil); err == nil || !strings.HasPrefix(err.Error(), program+" --version: ") {
			t.Errorf("%s: %v", script, err)
		}
	}
}
