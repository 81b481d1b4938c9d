package cli_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// tool runs functions of scripts/tools.
func tool(t *testing.T, script string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-euc", ". ../scripts/tools; " + script, "sh"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// What a build is called, here and for dpkg, and whether it is one of exactly this tree.
func TestVersionOfATree(t *testing.T) {
	t.Parallel()
	r := testworld.NewRepo(t, t.TempDir())
	archive := r.At(t.TempDir())
	is := func(of testworld.Repo, want string) {
		t.Helper()
		testworld.Equal(t, tool(t, `version "$1"`, of.Dir), want, "version")
		exact := of == r && !strings.HasSuffix(want, "-dirty")
		for version, wanted := range map[string]bool{want: exact, "9" + want: false} {
			bin := testworld.Program(t, filepath.Join(t.TempDir(), "netsky"), "#!/bin/sh\necho netsky "+version+" \"$(go env GOVERSION)\" linux/amd64\n")
			if got := tool(t, `current "$1" "$2" && echo yes || echo no`, of.Dir, bin); (got == "yes") != wanted {
				t.Errorf("%s is the build of %s: %s", version, want, got)
			}
		}
	}
	const log = "# Changelog\n\n## 0.2.0 (unreleased)\n\n## 0.1.0\n"
	archive.Write("CHANGELOG.md", log)
	is(archive, "0.2.0+unknown")
	archive.Write("VERSION", "0.2.0+12345678\n")
	is(archive, "0.2.0+12345678")

	first := r.Commit("log", "CHANGELOG.md", log)[:8]
	is(r, "0.2.0+"+first)
	r.Write("new.go", "package x\n") // `git describe --dirty` doesn't call this dirty
	is(r, "0.2.0+"+first+"-dirty")
	second := r.Commit("new", "new.go", "package x\n")[:8]
	r.Git("tag", "v0.2.0")
	is(r, "0.2.0")
	r.Write("new.go", "package y\n")
	is(r, "0.2.0+"+second+"-dirty")
	third := r.Commit("later")[:8]
	is(r, "0.2.0+"+third)

	var versions []string
	for i, want := range []string{`0\.2\.0~git\d{14}\.` + first, `0\.2\.0`, `0\.2\.0\+git\d{14}\.` + third} {
		got := tool(t, `debian_version "$1" "$2"`, r.Dir, []string{first, second, third}[i])
		if !regexp.MustCompile("^" + want + "$").MatchString(got) {
			t.Errorf("for dpkg it is %s, want %s", got, want)
		}
		versions = append(versions, got)
	}
	if _, err := exec.LookPath("dpkg"); err == nil {
		tool(t, `dpkg --compare-versions "$1" lt "$2" && dpkg --compare-versions "$2" lt "$3"`, versions...)
	}
}
