package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"netsky/internal/execx"
)

// converters are the programs that make a JPEG of a HEIC picture; the first is part of macOS.
var converters = []struct {
	name string
	args func(from, to string) []string
}{
	{"sips", func(from, to string) []string { return []string{"-s", "format", "jpeg", from, "--out", to} }},
	{"heif-convert", func(from, to string) []string { return []string{"-q", "90", from, to} }},
	{"heif-dec", func(from, to string) []string { return []string{"-q", "90", from, to} }},
	{"magick", func(from, to string) []string { return []string{"heic:" + from, "jpeg:" + to} }},
}

const (
	convertWithin = 30 * time.Second
	mostJPEG      = 16 << 20
)

// convert makes a JPEG of a picture, by the first converter on PATH.
func (p Phone) convert(ctx context.Context, picture []byte) (jpeg []byte, err error) {
	for _, c := range converters {
		file := execx.Find(execx.Value(p.Env, "PATH"), c.name)
		if file == "" {
			continue
		}
		dir, err := os.MkdirTemp("", "netsky-picture-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		from, to := filepath.Join(dir, "in.heic"), filepath.Join(dir, "out.jpg")
		if err := os.WriteFile(from, picture, 0o600); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, convertWithin)
		defer cancel()
		cmd := exec.CommandContext(ctx, file, c.args(from, to)...)
		cmd.Env, cmd.Dir, cmd.WaitDelay = execx.Inherited(p.Env), dir, time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", c.name, err, bytes.TrimSpace(out[:min(len(out), 200)]))
		}
		info, err := os.Lstat(to)
		if err == nil && (!info.Mode().IsRegular() || info.Size() == 0 || info.Size() > mostJPEG) {
			err = errors.New(c.name + " has made no usable picture")
		}
		if err != nil {
			return nil, err
		}
		return os.ReadFile(to)
	}
	return nil, errors.New("no program that converts HEIC is on PATH: sips, heif-convert, heif-dec or magick")
}
