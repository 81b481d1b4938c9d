package chatdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// attachmentsDir is where Messages keeps attachments, beside chat.db.
const attachmentsDir = "Attachments"

// Attachments returns the directory in which Messages keeps attachments.
func (d *DB) Attachments() string { return filepath.Join(filepath.Dir(d.o.Path), attachmentsDir) }

// Open opens an attachment's file, if it is a regular file below Messages' directory of
// attachments and has at most limit bytes; no link leads out of it. Reading ends at limit, also if
// the file grows.
func (d *DB) Open(ctx context.Context, guid string, limit int64) (io.ReadCloser, error) {
	var path string
	err := d.view(ctx, func(v *view) error {
		if !v.schema.has("attachment", "guid filename") {
			return fmt.Errorf("attachment %q: this chat.db names no files", guid)
		}
		ok, err := v.one("SELECT coalesce(filename, '') FROM attachment WHERE guid = ?", []any{guid}, &path)
		if err == nil && !ok {
			err = fmt.Errorf("attachment %q: %w", guid, fs.ErrNotExist)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	f, err := d.openBelow(path, limit)
	if err != nil {
		return nil, fmt.Errorf("attachment %q: %w", guid, err)
	}
	return f, nil
}

func (d *DB) openBelow(path string, limit int64) (io.ReadCloser, error) {
	if path == "" {
		return nil, errors.New("not downloaded")
	}
	rest, ok := strings.CutPrefix(path, "~/Library/Messages/"+attachmentsDir+"/")
	if !ok {
		rest, ok = strings.CutPrefix(path, d.Attachments()+"/")
	}
	if !ok || !filepath.IsLocal(rest) {
		return nil, fmt.Errorf("%q is not in Messages' directory of attachments", path)
	}
	root, err := os.OpenRoot(d.Attachments())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// A pipe would be waited for otherwise.
	f, err := root.OpenFile(rest, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%q is not a regular file", path)
	case info.Size() > limit:
		err = fmt.Errorf("%q has %d bytes; at most %d are read", path, info.Size(), limit)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return limited{io.LimitReader(f, limit), f}, nil
}

type limited struct {
	io.Reader
	io.Closer
}
