package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/mcp"
	"netsky/home"
	"netsky/phone"
	"netsky/phone/record"
	"netsky/store"
)

// Tools are what a model's phone tools need.
type Tools struct {
	Home home.Dir
	// Secrets are the files with netsky's passwords, wherever they are.
	Secrets []string
}

var _ mcp.Phone = Tools{}

// History implements [mcp.Phone].
func (t Tools) History(ctx context.Context, limit int) (string, error) {
	list, err := Talk(ctx, t.Home, limit)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "no texts are on record", nil
	}
	lines, size := phone.Transcript(list), 0
	for i := len(lines) - 1; i >= 0; i-- {
		if size += len(lines[i]) + 1; size > mostHistory {
			lines = append([]string{fmt.Sprintf("(%d older texts are left out: there is no room for more)", i+1)}, lines[i+1:]...)
			break
		}
	}
	return strings.Join(lines, "\n"), nil
}

// mostHistory is how many bytes of texts a model gets at once, the newest: the end of a longer
// result would be cut off.
const mostHistory = 16 << 10

// Talk returns the last texts from and to the phone that are on record, the oldest first.
func Talk(ctx context.Context, h home.Dir, limit int) ([]record.Turn, error) {
	db, err := store.OpenRead(ctx, h)
	if errors.Is(err, fs.ErrNotExist) {
		return []record.Turn{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return record.Records{DB: db}.Talk(ctx, limit)
}

// MaxFile is the size of the largest file that is sent, in bytes.
const MaxFile = 16 << 20

// Attach implements [mcp.Phone].
func (t Tools) Attach(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s: must be an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if err := Sendable(t.Home, real, t.Secrets...); err != nil {
		return "", err
	}
	f, err := os.OpenFile(real, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file", path)
	case info.Size() > MaxFile:
		return "", fmt.Errorf("%s: has %d bytes; at most %d MiB are sent", path, info.Size(), MaxFile>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return "", err
	}
	switch {
	case len(data) > MaxFile:
		return "", fmt.Errorf("%s: grows; at most %d MiB are sent", path, MaxFile>>20)
	case info.Size() == 0 && len(data) > 0: // as those of /proc, which hold every variable of the environment
		return "", fmt.Errorf("%s: says that it is empty, and has content: not a plain file", path)
	}
	name := strings.ToLower(rand.Text()[:8]) + "-" + clean(filepath.Base(path))
	owner := agent.Owner
	if host := home.OwnersHost(t.Home); host != "" {
		owner = owner.At(host)
	}
	return "attach/" + name, t.Home.WriteFile(home.Mailbox(owner)+"/attach/"+name, data, true)
}

// clean returns a file's name with letters, digits and some signs only.
func clean(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, name)
	return name[max(0, len(name)-80):]
}

var (
	errOurs   = errors.New("belongs to netsky: only files outside of its home, and those in workspaces/, are sent")
	errSecret = errors.New("holds a password of netsky's")
)

// Sendable returns why a file is not to be sent: netsky's own files may hold secrets, and so do
// the secrets, under whatever name. Those in the owner's mailbox were put there to be sent.
//
// Files are compared, not names: where a file system takes NETSKY for netsky, one file has many.
func Sendable(h home.Dir, path string, secrets ...string) error {
	root, err := os.Stat(h.Root())
	if err != nil {
		return err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		if s, err := os.Stat(secret); err == nil && os.SameFile(s, info) {
			return fmt.Errorf("%s: %w", path, errSecret)
		}
	}
	var free []os.FileInfo
	for _, dir := range []string{h.Path("workspaces"), h.Path(home.Mailbox(agent.Owner), "attach")} {
		if d, err := os.Lstat(dir); err == nil && d.IsDir() {
			free = append(free, d)
		}
	}
	ours := os.SameFile(root, info)
	for dir := filepath.Dir(path); !ours; dir = filepath.Dir(dir) {
		above, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(free, func(d os.FileInfo) bool { return os.SameFile(d, above) }) {
			return nil
		}
		if ours = os.SameFile(root, above); !ours && dir == filepath.Dir(dir) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", path, errOurs)
}
