package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/daemon/update/release"
	"netsky/internal/advice"
	"netsky/internal/testworld"
)

// program is an ELF file of this machine, as far as its head goes.
func program(text string) string {
	machine := map[string]string{"amd64": "\x3e\x00", "arm64": "\xb7\x00"}[runtime.GOARCH]
	return "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00" + machine + text
}

// An entry is one of an archive; what is not set is as in a regular file.
type entry struct {
	name, text string
	kind       byte
	link       string
	size       int64 // if it is not that of the text
}

const version = "0.2.0"

var name = release.NameOf(version)
var top = strings.TrimSuffix(name, ".tar.gz")

func good(text string) []entry {
	return []entry{
		{name: top + "/", kind: tar.TypeDir},
		{name: top + "/README.md", text: "read me"},
		{name: top + "/man/netsky.1", text: "man"},
		{name: top + "/netsky", text: program(text)},
		{name: top + "/licenses/netsky", text: "another netsky"},
	}
}

// pack makes a tar.
func pack(t testing.TB, entries []entry) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: 0o644, Size: int64(len(e.text))}
		if e.size != 0 {
			h.Size = e.size
		}
		testworld.Must(t, w.WriteHeader(h))
		testworld.Got(io.WriteString(w, e.text))(t)
	}
	w.Flush() // an entry of another size has no end
	if err := w.Close(); err == nil {
		return out.Bytes()
	}
	return out.Bytes()
}

func zip(t testing.TB, data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	testworld.Got(w.Write(data))(t)
	testworld.Must(t, w.Close())
	return out.Bytes()
}

func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// A place is a directory with a release.
type place struct {
	t   testing.TB
	dir string
}

func newPlace(t testing.TB, archive []byte) place {
	p := place{t, t.TempDir()}
	p.write(name, archive)
	p.write("SHA256SUMS", []byte(sum([]byte("other"))+"  netsky_0.2.0_source.tar.gz\n"+sum(archive)+"  "+name+"\n"))
	return p
}

