package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/daemon/update/release"
	"netsky/internal/advice"
	"netsky/internal/testworld"
)

// zeros is a gzip of a tar that begins like that and goes on with as many MB of zeros, each a member of its own.
func zeros(t *testing.T, begin []byte, n int) []byte {
	return append(zip(t, begin), bytes.Repeat(zip(t, make([]byte, 1<<20)), n)...)
}

// begun is a tar that ends in the middle of its last entry.
func begun(t *testing.T, entries ...entry) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		testworld.Must(t, w.WriteHeader(&tar.Header{Name: e.name, Typeflag: tar.TypeReg, Mode: 0o755, Size: e.size}))
		testworld.Got(io.WriteString(w, e.text))(t)
	}
	return out.Bytes()
}

func TestExtractRefuses(t *testing.T) {
	usual := pack(t, good("one"))
	zipped := zip(t, usual)
	with := func(more ...entry) []byte { return zip(t, pack(t, append(good("one"), more...))) }
	only := func(text string) []byte { return zip(t, pack(t, []entry{{name: top + "/netsky", text: text}})) }
	other := program("x")
	other = other[:18] + map[string]string{"amd64": "\xb7\x00", "arm64": "\x3e\x00"}[runtime.GOARCH] + other[20:]
	for _, tt := range []struct {
		name    string
		archive []byte
		err     string
	}{
		{"truncated", zipped[:len(zipped)-1], "unexpected EOF"},
		{"truncated in the middle", zipped[:len(zipped)/2], "unexpected EOF"},
		{"truncated in its head", zipped[:5], "unexpected EOF"},
		{"empty", nil, "EOF"},
		{"not gzip", usual, "gzip: invalid header"},
		{"more behind it", append(bytes.Clone(zipped), "more"...), "EOF"},
		{"a wrong checksum", append(bytes.Clone(zipped[:len(zipped)-8]), "12345678"...), "gzip: invalid checksum"},
		{"not tar", zip(t, []byte(strings.Repeat("x", 2000))), "invalid tar header"},
		{"a truncated tar", zip(t, usual[:bytes.Index(usual, []byte(program("")))+10]), "unexpected EOF"},
		{"no program", zip(t, pack(t, good("one")[:3])), "has no program netsky"},
		{"an empty tar", zip(t, pack(t, nil)), "has no program netsky"},
		{"two programs", with(entry{name: top + "/netsky", text: program("two")}), "has two programs"},
		{"a program and a directory", with(entry{name: top + "/netsky/", kind: tar.TypeDir}), "has two programs"},
		{"the program is a directory", zip(t, pack(t, []entry{{name: top + "/netsky/", kind: tar.TypeDir}})), "is not a file of at most"},
		{"the program is a link", zip(t, pack(t, []entry{{name: top + "/netsky", kind: tar.TypeSymlink, link: "/bin/sh"}})), "is a link or a device"},
		{"a hard link", with(entry{name: top + "/sh", kind: tar.TypeLink, link: "/bin/sh"}), "is a link or a device"},
		{"a link", with(entry{name: top + "/sh", kind: tar.TypeSymlink, link: ".."}), "is a link or a device"},
		{"a device", with(entry{name: top + "/null", kind: tar.TypeChar}), "is a link or a device"},
		{"a FIFO", with(entry{name: top + "/fifo", kind: tar.TypeFifo}), "is a link or a device"},
		{"..", with(entry{name: top + "/../../netsky", text: "x"}), "is not below"},
		{"up and down", with(entry{name: top + "/x/../netsky", text: program("two")}), "is not below"},
		{"an absolute name", with(entry{name: "/" + top + "/netsky", text: program("two")}), "is not below"},
		{"another top", with(entry{name: "netsky", text: program("two")}), "is not below"},
		{"another version's top", zip(t, pack(t, []entry{{name: "netsky_0.1.0_linux_amd64/netsky", text: program("")}})), "is not below"},
		{"a doubled slash", with(entry{name: top + "//netsky", text: program("two")}), "is not below"},
		{"a script", only("#!/bin/sh\necho netsky, the best there is\n"), "is not an ELF file"},
		{"an empty program", only(""), "is not an ELF file"},
		{"a short program", only(program("")[:19]), "is not an ELF file"},
		{"another architecture", only(other), "this machine is " + runtime.GOARCH},
		{"32 bits", only("\x7fELF\x01" + program("")[5:]), "is not an ELF file of 64 bits"},
		{"an object file", only(program("")[:16] + "\x01\x00" + program("")[18:]), "which can't be run"},
		{"a size that is not there", zip(t, begun(t, entry{name: top + "/netsky", text: program("x"), size: 1 << 20})), "unexpected EOF"},
		{"a huge size", zip(t, begun(t, entry{name: top + "/netsky", text: program("x"), size: 1 << 40})), "is not a file of at most 200 MB"},
		{"a bomb", zeros(t, begun(t, entry{name: top + "/x", size: 1 << 30}), 201), "unpacks to more than 200 MB"},
		{"a bomb behind the end", zeros(t, usual, 201), "unpacks to more than 200 MB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t, tt.archive)
			a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
			defer a.Close()
			to := p.file("program")
			err := a.Extract(t.Context(), to)
			testworld.Fails(t, err, tt.err)
			testworld.Fails(t, err, a.File)
			testworld.Contains(t, advice.Of(err), "tell its releaser")
			if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something is left: %v", err)
			}
		})
	}
}

