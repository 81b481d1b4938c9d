package release_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/daemon/update/release"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/testworld"
)

// file makes a file in a directory of the test's, by its real path.
func file(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, name := range names {
		name = filepath.Join(dir, name)
		testworld.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		text := "x"
		if filepath.Base(name) == "go.mod" {
			text = "module netsky\n\ngo 1.26.0\n"
		}
		testworld.Must(t, os.WriteFile(name, []byte(text), 0o755))
	}
	return dir
}

func TestFindWithoutManagers(t *testing.T) {
	checkout := []string{"src/bin/netsky", "src/go.mod", "src/main.go", "src/scripts/tools"}
	dir := file(t, append(checkout,
		"opt/netsky/netsky",
		"brew/Cellar/netsky/0.2.0/bin/netsky",
		"half/bin/netsky", "half/go.mod", "half/main.go",
		"other/netsky", "other/go.mod", "other/main.go", "other/scripts/tools",
	)...)
	testworld.Must(t, os.MkdirAll(dir+"/bin", 0o755))
	testworld.Must(t, os.Symlink(dir+"/src/bin/netsky", dir+"/bin/linked"))
	for path, want := range map[string]release.Install{
		"opt/netsky/netsky": {Kind: release.FromArchive, Binary: "opt/netsky/netsky"},
		"src/bin/netsky":    {Kind: release.FromCheckout, Binary: "src/bin/netsky", Root: "src"},
		"bin/linked":        {Kind: release.FromCheckout, Binary: "src/bin/netsky", Root: "src"},
		"half/bin/netsky":   {Kind: release.FromArchive, Binary: "half/bin/netsky"},
		"other/netsky":      {Kind: release.FromArchive, Binary: "other/netsky"},
		"brew/Cellar/netsky/0.2.0/bin/netsky": {
			Kind: release.FromPackage, Binary: "brew/Cellar/netsky/0.2.0/bin/netsky", Package: "netsky (brew)", Command: "brew upgrade netsky",
		},
	} {
		want.Binary = filepath.Join(dir, want.Binary)
		if want.Root != "" {
			want.Root = filepath.Join(dir, want.Root)
		}
		testworld.Equal(t, testworld.Got(release.Find(t.Context(), filepath.Join(dir, path), nil))(t), want, path)
	}
	if _, err := release.Find(t.Context(), dir+"/none", nil); !os.IsNotExist(err) {
		t.Errorf("Find = %v", err)
	}
	_, err := release.Find(t.Context(), "/usr/bin/env", nil)
	testworld.Fails(t, err, "no package manager that netsky knows")
	testworld.Equal(t, advice.Of(err), "update it as you installed it")
}

// Each manager is a script that answers as the real one does.
func TestFindManagers(t *testing.T) {
	release.SetManagerTime(t, 30*time.Second)
	for _, tt := range []struct {
		name, manager, script string
		kind                  release.Kind
		pkg, command, err     string // the error is for a file below /usr
	}{
		{"rpm", "rpm", `[ "$1 $2 $3" = "-qf --qf %{NAME}\n" ] && echo netsky`, release.FromPackage, "netsky (rpm)", "sudo dnf upgrade netsky", ""},
		{"rpm, not its", "rpm", `echo "file $4 is not owned by any package"; exit 1`, release.FromArchive, "", "", ""},
		{"rpm, broken", "rpm", `echo "error: cannot open Packages database in /var/lib/rpm" >&2; echo "file $4 is not owned by any package"; exit 1`, release.FromArchive, "", "", "cannot open Packages"},
		{"pacman", "pacman", `[ "$1" = -Qoq ] && echo netsky`, release.FromPackage, "netsky (pacman)", "sudo pacman -Syu netsky", ""},
		{"pacman, not its", "pacman", `echo "error: No package owns $2" >&2; exit 1`, release.FromArchive, "", "", ""},
		{"apk", "apk", `[ "$1 $2" = "info -W" ] && echo "$3 is owned by netsky-tools-0.2.0_rc1-r0"`, release.FromPackage, "netsky-tools (apk)", "sudo apk upgrade netsky-tools", ""},
		{"apk, not its", "apk", `echo "ERROR: $3: Could not find owner package" >&2; exit 1`, release.FromArchive, "", "", ""},
		{"dpkg", "dpkg", `echo "netsky:amd64: $2"`, release.FromPackage, "netsky (dpkg)", "sudo apt install ./netsky_VERSION_" + runtime.GOARCH + ".deb", ""},
		{"dpkg, another package", "dpkg", `echo "tools, more: $2"`, release.FromPackage, "tools (dpkg)", "sudo apt install --only-upgrade tools", ""},
		{"dpkg, not its", "dpkg", `echo "dpkg-query: no path found matching pattern $2" >&2; exit 1`, release.FromArchive, "", "", ""},
		{"dpkg, locked", "dpkg", `echo "dpkg-query: error: parsing file" >&2; exit 2`, release.FromArchive, "", "", "exit status 2: dpkg-query: error"},
		{"dpkg, says nothing", "dpkg", `:`, release.FromArchive, "", "", "no answer"},
		{"its language", "dpkg", `[ "$LC_ALL" = C ] && echo "netsky: $2"`, release.FromPackage, "netsky (dpkg)", "sudo apt install ./netsky_VERSION_" + runtime.GOARCH + ".deb", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := file(t, "opt/netsky", "bin/x")
			testworld.Program(t, dir+"/bin/"+tt.manager, "#!/bin/sh\n"+tt.script+"\n")
			environ := []string{"PATH=" + dir + "/bin", "LC_ALL=de_DE.UTF-8"}
			for _, path := range []string{dir + "/opt/netsky", "/usr/bin/env"} {
				in, err := release.Find(t.Context(), path, environ)
				if tt.err != "" && strings.HasPrefix(path, "/usr/") {
					testworld.Fails(t, err, tt.err)
					testworld.Fails(t, err, "/usr/bin/env: it is not known to which package it belongs")
					continue
				}
				testworld.Must(t, err, path)
				testworld.Equal(t, in.Kind, tt.kind, path)
				testworld.Equal(t, in.Package, tt.pkg)
				testworld.Equal(t, in.Command, tt.command)
			}
		})
	}
}