func (p place) file(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(name string, data []byte) {
	p.t.Helper()
	testworld.Must(p.t, os.WriteFile(p.file(name), data, 0o644))
}

func TestVerify(t *testing.T) {
	archive := zip(t, pack(t, good("one")))
	p := newPlace(t, archive)
	a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
	defer a.Close()
	testworld.Equal(t, a.File, p.file(name))
	testworld.Equal(t, a.Version, version)
	testworld.Equal(t, a.SHA256, sum(archive))
	testworld.Equal(t, a.SignedBy, "")
	to := p.file("program")
	testworld.Must(t, a.Extract(t.Context(), to))
	testworld.Equal(t, string(testworld.Got(os.ReadFile(to))(t)), program("one"))
	testworld.Equal(t, testworld.Got(os.Stat(to))(t).Mode(), os.FileMode(0o755))
	// What is there already is kept.
	testworld.ErrorIs(t, a.Extract(t.Context(), to), os.ErrExist)
	testworld.Equal(t, string(testworld.Got(os.ReadFile(to))(t)), program("one"))
}

func TestVerifyRefuses(t *testing.T) {
	archive := zip(t, pack(t, good("one")))
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	line := sum(archive) + "  " + name + "\n"
	for _, tt := range []struct {
		name, file, sums string // "-" is no file
		err, advice      string
	}{
		{name: "another architecture", file: "netsky_0.2.0_linux_" + other + ".tar.gz", err: "and this machine is linux/" + runtime.GOARCH, advice: "get " + name},
		{name: "another system", file: "netsky_0.2.0_darwin_" + runtime.GOARCH + ".tar.gz", err: "is for darwin/" + runtime.GOARCH},
		{name: "the source", file: "netsky_0.2.0_source.tar.gz", err: "is not the name of a release", advice: "use its own name"},
		{name: "the package", file: "netsky_0.2.0_amd64.deb", err: "is a package, which apt installs", advice: "sudo apt install ./netsky_0.2.0_amd64.deb"},
		{name: "no version", file: release.NameOf("latest"), err: "is not the name of a release"},
		{name: "half a version", file: release.NameOf("0.2"), err: "is not the name of a release"},
		{name: "no list", sums: "-", err: "there is no SHA256SUMS beside it", advice: "download the release's SHA256SUMS"},
		{name: "an empty list", sums: "\n", err: "line 1 is not a digest"},
		{name: "a list of others", sums: sum(nil) + "  netsky_0.1.0_source.tar.gz\n", err: "does not name " + name},
		{name: "the digest of another file", sums: sum(nil) + "  " + name + "\n", err: "its SHA-256 is " + sum(archive), advice: "download it again"},
		{name: "twice", sums: line + line, err: "line 2 names " + name + " a second time"},
		{name: "twice, another file", sums: sum(nil) + "  x\n" + sum(nil) + "  x\n" + line, err: "line 2 names x a second time"},
		{name: "CRLF", sums: strings.ReplaceAll(line, "\n", "\r\n"), err: "line 1 is not a digest"},
		{name: "a path", sums: sum(archive) + "  dist/" + name + "\n", err: "line 1 is not a digest"},
		{name: "a path beside it", sums: line + sum(archive) + "  ../x\n", err: "line 2 is not a digest"},
		{name: "an absolute path", sums: sum(archive) + "  /" + name + "\n", err: "line 1 is not a digest"},
		{name: "an escaped name", sums: "\\" + line, err: "line 1 is not a digest"},
		{name: "a remark", sums: "# release\n" + line, err: "line 1 is not a digest"},
		{name: "an empty line", sums: line + "\n", err: "line 2 is not a digest"},
		{name: "SHA-1", sums: sum(archive)[:40] + "  " + name + "\n", err: "line 1 is not a digest"},
		{name: "BSD's form", sums: "SHA256 (" + name + ") = " + sum(archive) + "\n", err: "line 1 is not a digest"},
		{name: "capitals", sums: strings.ToUpper(sum(archive)) + "  " + name + "\n", err: "line 1 is not a digest"},
		{name: "a NUL", sums: line + "\x00", err: "line 2 is not a digest"},
		{name: "huge", sums: strings.Repeat(line, 20000), err: "larger than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, archive)
			file := name
			if tt.file != "" {
				file = tt.file
				p.write(file, archive)
			}
			switch tt.sums {
			case "":
			case "-":
				testworld.Must(t, os.Remove(p.file("SHA256SUMS")))
			default:
				p.write("SHA256SUMS", []byte(tt.sums))
			}
			_, err := release.Verify(t.Context(), p.file(file), release.Trust{})
			testworld.Fails(t, err, tt.err)
			testworld.Contains(t, advice.Of(err), tt.advice)
		})
	}
}

// What is no file of bytes is not read.
func TestVerifyOddFiles(t *testing.T) {
	archive := zip(t, pack(t, good("one")))
	p := newPlace(t, archive)
	testworld.Must(t, os.Remove(p.file(name)))
	testworld.ErrorIs(t, testworld.Err(release.Verify(t.Context(), p.file(name), release.Trust{})), os.ErrNotExist)
	testworld.Must(t, os.Mkdir(p.file(name), 0o755))
	testworld.Fails(t, testworld.Err(release.Verify(t.Context(), p.file(name), release.Trust{})), "not a regular file")
	testworld.Must(t, os.Remove(p.file(name)))
	if out, err := exec.Command("mkfifo", p.file(name)).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %s", out)
	}
	testworld.Fails(t, testworld.Err(release.Verify(t.Context(), p.file(name), release.Trust{})), "not a regular file")
	testworld.Must(t, os.Remove(p.file(name)))
	f := testworld.Got(os.Create(p.file(name)))(t)
	testworld.Must(t, f.Truncate(10<<30)) // takes no room
	testworld.Must(t, f.Close())
	testworld.Fails(t, testworld.Err(release.Verify(t.Context(), p.file(name), release.Trust{})), "is larger than 200 MB")
}

func TestVerifySignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("no ssh-keygen here")
	}
	archive := zip(t, pack(t, good("one")))
	keys := t.TempDir()
	keygen(t, keys, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "releaser")
	keygen(t, keys, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", "stranger")
	key := strings.TrimSpace(string(testworld.Got(os.ReadFile(keys + "/releaser.pub"))(t)))
	strange := strings.TrimSpace(string(testworld.Got(os.ReadFile(keys + "/stranger.pub"))(t)))
	sign := func(p place, with, space, file string) {
		keygen(t, p.dir, "-q", "-Y", "sign", "-f", keys+"/"+with, "-n", space, file)
	}
	usual := "ada@example.org namespaces=\"netsky\" " + key + "\n"
	for _, tt := range []struct {
		name, signers string
		do            func(p place)
		by, err       string
	}{
		{name: "good", by: "ada@example.org"},
		{name: "several signers", signers: "bob@example.org " + strange + "\n# a remark\n" + usual, by: "ada@example.org"},
		{name: "several names", signers: "bob,ada " + key + "\n", by: "bob"},
		{name: "unsigned", do: func(p place) { os.Remove(p.file("SHA256SUMS.sig")) }, err: "there is no SHA256SUMS.sig beside it"},
		{name: "unknown", signers: "bob@example.org " + strange + "\n", err: "is not a signature of SHA256SUMS by anybody in"},
		{name: "nobody", signers: "# nobody yet\n", err: "is not a signature"},
		{name: "no signers file", signers: "-", err: "signers: open"},
		{name: "not signers", signers: "once upon a time\n", err: "is not a signature"},
		{name: "expired", signers: `ada valid-before="20200101" ` + key + "\n", err: "is not a signature"},
		{name: "not valid yet", signers: `ada valid-after="20900101" ` + key + "\n", err: "is not a signature"},
		{name: "signed for mail only", signers: `ada namespaces="email" ` + key + "\n", err: "is not a signature"},
		{name: "for another purpose", do: func(p place) {
			os.Remove(p.file("SHA256SUMS.sig"))
			sign(p, "releaser", "file", "SHA256SUMS")
		}, err: "is not a signature"},
		{name: "by a stranger", do: func(p place) {
			os.Remove(p.file("SHA256SUMS.sig"))
			sign(p, "stranger", "netsky", "SHA256SUMS")
		}, err: "is not a signature"},
		{name: "of another file", do: func(p place) {
			p.write("old", []byte("an older list\n"))
			sign(p, "releaser", "netsky", "old")
			testworld.Must(t, os.Rename(p.file("old.sig"), p.file("SHA256SUMS.sig")))
		}, err: "is not a signature"},
		{name: "a list that was changed", do: func(p place) {
			f := testworld.Got(os.OpenFile(p.file("SHA256SUMS"), os.O_APPEND|os.O_WRONLY, 0))(t)
			testworld.Got(f.WriteString(sum(nil) + "  more\n"))(t)
			f.Close()
		}, err: "is not a signature"},
		{name: "an archive that was changed", do: func(p place) { p.write(name, zip(t, pack(t, good("evil")))) }, err: "its SHA-256 is"},
		{name: "an old archive under a new name", do: func(p place) {
			p.write(release.NameOf("9.0.0"), archive)
			testworld.Must(t, os.Rename(p.file(release.NameOf("9.0.0")), p.file(name)))
			p.write(name, append(archive, 0))
		}, err: "its SHA-256 is"},
		{name: "truncated", do: func(p place) { testworld.Must(t, os.Truncate(p.file("SHA256SUMS.sig"), 100)) }, err: "is not a signature"},
		{name: "empty", do: func(p place) { p.write("SHA256SUMS.sig", nil) }, err: "is not a signature"},
		{name: "huge", do: func(p place) { p.write("SHA256SUMS.sig", make([]byte, 2<<20)) }, err: "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, archive)
			sign(p, "releaser", "netsky", "SHA256SUMS")
			signers := usual
			if tt.signers != "" {
				signers = tt.signers
			}
			if signers != "-" {
				p.write("signers", []byte(signers))
			}
			if tt.do != nil {
				tt.do(p)
			}
			a, err := release.Verify(t.Context(), p.file(name), release.Trust{Signers: p.file("signers"), Environ: path()})
			if tt.err != "" {
				testworld.Fails(t, err, tt.err)
				return
			}
			testworld.Must(t, err)
			defer a.Close()
			testworld.Equal(t, a.SignedBy, tt.by)
		})
	}
	p := newPlace(t, archive)
	sign(p, "releaser", "netsky", "SHA256SUMS")
	p.write("signers", []byte(usual))
	err := testworld.Err(release.Verify(t.Context(), p.file(name), release.Trust{Signers: p.file("signers"), Environ: []string{"PATH=/none"}}))
	testworld.Fails(t, err, "ssh-keygen is not on PATH")
}

