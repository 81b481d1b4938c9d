package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/proc"
)

const (
	accessFile = home.PhoneAccess
	maxFile    = 64 << 10
)

// A file is what accessFile holds.
type file struct {
	Allow []record `json:"allow"`
	Deny  []record `json:"deny"`
}

type record struct {
	Handle string    `json:"handle"`
	Added  time.Time `json:"added"`
	By     string    `json:"by"`
}

func (*file) has(list []record, handle string) bool {
	return slices.ContainsFunc(list, func(r record) bool { return r.Handle == handle })
}

func (*file) remove(list *[]record, handle string) bool {
	n := len(*list)
	*list = slices.DeleteFunc(*list, func(r record) bool { return r.Handle == handle })
	return len(*list) < n
}

func (f *file) allow(r record) bool {
	denied := f.remove(&f.Deny, r.Handle)
	if f.has(f.Allow, r.Handle) {
		return denied
	}
	f.Allow = append(f.Allow, r)
	return true
}

func (f *file) save(h home.Dir) error {
	f.Allow, f.Deny = append([]record{}, f.Allow...), append([]record{}, f.Deny...) // no null
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", accessFile, err)
	}
	if len(data) >= maxFile {
		return fmt.Errorf("%s: would be larger than %d bytes", h.Path(accessFile), maxFile)
	}
	return h.WriteFile(accessFile, append(data, '\n'), true)
}

// ErrFile is returned if the file cannot be trusted. Then nobody may speak.
var ErrFile = errors.New("nobody may speak by phone")

// read returns what the file says; nothing if there is none.
func read(h home.Dir) (f file, err error) {
	data, err := contents(h, accessFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		f, err = parse(data)
	}
	if err != nil {
		where := h.Path(accessFile)
		err = fmt.Errorf("%s: %w: %w", where, err, ErrFile)
		return file{}, advice.With(err, "correct the file, or move it away (`mv %s %s`): then only the handles in %s may speak, and denials are gone",
			advice.Word(where), advice.Word(where+".aside"), h.Path(home.ConfigFile))
	}
	return f, nil
}

// contents reads a file that nobody else can have written. Of one that an editor changes in
// place meanwhile it may get half of each version; the kernel's times show most of that, and
// nothing shows all. netsky itself replaces the file.
func contents(h home.Dir, rel string) ([]byte, error) {
	dir, err := h.OpenDir(path.Dir(rel), false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd, err := proc.Openat(int(dir.Fd()), path.Base(rel), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == unix.ELOOP {
		return nil, home.ErrLink
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return nil, err
	}
	switch mode := uint32(before.Mode); {
	case mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.New("not a regular file")
	case mode&0o022 != 0:
		return nil, fmt.Errorf("its mode is %04o, so others can write to it", mode&0o777)
	case int(before.Uid) != os.Geteuid():
		return nil, fmt.Errorf("it belongs to user %d", before.Uid)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes", maxFile)
	}
	if err := unix.Fstat(fd, &after); err != nil || before.Mtim != after.Mtim || before.Size != after.Size {
		return nil, errors.New("is being changed")
	}
	return data, nil
}

// parse reads the file's text. encoding/json alone would take a key twice, in another case,
// or with null: each of them may be a denial that does not count.
func parse(data []byte) (f file, err error) {
	if !utf8.Valid(data) {
		return f, errors.New("not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	err = object(d, "", map[string]func(string) error{
		"allow": func(at string) (err error) { f.Allow, err = records(d, at); return err },
		"deny":  func(at string) (err error) { f.Deny, err = records(d, at); return err },
	})
	if err == nil && len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		err = errors.New("something follows the JSON object")
	}
	if err != nil {
		return file{}, err
	}
	return f, nil
}

// object reads an object with exactly these keys, each at most once.
func object(d *json.Decoder, at string, keys map[string]func(at string) error) error {
	if err := delim(d, '{', at, "an object"); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return malformed(at, err)
		}
		key, _ := t.(string)
		where := key
		if at != "" {
			where = at + "." + key
		}
		value, known := keys[key]
		switch {
		case !known:
			return fmt.Errorf("unknown key %q", where)
		case seen[key]:
			return fmt.Errorf("key %q is there twice", where)
		}
		seen[key] = true
		if err := value(where); err != nil {
			return err
		}
	}
	for key := range keys {
		if at != "" && !seen[key] {
			return fmt.Errorf("key %q is missing", at+"."+key)
		}
	}
	return delim(d, '}', at, "the object's end")
}

func records(d *json.Decoder, at string) (list []record, err error) {
	if err := delim(d, '[', at, "a list"); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for i := 0; d.More(); i++ {
		var r record
		at := fmt.Sprintf("%s[%d]", at, i)
		err := object(d, at, map[string]func(string) error{
			"handle": func(at string) (err error) { r.Handle, err = handleAt(d, at); return err },
			"by": func(at string) (err error) {
				if r.By, err = text(d, at); err == nil && r.By != ByTerminal && r.By != ByPairing {
					err = fmt.Errorf("key %q: %q is neither %q nor %q", at, r.By, ByTerminal, ByPairing)
				}
				return err
			},
			"added": func(at string) (err error) {
				s, err := text(d, at)
				if err == nil {
					if r.Added, err = time.Parse(time.RFC3339Nano, s); err != nil {
						err = fmt.Errorf("key %q: not a time as 2026-01-31T12:00:00Z", at)
					}
				}
				return err
			},
		})
		if err != nil {
			return nil, err
		}
		if seen[r.Handle] {
			return nil, fmt.Errorf("key %q: %q is in the list twice", at+".handle", r.Handle)
		}
		seen[r.Handle] = true
		list = append(list, r)
	}
	return list, delim(d, ']', at, "the list's end")
}

func handleAt(d *json.Decoder, at string) (string, error) {
	s, err := text(d, at)
	if err != nil {
		return "", err
	}
	switch handle, err := normal(s); {
	case err != nil:
		return "", fmt.Errorf("key %q: %w", at, err)
	case handle != s:
		return "", fmt.Errorf("key %q: %q must be written %q", at, s, handle)
	}
	return s, nil
}

func text(d *json.Decoder, at string) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", malformed(at, err)
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("key %q: must be a text", at)
	}
	return s, nil
}

func delim(d *json.Decoder, want json.Delim, at, what string) error {
	t, err := d.Token()
	if err != nil {
		return malformed(at, err)
	}
	if t != want {
		if at == "" {
			return fmt.Errorf("not JSON as netsky writes it: %s is expected", what)
		}
		return fmt.Errorf("key %q: %s is expected", at, what)
	}
	return nil
}

func malformed(at string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends in the middle")
	}
	if at == "" {
		return fmt.Errorf("not JSON: %w", err)
	}
	return fmt.Errorf("key %q: not JSON: %w", at, err)
}
