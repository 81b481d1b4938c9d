package home_test

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
)

// tree is all that lies below a directory, with modes.
func tree(tb testing.TB, dir string) (list []string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		list = append(list, strings.TrimPrefix(path, dir)+" "+info.Mode().String())
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	return list
}

func TestWhatCanBeAHome(t *testing.T) {
	login := testworld.Got(user.Current())(t)
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, top string) // what there is below top, where HOME is top/user
		home  string                         // below top, unless absolute
		want  error                          // nil: Make makes it a home
	}{
		{"absent", nil, "h", nil},
		{"absent, three levels", nil, "a/b/h", nil},
		{"below HOME", nil, "user/.netsky", nil},
		{"empty", dirs("h"), "h", nil},
		{"empty and open to others", all(dirs("h"), mode("h", 0o755)), "h", home.ErrHomeOpen},
		{"with a configuration", all(dirs("h"), files("h/netsky.toml")), "h", nil},
		{"with a marker", all(dirs("h", "h/photos"), files("h/.netsky-home", "h/0.md")), "h", nil},
		{"marked, and open to others", all(dirs("h"), files("h/.netsky-home"), mode("h", 0o750)), "h", home.ErrHomeOpen},
		{"marked by hand, with a configuration", all(dirs("h"), files("h/.netsky-home", "h/netsky.toml")), "h", nil},
		{"marked by hand, with a log directory of a person's", all(dirs("h", "h/logs"), files("h/.netsky-home")), "h", home.ErrNotHome},
		{"marked by hand, with a database of a person's", all(dirs("h"), files("h/.netsky-home", "h/meta.db")), "h", home.ErrNotHome},
		{"marked by hand, used by an earlier netsky", all(dirs("h", "h/channels/agent", "h/state", "h/run/lock"), files("h/.netsky-home", "h/meta.db")), "h", nil},
		{"the marker is a link", all(dirs("h"), files("m"), link("m", "h/.netsky-home")), "h", home.ErrNotHome},
		{"the marker is a directory", dirs("h", "h/.netsky-home"), "h", home.ErrNotHome},
		{"of an earlier netsky", all(dirs("h", "h/channels/agent", "h/state/launch", "h/run/lock", "h/logs", "h/workspaces"),
			files("h/meta.db", "h/meta.db-wal", "h/tmux.conf", "h/netsky.toml", "h/meta.db.damaged")), "h", nil},
		{"of an earlier netsky, with a file of the owner's", all(dirs("h", "h/channels/agent"), files("h/0.md")), "h", home.ErrOccupied},
		{"names of netsky's, but no mailboxes", dirs("h", "h/logs", "h/state"), "h", home.ErrOccupied},
		{"mailboxes behind a link", all(dirs("h", "other/agent"), link("../other", "h/channels")), "h", home.ErrOccupied},
		{"a person's files", all(dirs("h", "h/photos"), files("h/letter.txt")), "h", home.ErrOccupied},
		{"a hidden file", all(dirs("h"), files("h/.git")), "h", home.ErrOccupied},
		{"a link to a home", all(dirs("real"), files("real/.netsky-home"), link("real", "h")), "h", home.ErrNotHome},
		{"a link to nothing", link("nothing", "h"), "h", home.ErrNotHome},
		{"a file", files("h"), "h", home.ErrNotHome},
		{"HOME", nil, "user", home.ErrNotHome},
		{"HOME, marked", files("user/.netsky-home"), "user", home.ErrNotHome},
		{"above HOME", nil, ".", home.ErrNotHome},
		{"above HOME, marked", files(".netsky-home"), ".", home.ErrNotHome},
		{"HOME by another path", link(".", "x"), "x/user", home.ErrNotHome},
		{"the root", nil, "/", home.ErrNotHome},
		{"the login directory", nil, login.HomeDir, home.ErrNotHome},
		{"above the login directory", nil, filepath.Dir(login.HomeDir), home.ErrNotHome},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top, err := os.MkdirTemp("", "n") // short: a home's path is
			testworld.Must(t, err)
			t.Cleanup(func() { os.RemoveAll(top) })
			dirs("user")(t, top)
			if tt.setup != nil {
				tt.setup(t, top)
			}
			dir := tt.home
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(top, dir)
			}
			h, err := home.Find(func(k string) string {
				return map[string]string{"HOME": filepath.Join(top, "user"), "NETSKY_HOME": dir}[k]
			})
			testworld.Must(t, err)
			before := tree(t, top)
			testworld.ErrorIs(t, h.Check(), tt.want, "Check()")
			if after := tree(t, top); !slices.Equal(before, after) {
				t.Errorf("Check() changed %q to %q", before, after)
			}
			_, err = h.Make()
			testworld.ErrorIs(t, err, tt.want, "Make()")
			if tt.want != nil {
				if after := tree(t, top); !slices.Equal(before, after) {
					t.Errorf("a refused Make() changed %q to %q", before, after)
				}
				return
			}
			testworld.Equal(t, h.Check(), nil, "after Make()")
			if info, err := os.Lstat(h.Path(home.MarkerFile)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("the marker: %v, %v", info, err)
			}
			// What it is made of later takes nothing from it.
			testworld.Must(t, os.WriteFile(h.Path("0.md"), nil, 0o600))
			testworld.Equal(t, testworld.Err(h.Make()), nil, "the second Make()")
		})
	}
}