func TestCompare(t *testing.T) {
	order := []string{
		"", "0.1.0-alpha", "0.1.0-alpha.1", "0.1.0-alpha.beta", "0.1.0-beta", "0.1.0-beta.2", "0.1.0-beta.11", "0.1.0-rc.1", "0.1.0",
		"0.1.1", "0.2.0", "0.10.0", "1.0.0-0", "1.0.0", "99999999999999999999.0.0",
	}
	for i, a := range order {
		for j, b := range order {
			want := 0
			if i != j {
				want = map[bool]int{true: -1, false: 1}[i < j]
			}
			testworld.Equal(t, release.Compare(a, b), want, "%q, %q", a, b)
		}
	}
	for a, b := range map[string]string{
		"0.2.0+abc123": "0.2.0", "0.2.0+v0.1.0-3-gabc-dirty": "0.2.0+b", "0.2.0-rc.1+x": "0.2.0-rc.1", "unknown": "v0.2.0", "0.2": "0.2.0.1",
		"01.2.3": "unknown", "0.2.0+": "",
	} {
		testworld.Equal(t, release.Compare(a, b), 0, "%q, %q", a, b)
		testworld.Equal(t, release.Compare(b, a), 0, "%q, %q", b, a)
	}
}

func TestNewest(t *testing.T) {
	p := place{t, t.TempDir()}
	newest := func() string {
		t.Helper()
		file, v, err := release.Newest(p.dir)
		testworld.Must(t, err)
		if file != "" {
			testworld.Equal(t, file, p.file(release.NameOf(v)))
		}
		return v
	}
	testworld.Equal(t, newest(), "")
	for _, v := range []string{"0.9.0", "0.10.0-rc.1", "0.10.0", "0.2.0"} {
		p.write(release.NameOf(v), nil)
	}
	p.write("netsky_3.0.0_source.tar.gz", nil)
	p.write("netsky_3.0.0_linux_mips.tar.gz", nil)
	p.write(release.NameOf("three"), nil)
	testworld.Must(t, os.Mkdir(p.file(release.NameOf("4.0.0")), 0o755))
	testworld.Must(t, os.Symlink("none", p.file(release.NameOf("5.0.0"))))
	testworld.Equal(t, newest(), "0.10.0")
	p.write(release.NameOf("0.10.0+a"), nil)
	p.write(release.NameOf("0.10.0+b"), nil)
	testworld.Must(t, os.Chtimes(p.file(release.NameOf("0.10.0+a")), time.Time{}, time.Now().Add(time.Hour)))
	testworld.Equal(t, newest(), "0.10.0+a")
	if _, _, err := release.Newest(p.file("none")); !os.IsNotExist(err) {
		t.Errorf("Newest = %v", err)
	}
}

// FuzzSums holds that a digest comes from the one line that names the file.
func FuzzSums(f *testing.F) {
	line := sum(nil) + "  " + name + "\n"
	for _, text := range []string{"", line, line + line, sum([]byte("x")) + " *x\n" + line, line[:90], line + "\r\n", "\\" + line} {
		f.Add([]byte(text), name)
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		digest, err := release.ParseSums(data, name)
		if (digest == "") != (err != nil) {
			t.Fatalf("%q, %v", digest, err)
		}
		if err == nil && strings.Count("\n"+string(data), "\n"+digest+"  "+name)+strings.Count("\n"+string(data), "\n"+digest+" *"+name) == 0 {
			t.Fatalf("no line has %s of %s", digest, name)
		}
	})
}
