//go:build live

package checkout_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netsky/daemon/update/checkout"
	"netsky/daemon/update/release"
	"netsky/internal/testworld"
)

// The program that is built of this very checkout runs, and has a version by which others can be compared with it.
func TestBuildNetsky(t *testing.T) {
	root := testworld.Got(filepath.Abs("../../.."))(t)
	to := filepath.Join(t.TempDir(), "netsky")
	var out bytes.Buffer
	testworld.Must(t, checkout.Build(t.Context(), root, to, os.Environ(), &out), "%s", &out)
	said := testworld.Got(exec.Command(to, "version").Output())(t)
	words := strings.Fields(string(said)) // "netsky 0.2.0+abc1234 go1.26.0 linux/amd64"
	if len(words) < 2 || release.Compare(words[1], "0.0.0") != 1 {
		t.Errorf("netsky version: %s", said)
	}
	in := testworld.Got(release.Find(t.Context(), to, os.Environ()))(t)
	testworld.Equal(t, in.Kind, release.FromArchive)
}
