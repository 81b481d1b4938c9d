// Package release tells how a netsky was installed, and checks a release before anything of it is
// installed.
//
// A release is a directory with archives netsky_VERSION_linux_ARCH.tar.gz, SHA256SUMS with their
// digests, and SHA256SUMS.sig, which ssh-keygen has signed. [Verify] vouches for an archive: it is for
// this machine, its bytes are those in SHA256SUMS and, where signers are configured, one of them has
// signed that file. The version is a part of the signed name, so that nobody can pass an old release
// off as a new one; whether to go back to an older version is the caller's decision. [Archive.Extract]
// writes only bytes that were verified, and only one file, to a name that the caller gives: nothing in
// an archive names a path on this machine.
//
// Nothing is kept on disk. If the process is killed, Extract leaves an incomplete file that is not
// executable.
package release

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/internal/proc"
)

const (
	sumsName = "SHA256SUMS"
	sigName  = sumsName + ".sig"
	space    = "netsky" // the namespace of signatures
	maxSums  = 1 << 20  // bytes
	maxFile  = 200 << 20
)

// An Archive is a verified release archive. Its file stays open until Close.
type Archive struct {
	File     string // as the caller named it
	Version  string
	SHA256   string // in hex
	SignedBy string // the principal of the signers file; "" means that nobody vouches for it

	file *os.File
	size int64
}

// Trust is whom to believe.
type Trust struct {
	Signers string   // the allowed_signers file (ssh-keygen(1)); "" if none is configured
	Environ []string // in which ssh-keygen runs
}

// Verify checks the archive: its name says that it is for this machine, SHA256SUMS beside it names it
// and has its digest, and, if there are signers, SHA256SUMS.sig beside it is the signature of one of
// them. Without signers the signature is not looked at.
func Verify(ctx context.Context, file string, t Trust) (*Archive, error) {
	name := filepath.Base(file)
	version, err := fitting(name)
	if err != nil {
		return nil, err
	}
	a := &Archive{File: file, Version: version}
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	if err := a.check(ctx, name, t); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

func (a *Archive) check(ctx context.Context, name string, t Trust) error {
	sums, err := beside(a.File, sumsName)
	if err != nil {
		return err
	}
	if t.Signers != "" {
		if a.SignedBy, err = t.signer(ctx, a.File, sums); err != nil {
			return err
		}
	}
	want, err := parseSums(sums, name)
	if err != nil {
		return fmt.Errorf("%s: %w", nextTo(a.File, sumsName), err)
	}
	if a.SHA256 != want {
		return advice.With(fmt.Errorf("%s: its SHA-256 is %s, and %s says %s", a.File, a.SHA256, sumsName, want), "download it again")
	}
	return nil
}

// open opens the file and hashes it.
func (a *Archive) open(ctx context.Context) (err error) {
	fd, err := proc.Open(a.File, unix.O_RDONLY|unix.O_NONBLOCK) // a FIFO would block
	if err != nil {
		return &fs.PathError{Op: "open", Path: a.File, Err: err}
	}
	a.file = os.NewFile(uintptr(fd), a.File)
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	info, err := a.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file", a.File)
	case info.Size() > maxFile:
		return fmt.Errorf("%s: is larger than %d MB, which no release is", a.File, maxFile>>20)
	}
	a.size = info.Size()
	sum := sha256.New()
	if _, err := io.Copy(sum, a.bytes(ctx)); err != nil {
		return fmt.Errorf("%s: %w", a.File, err)
	}
	a.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// bytes returns what is in the file, from its beginning. Reading ends with ctx.
func (a *Archive) bytes(ctx context.Context) io.Reader {
	return reader{ctx, io.NewSectionReader(a.file, 0, a.size)}
}

// A reader fails when its context has ended.
type reader struct {
	ctx context.Context
	in  io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// Close closes the file.
func (a *Archive) Close() error { return a.file.Close() }

var archiveName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^netsky_([^_/]+)_([a-z0-9]+)_([a-z0-9]+)\.tar\.gz$`) })

// nameOf returns the name of this machine's archive of that version.
func nameOf(version string) string {
	return "netsky_" + version + "_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"
}

// fitting returns the version that an archive's name says, if it is for this machine.
func fitting(name string) (version string, err error) {
	if strings.HasSuffix(name, ".deb") {
		return "", advice.With(fmt.Errorf("%q is a package, which apt installs", name), "`sudo apt install ./%s`, or get %s", name, nameOf("VERSION"))
	}
	m := archiveName().FindStringSubmatch(name)
	if m == nil || !semver().MatchString(m[1]) {
		return "", advice.With(fmt.Errorf("%q is not the name of a release", name), "use its own name, as %s", nameOf("VERSION"))
	}
	if m[2] != runtime.GOOS || m[3] != runtime.GOARCH {
		return "", advice.With(fmt.Errorf("%s is for %s/%s, and this machine is %s/%s", name, m[2], m[3], runtime.GOOS, runtime.GOARCH), "get %s", nameOf(m[1]))
	}
	return m[1], nil
}

// Newest returns the archive of the newest version that a directory has for this machine, "" if there is
// none. Of equal versions it is the one that was modified last. It verifies nothing.
func Newest(dir string) (file, version string, err error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return "", "", err
	}
	var at time.Time
	for _, e := range list {
		v, err := fitting(e.Name())
		if err != nil {
			continue
		}
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if file == "" || cmp.Or(Compare(v, version), info.ModTime().Compare(at)) > 0 {
			file, version, at = name, v, info.ModTime()
		}
	}
	return file, version, nil
}

func nextTo(file, name string) string { return filepath.Join(filepath.Dir(file), name) }

// beside reads a file of the release that the archive is of.
func beside(file, name string) ([]byte, error) {
	data, err := home.ReadOwn(nextTo(file, name), maxSums)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, advice.With(fmt.Errorf("%s: there is no %s beside it, without which it can't be checked", file, name), "download the release's %s into the same directory", name)
	}
	return data, err
}

var sumLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{64}) [ *]([A-Za-z0-9][A-Za-z0-9._+~-]*)$`)
})