// Whatever of netsky's is the first to write into an empty directory makes it a
// home: none is left half made and then refused.
func TestFirstWriteMarks(t *testing.T) {
	for name, write := range map[string]func(home.Dir) error{
		"desired":  func(h home.Dir) error { return home.Desired(h).Set("agent1", true, "owner") },
		"lock":     func(h home.Dir) error { l, err := h.Lock("up"); return errors.Join(err, l.Unlock()) },
		"append":   func(h home.Dir) error { f, err := h.OpenAppend("logs/x"); return errors.Join(err, f.Close()) },
		"the home": func(h home.Dir) error { _, err := h.Make(); return err },
	} {
		dir := testworld.Got(os.MkdirTemp("", "n"))(t)
		t.Cleanup(func() { os.RemoveAll(dir) })
		h := testworld.Got(home.At(dir))(t)
		byHand := markedByHand(t)
		for _, h := range []home.Dir{h, byHand} {
			testworld.Equal(t, write(h), nil, "%s", name)
			testworld.Equal(t, h.Check(), nil, "after %s", name)
		}
	}
}

// A home whose directory a person made keeps the mode that they gave it.
func TestNoForeignModeIsChanged(t *testing.T) {
	dir := testworld.Got(os.MkdirTemp("", "n"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := testworld.Got(home.At(dir))(t)
	testworld.Got(h.Make())(t)
	testworld.Must(t, os.Chmod(dir, 0o711))
	testworld.ErrorIs(t, testworld.Err(h.Make()), home.ErrHomeOpen, "Make()")
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("mode %v, %v: it was changed", info.Mode(), err)
	}
}

func all(steps ...func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		for _, step := range steps {
			step(t, top)
		}
	}
}

func dirs(names ...string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		for _, name := range names {
			testworld.Must(t, os.MkdirAll(filepath.Join(top, name), 0o700))
		}
	}
}

func files(names ...string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		for _, name := range names {
			testworld.Must(t, os.WriteFile(filepath.Join(top, name), nil, 0o600))
		}
	}
}

func link(to, name string) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		testworld.Must(t, os.Symlink(to, filepath.Join(top, name)))
	}
}

func mode(name string, perm fs.FileMode) func(*testing.T, string) {
	return func(t *testing.T, top string) {
		testworld.Must(t, os.Chmod(filepath.Join(top, name), perm))
	}
}