// What is extracted is what was hashed: whatever is done to the file meanwhile.
func TestExtractChanged(t *testing.T) {
	archive, evil := stored(t, pack(t, good("one"))), stored(t, pack(t, good("two")))
	p := newPlace(t, archive)
	a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
	defer a.Close()
	p.write("evil", evil)
	testworld.Must(t, os.Rename(p.file("evil"), p.file(name)))
	testworld.Must(t, a.Extract(t.Context(), p.file("program")))
	testworld.Equal(t, string(testworld.Got(os.ReadFile(p.file("program")))(t)), program("one"))

	p = newPlace(t, archive)
	b := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
	defer b.Close()
	p.write(name, evil)
	testworld.Fails(t, b.Extract(t.Context(), p.file("program")), "has changed since it was checked")
	testworld.ErrorIs(t, testworld.Err(os.Lstat(p.file("program"))), fs.ErrNotExist)
}

// stored is a gzip of the data, not compressed: of the same size for the same size.
func stored(t *testing.T, data []byte) []byte {
	var out bytes.Buffer
	w := testworld.Got(gzip.NewWriterLevel(&out, gzip.NoCompression))(t)
	testworld.Got(w.Write(data))(t)
	testworld.Must(t, w.Close())
	return out.Bytes()
}

func TestExtractEnds(t *testing.T) {
	p := newPlace(t, zip(t, pack(t, good("one"))))
	a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
	defer a.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testworld.ErrorIs(t, a.Extract(ctx, p.file("program")), context.Canceled)
	testworld.ErrorIs(t, testworld.Err(os.Lstat(p.file("program"))), fs.ErrNotExist)
	testworld.ErrorIs(t, testworld.Err(release.Verify(ctx, p.file(name), release.Trust{})), context.Canceled)
	testworld.ErrorIs(t, a.Extract(t.Context(), p.file("none/program")), fs.ErrNotExist)
}

// A link at the new name is not followed.
func TestExtractLink(t *testing.T) {
	p := newPlace(t, zip(t, pack(t, good("one"))))
	a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
	defer a.Close()
	testworld.Must(t, os.Symlink(p.file("elsewhere"), p.file("program")))
	testworld.ErrorIs(t, a.Extract(t.Context(), p.file("program")), fs.ErrExist)
	testworld.ErrorIs(t, testworld.Err(os.Lstat(p.file("elsewhere"))), fs.ErrNotExist)
}

// Where there is no room, nothing is left, and the error says where to make some.
func TestExtractFull(t *testing.T) {
	p := newPlace(t, zip(t, pack(t, good(strings.Repeat("large", 1<<20)))))
	full := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", full).CombinedOutput(); err != nil {
		t.Logf("no mounts here: %s", out) // TestExtractLimit shows most of it
		return
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", full).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
	defer a.Close()
	err := a.Extract(t.Context(), full+"/program")
	testworld.ErrorIs(t, err, unix.ENOSPC)
	testworld.Fails(t, err, full+"/program")
	testworld.Equal(t, advice.Of(err), "make room in "+full+", then run this again")
	testworld.Len(t, testworld.Got(os.ReadDir(full))(t), 0)
}

// A limit on the size of files is one of the process, so the test is run again in another.
func TestExtractLimit(t *testing.T) {
	const role = "NETSKY_TEST_EXTRACT"
	if file := os.Getenv(role); file != "" {
		signal.Ignore(syscall.SIGXFSZ)
		a := testworld.Got(release.Verify(t.Context(), file, release.Trust{}))(t)
		testworld.Must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}))
		err := a.Extract(t.Context(), filepath.Join(filepath.Dir(file), "program"))
		testworld.ErrorIs(t, err, unix.EFBIG)
		return
	}
	p := newPlace(t, zip(t, pack(t, good(strings.Repeat("large", 1<<20)))))
	cmd := exec.Command(os.Args[0], "-test.run=^TestExtractLimit$", "-test.count=1")
	cmd.Env = append(os.Environ(), role+"="+p.file(name))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	testworld.ErrorIs(t, testworld.Err(os.Lstat(p.file("program"))), fs.ErrNotExist)
}

// FuzzExtract holds that whatever a tar has, Extract writes one program of this machine or nothing.
func FuzzExtract(f *testing.F) {
	usual := pack(f, good("one"))
	f.Add(usual, false)
	f.Add(zip(f, usual), true)
	f.Add(pack(f, []entry{{name: top + "/netsky", kind: tar.TypeSymlink, link: "/bin/sh"}}), false)
	f.Add(usual[:700], false)
	f.Fuzz(func(t *testing.T, data []byte, raw bool) {
		if !raw {
			data = zip(t, data)
		}
		p := newPlace(t, data)
		a := testworld.Got(release.Verify(t.Context(), p.file(name), release.Trust{}))(t)
		defer a.Close()
		err := a.Extract(t.Context(), p.file("program"))
		written, missing := os.ReadFile(p.file("program"))
		if (err == nil) != (missing == nil) {
			t.Fatalf("Extract = %v, and of the program: %v", err, missing)
		}
		if err == nil && !bytes.HasPrefix(written, []byte(program("")[:6])) {
			t.Fatalf("a program that begins with %q", written[:min(len(written), 8)])
		}
		list := testworld.Got(os.ReadDir(p.dir))(t)
		if want := 2 + map[bool]int{true: 1}[err == nil]; len(list) != want {
			t.Fatal(fmt.Sprint("files: ", list))
		}
	})
}
