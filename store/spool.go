package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/home"
)

// The spool holds what verbs could not write: a flood there must not fill the disk, so
// past these limits a record is refused.
const (
	maxSpoolFiles = 10_000
	maxSpoolBytes = 64 << 20
	maxSpoolFile  = 4 << 20
)

// A Spool summarises state/spool.
type Spool struct {
	Files int   `json:"files"` // waiting to be loaded into the database
	Bad   int   `json:"bad"`   // could not be loaded, kept with a .why
	Bytes int64 `json:"bytes"` // of all of them
}

// SpoolSize returns the size of the spool; a missing one is empty.
func SpoolSize(home home.Dir) (Spool, error) {
	s, _, err := readSpool(home)
	return s, err
}

func readSpool(h home.Dir) (s Spool, names []string, err error) {
	dir, err := h.OpenDir(home.SpoolDir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, nil
	}
	if err != nil {
		return s, nil, err
	}
	defer dir.Close()
	all, err := dir.Readdirnames(-1)
	if err != nil {
		return s, nil, err
	}
	for _, name := range all {
		switch {
		case strings.HasPrefix(name, "."):
			continue // being written, or left by a crash
		case strings.HasSuffix(name, ".json"):
			s.Files++
			names = append(names, name)
		case strings.HasSuffix(name, ".bad"):
			s.Bad++
		}
		var info unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW) == nil {
			s.Bytes += info.Size
		}
	}
	slices.Sort(names)
	return s, names, nil
}

// spool writes the ops as one file, whose name sorts by time.
func spool(h home.Dir, ops []Op) error {
	data, err := encodeOps(ops)
	if err != nil {
		return err
	}
	if len(data) > maxSpoolFile {
		return fmt.Errorf("spool: a record of %d bytes exceeds the limit of %d", len(data), maxSpoolFile)
	}
	s, _, err := readSpool(h)
	if err != nil {
		return err
	}
	if s.Files+s.Bad >= maxSpoolFiles || s.Bytes+int64(len(data)) > maxSpoolBytes {
		return fmt.Errorf("spool: full: %d files, %d bytes", s.Files+s.Bad, s.Bytes)
	}
	name := fmt.Sprintf("%020d-%010d-%s.json", time.Now().UnixNano(), os.Getpid(), agent.NewStart())
	return h.WriteFile(home.SpoolDir+"/"+name, data, true)
}

// ReplaySpool loads the spool into the database, the oldest first, and returns how many
// files it loaded. An invalid file is set aside as .bad with the reason in a .why beside
// it, and the rest continues; the error names all of those. Any other error ends the pass
// and leaves the remaining files. A crash between recording a file and removing it is
// harmless: ops are idempotent.
func (db *DB) ReplaySpool(ctx context.Context) (n int, err error) {
	_, names, err := readSpool(db.home)
	if err != nil {
		return 0, err
	}
	var bad []error
	for _, name := range names {
		rel := home.SpoolDir + "/" + name
		err := db.replay(ctx, rel)
		if err == nil {
			if err := db.home.Remove(rel); err != nil {
				return n, errors.Join(append(bad, err)...)
			}
			n++
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // someone removed it
		}
		if ctx.Err() != nil || !errors.Is(err, errOp) && db.probe(ctx) != nil {
			return n, errors.Join(append(bad, err)...)
		}
		bad = append(bad, fmt.Errorf("%s: %w", name, err))
		if err := db.setAside(rel, err); err != nil {
			return n, errors.Join(append(bad, err)...)
		}
	}
	return n, errors.Join(bad...)
}

func (db *DB) replay(ctx context.Context, rel string) error {
	data, err := db.home.ReadFile(rel, maxSpoolFile)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errOp, err)
	}
	ops, err := decodeOps(data)
	if err != nil {
		return err
	}
	return db.Apply(ctx, ops...)
}

func (db *DB) setAside(rel string, why error) error {
	base := strings.TrimSuffix(rel, ".json")
	if err := db.home.WriteFile(base+".why", []byte(why.Error()+"\n"), false); err != nil {
		return err
	}
	return os.Rename(db.home.Path(rel), db.home.Path(base+".bad"))
}

// probe distinguishes a database that takes nothing from a record that it refuses: it
// writes and removes a row, down to the disk.
func (db *DB) probe(ctx context.Context) error { return db.Apply(ctx, probe{}) }

type probe struct{}

func (probe) name() string      { return "probe" }
func (p probe) stamped(Time) Op { return p }
func (probe) apply(t *tx) error {
	const key = "store.probe"
	if err := t.exec("INSERT INTO settings (key, value, updated) VALUES (?, '', 0) ON CONFLICT DO NOTHING", key); err != nil {
		return err
	}
	return t.exec("DELETE FROM settings WHERE key = ?", key)
}