func TestFindHangs(t *testing.T) {
	release.SetManagerTime(t, 300*time.Millisecond)
	dir := file(t, "opt/netsky", "bin/x")
	testworld.Program(t, dir+"/bin/dpkg", "#!/bin/sh\nexec /bin/sleep 600\n")
	environ := []string{"PATH=" + dir + "/bin"}
	testworld.Fails(t, testworld.Err(release.Find(t.Context(), "/usr/bin/env", environ)), "no answer within 300ms")
	testworld.Equal(t, testworld.Got(release.Find(t.Context(), dir+"/opt/netsky", environ))(t).Kind, release.FromArchive)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.ErrorIs(t, testworld.Err(release.Find(ctx, dir+"/opt/netsky", environ)), context.Canceled)
}

// The real dpkg: with the machine's own records, and with such in which diversions are as they may be.
func TestFindDpkg(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg")
	if err != nil {
		t.Skip("no dpkg here")
	}
	environ := []string{"PATH=" + filepath.Dir(dpkg) + ":/usr/bin:/bin"}
	in := testworld.Got(release.Find(t.Context(), dpkg, environ))(t)
	testworld.Equal(t, in.Package, "dpkg (dpkg)", dpkg)
	// What a package lists as /bin/x is found as /usr/bin/x where that is the same.
	in = testworld.Got(release.Find(t.Context(), "/bin/sh", environ))(t)
	testworld.Equal(t, in.Kind, release.FromPackage, in.Binary)
	testworld.Equal(t, testworld.Got(release.Find(t.Context(), file(t, "netsky")+"/netsky", environ))(t).Kind, release.FromArchive)

	// Paths below /usr may not be written by a test: those of these records are in its own directory.
	dir := file(t, "bin/netsky", "bin/netsky.distrib", "bin/other", "bin/other.real", "bin/odd [x]*", "bin/odd x", "db/info/x")
	for name, text := range map[string]string{
		"status":            record("netsky") + record("tools") + record("wrapper"),
		"info/netsky.list":  dir + "/bin/netsky\n" + dir + "/bin/odd [x]*\n",
		"info/tools.list":   dir + "/bin/other\n",
		"info/wrapper.list": dir + "/bin/other\n",
		"diversions": dir + "/bin/netsky\n" + dir + "/bin/netsky.distrib\n:\n" +
			dir + "/bin/other\n" + dir + "/bin/other.real\nwrapper\n",
	} {
		testworld.Must(t, os.WriteFile(filepath.Join(dir, "db", name), []byte(text), 0o644))
	}
	for name, pkg := range map[string]string{
		"netsky":         "", // diverted by the owner: the file at this name is theirs
		"netsky.distrib": "netsky (dpkg)",
		"other":          "wrapper (dpkg)",
		"other.real":     "tools (dpkg)",
		"odd [x]*":       "netsky (dpkg)",
		"odd x":          "", // a pattern would match
	} {
		in := testworld.Got(release.Find(t.Context(), dir+"/bin/"+name, append(environ, "DPKG_ADMINDIR="+dir+"/db")))(t)
		testworld.Equal(t, in.Package, pkg, name)
	}
	testworld.Must(t, os.WriteFile(dir+"/db/status", []byte("broken\n"), 0o644))
	testworld.Fails(t, testworld.Err(release.Find(t.Context(), dpkg, append(environ, "DPKG_ADMINDIR="+dir+"/db"))), "parsing file")
}

func record(name string) string {
	return "Package: " + name + "\nStatus: install ok installed\nMaintainer: x\nArchitecture: all\nVersion: 1\nDescription: x\n\n"
}

// keygen runs ssh-keygen in a directory.
func keygen(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("ssh-keygen", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %q: %v\n%s", args, err, out)
	}
}

func path() []string { return []string{"PATH=" + execx.Value(os.Environ(), "PATH")} }