// parseSums returns the digest of the file in a list as sha256sum writes it. A list with a line that
// sha256sum would not write for files in one directory is refused, as is one that names a file twice:
// another reader may understand it in another way.
func parseSums(data []byte, name string) (digest string, err error) {
	seen := make(map[string]bool)
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		m := sumLine().FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return "", advice.With(fmt.Errorf("line %d is not a digest and the name of a file", n), "download the release's %s again", sumsName)
		}
		if seen[m[2]] {
			return "", advice.With(fmt.Errorf("line %d names %s a second time", n, m[2]), "download the release's %s again", sumsName)
		}
		seen[m[2]] = true
		if m[2] == name {
			digest = m[1]
		}
	}
	if digest == "" {
		return "", advice.With(fmt.Errorf("does not name %s", name), "download the release's archive and its %s into one directory", sumsName)
	}
	return digest, nil
}

// signer returns who has signed the list beside the file: the first of the signers with that key, whose
// signature is then checked against the bytes that were read.
func (t Trust) signer(ctx context.Context, file string, sums []byte) (string, error) {
	if _, err := beside(file, sigName); err != nil {
		return "", err
	}
	if _, err := home.ReadOwn(t.Signers, maxSums); err != nil {
		return "", advice.With(fmt.Errorf("signers: %w", err), "name a file as ssh-keygen(1) describes under ALLOWED SIGNERS")
	}
	keygen := execx.Find(execx.Value(t.Environ, "PATH"), "ssh-keygen")
	if keygen == "" {
		return "", advice.With(errors.New("ssh-keygen is not on PATH, and signers are configured"), "install OpenSSH's client")
	}
	ask := func(in io.Reader, args ...string) ([]byte, error) {
		return execx.Question{Program: keygen, Args: args, Env: append(execx.Without(t.Environ, "LC_ALL"), "LC_ALL=C"), In: in}.Ask(ctx)
	}
	sig := nextTo(file, sigName)
	refused := func(err error) error {
		return advice.With(fmt.Errorf("%s: is not a signature of %s by anybody in %s: %w", sig, sumsName, t.Signers, err),
			"install nothing of this release, unless its releaser confirms its key to you")
	}
	out, err := ask(nil, "-Y", "find-principals", "-s", sig, "-f", t.Signers)
	if err != nil {
		return "", refused(err)
	}
	who := firstOf(string(out))
	if _, err = ask(bytes.NewReader(sums), "-Y", "verify", "-f", t.Signers, "-I", who, "-n", space, "-s", sig); err != nil {
		return "", refused(err)
	}
	return who, nil
}
