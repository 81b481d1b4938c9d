//go:build live

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// An edit changes the text of a file of the repository; of a file that is not there it gets "".
type edit struct {
	file string
	do   func(text string) string
}

// mustNetsky builds this repository's netsky, with edits, as that version.
func mustNetsky(t testing.TB, to, version string, edits ...edit) {
	t.Helper()
	dir := t.TempDir()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for _, e := range edits {
		file := testworld.Got(filepath.Abs(filepath.Join("..", e.file)))(t)
		text, _ := os.ReadFile(file) // or it is new
		edited := e.do(string(text))
		if edited == string(text) {
			t.Fatalf("%s is not edited", e.file)
		}
		name := filepath.Join(dir, filepath.Base(e.file))
		testworld.Must(t, os.WriteFile(name, []byte(edited), 0o600))
		overlay.Replace[file] = name
	}
	list := filepath.Join(dir, "overlay.json")
	testworld.Must(t, os.WriteFile(list, testworld.Got(json.Marshal(overlay))(t), 0o600))
	testworld.Must(t, testworld.Build("-overlay", list, "-ldflags", "-s -w -X netsky/cli.Version="+version, "-o", to))
}

// mustRelease builds a release of that version in a directory of its own, and returns the directory.
func mustRelease(t testing.TB, version string, edits ...edit) string {
	t.Helper()
	dir, top := t.TempDir(), "netsky_"+version+"_linux_"+runtime.GOARCH
	testworld.Must(t, os.Mkdir(filepath.Join(dir, top), 0o700))
	mustNetsky(t, filepath.Join(dir, top, "netsky"), version, edits...)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `set -e; tar -czf "$1.tar.gz" "$1"; rm -r "$1"; sha256sum "$1.tar.gz" >SHA256SUMS`, "sh", top)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("pack: %v\n%s", err, out)
	}
	return dir
}

// begins puts a statement at the beginning of a function.
func begins(file, function, statement string) edit {
	return edit{file, func(text string) string {
		head, rest, _ := strings.Cut(text, "\nfunc "+function+"(")
		line, body, _ := strings.Cut(rest, "{\n")
		return head + "\nfunc " + function + "(" + line + "{\n" + statement + "\n" + body
	}}
}

// adds makes a file.
func adds(file, text string) edit { return edit{file, func(string) string { return text }} }
