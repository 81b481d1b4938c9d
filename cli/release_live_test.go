//go:build live

package cli_test

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"netsky/internal/testworld"
)

// ran runs a program in a directory and returns what it printed.
func ran(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// What scripts/release makes of HEAD: the same bytes twice, complete, signed, and it runs.
func TestRelease(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("releases are made on Linux")
	}
	dir, arch := t.TempDir(), runtime.GOARCH
	key := filepath.Join(dir, "key")
	ran(t, dir, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
	for _, run := range []struct{ out, umask string }{{"dist", "022"}, {"again", "077"}} {
		tool(t, `umask "$1"; TMPDIR=$2 GOFLAGS=-mod=mod ../scripts/release --sign "$3" --arch "$4" --out "$5" HEAD`,
			run.umask, testworld.Got(os.MkdirTemp(dir, "t"))(t), key, arch, filepath.Join(dir, run.out))
	}
	ran(t, dir, "diff", "-r", "dist", "again")

	dist := filepath.Join(dir, "dist")
	version, debian := tool(t, `version .. HEAD`), tool(t, `debian_version .. HEAD`)
	name := "netsky_" + version + "_linux_" + arch
	var have []string
	for _, e := range testworld.Got(os.ReadDir(dist))(t) {
		have = append(have, e.Name())
	}
	want := []string{"SHA256SUMS", "SHA256SUMS.sig", name + ".cdx.json", name + ".tar.gz", "netsky_" + version + "_source.tar.gz", "netsky_" + debian + "_" + arch + ".deb"}
	slices.Sort(want)
	testworld.EqualList(t, have, want, "files")
	testworld.Equal(t, strings.Count(ran(t, dist, "sha256sum", "-c", "SHA256SUMS"), ": OK"), len(want)-2, "sums")
	testworld.Must(t, os.WriteFile(filepath.Join(dir, "signers"), []byte("releaser "+ran(t, dir, "cat", key+".pub")), 0o600))
	ran(t, dist, "sh", "-c", "ssh-keygen -Y verify -f ../signers -I releaser -n netsky -s SHA256SUMS.sig <SHA256SUMS")

	ran(t, dist, "tar", "-xzf", name+".tar.gz", "-C", dir)
	ran(t, dist, "dpkg-deb", "-x", "netsky_"+debian+"_"+arch+".deb", filepath.Join(dir, "deb"))
	testworld.Equal(t, ran(t, dist, "dpkg-deb", "-f", "netsky_"+debian+"_"+arch+".deb", "Depends"), "tmux (>= 3.2)", "depends on")
	for _, bin := range []string{name + "/netsky", "deb/usr/bin/netsky"} {
		testworld.Equal(t, ran(t, dir, filepath.Join(dir, bin), "version"), "netsky "+version+" "+runtime.Version()+" linux/"+arch, bin)
		f := testworld.Got(elf.Open(filepath.Join(dir, bin)))(t)
		if libs, _ := f.ImportedLibraries(); len(libs) > 0 || f.Section(".interp") != nil {
			t.Errorf("%s: linked with %v", bin, libs)
		}
		f.Close()
	}
	share := filepath.Join(dir, "deb/usr/share")
	for _, file := range []string{
		"man/man1/netsky.1.gz", "bash-completion/completions/netsky", "zsh/vendor-completions/_netsky", "fish/vendor_completions.d/netsky.fish",
		"doc/netsky/copyright", "doc/netsky/licenses/github.com_mattn_go-sqlite3/LICENSE", "doc/netsky/licenses/sqlite", "doc/netsky/licenses/go",
		"doc/netsky/licenses/glibc", "../lib/systemd/user/netsky.service", "../lib/systemd/user/netsky-tick.timer",
	} {
		if info, err := os.Stat(filepath.Join(share, file)); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	ran(t, dir, "mandoc", "-T", "lint", "-W", "warning", name+"/man/netsky.1")
	ran(t, dir, "bash", "-n", name+"/completions/netsky.bash")
	checkBill(t, filepath.Join(dist, name+".cdx.json"), filepath.Join(dir, name, "netsky"))
}

// checkBill compares a bill of materials with the modules that Go finds in the program.
func checkBill(t *testing.T, file, program string) {
	t.Helper()
	var bill struct {
		BomFormat, SpecVersion string
		Components             []struct {
			Name, Version, Purl string
			Licenses            []struct{ License struct{ ID string } }
		}
	}
	testworld.Must(t, json.Unmarshal(testworld.Got(os.ReadFile(file))(t), &bill))
	testworld.Equal(t, bill.BomFormat+" "+bill.SpecVersion, "CycloneDX 1.5", "bill")
	var have []string
	for _, c := range bill.Components {
		have = append(have, c.Name)
		if len(c.Licenses) != 1 || c.Licenses[0].License.ID == "" || !strings.HasSuffix(c.Purl, "@"+c.Version) || c.Version == "" {
			t.Errorf("%+v", c)
		}
	}
	want := []string{"glibc", "sqlite", "std"}
	for line := range strings.Lines(ran(t, ".", "go", "version", "-m", program)) {
		if f := strings.Fields(line); f[0] == "dep" {
			want = append(want, f[1])
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	testworld.EqualList(t, have, want, "components")
}
