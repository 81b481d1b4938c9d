package release

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/internal/advice"
)

// maxUnpacked is how much an archive may unpack to, in bytes.
const maxUnpacked = 200 << 20

// Extract writes the program to the new file to, and fsyncs it; its directory is the caller's to fsync.
// The archive is read to its end first, and its digest compared again, before the file is made
// executable. On an error no file is left. One that was there already is an error and stays.
func (a *Archive) Extract(ctx context.Context, to string) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = a.extract(ctx, f); err == nil {
		err = f.Chmod(0o755)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		return nil
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = advice.With(err, "make room in %s, then run this again", filepath.Dir(to))
	}
	return errors.Join(err, os.Remove(to))
}

// extract writes the program that the archive has to the file.
func (a *Archive) extract(ctx context.Context, to *os.File) error {
	damaged := func(err error) error {
		return advice.With(fmt.Errorf("%s: %w", a.File, err), "get another build of this release; tell its releaser")
	}
	sum := sha256.New()
	in := io.TeeReader(a.bytes(ctx), sum)
	zip, err := gzip.NewReader(in)
	if err != nil {
		return damaged(err)
	}
	unpacked := &bounded{in: zip, left: maxUnpacked}
	found, err := a.program(tar.NewReader(unpacked), to)
	if err == nil {
		_, err = io.Copy(io.Discard, unpacked) // what follows the end of the tar, with gzip's own checksum
	}
	switch ended := new(writeError); {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", a.File, ctx.Err())
	case errors.As(err, ended):
		return err
	case err != nil:
		return damaged(err)
	case hex.EncodeToString(sum.Sum(nil)) != a.SHA256:
		return advice.With(fmt.Errorf("%s: has changed since it was checked", a.File), "end what writes to it, then run this again")
	case !found:
		return damaged(errors.New("has no program netsky"))
	}
	return nil
}

// program reads all entries, and writes that of the program to the file.
func (a *Archive) program(in *tar.Reader, to *os.File) (found bool, err error) {
	top := strings.TrimSuffix(filepath.Base(a.File), ".tar.gz")
	for {
		h, err := in.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		name := strings.TrimSuffix(h.Name, "/")
		dir, _, _ := strings.Cut(name, "/")
		switch {
		case dir != top || name != path.Clean(name):
			return found, fmt.Errorf("its entry %.200q is not below %s", h.Name, top)
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
			return found, fmt.Errorf("its entry %.200q is a link or a device, which no release has", h.Name)
		case name != top+"/netsky":
			continue
		case found:
			return found, fmt.Errorf("has two programs %s", name)
		case h.Typeflag == tar.TypeReg && h.Size < elfHead:
			return found, errNotELF
		case h.Typeflag != tar.TypeReg || h.Size > maxUnpacked:
			return found, fmt.Errorf("its entry %s is not a file of at most %d MB", name, maxUnpacked>>20)
		}
		found = true
		if err := writeProgram(in, to); err != nil {
			return found, err
		}
	}
}

// A writeError is one of the file that is written, not of the archive.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

func writeProgram(in io.Reader, to *os.File) error {
	head := make([]byte, elfHead)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	if err := runsHere(head); err != nil {
		return err
	}
	out := output{to}
	if _, err := out.Write(head); err != nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

// An output is a file whose errors are writeErrors.
type output struct{ file *os.File }

func (o output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if err != nil {
		err = writeError{err}
	}
	return n, err
}

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// elfHead is how much of an ELF file says for which machine it is, in bytes.
const elfHead = 20

var errNotELF = errors.New("its program is not an ELF file of 64 bits")

// runsHere reports why a file that begins like this is no program of this machine.
func runsHere(head []byte) error {
	if string(head[:6]) != elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)}) {
		return errNotELF
	}
	kind, machine := elf.Type(binary.LittleEndian.Uint16(head[16:])), elf.Machine(binary.LittleEndian.Uint16(head[18:]))
	if kind != elf.ET_EXEC && kind != elf.ET_DYN {
		return fmt.Errorf("its program is an ELF file of the kind %v, which can't be run", kind)
	}
	if want, ok := machines[runtime.GOARCH]; !ok || machine != want {
		return fmt.Errorf("its program is for %v, and this machine is %s", machine, runtime.GOARCH)
	}
	return nil
}

// bounded fails when more is read than is left.
type bounded struct {
	in   io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("unpacks to more than %d MB", maxUnpacked>>20)
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
