package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// TestMain lets the test binary be the other process that a test needs.
func TestMain(m *testing.M) {
	if what := os.Getenv("STORE_TEST_CHILD"); what != "" {
		if err := child(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func mustOpen(tb testing.TB, home home.Dir) *store.DB {
	tb.Helper()
	db := testworld.Got(store.Open(tb.Context(), home))(tb)
	tb.Cleanup(func() { testworld.Must(tb, db.Close()) })
	return db
}

func mustApply(tb testing.TB, db *store.DB, ops ...store.Op) {
	tb.Helper()
	testworld.Must(tb, db.Apply(tb.Context(), ops...))
}

// mustSQL runs statements on the file past the package.
func mustSQL(tb testing.TB, file string, queries ...string) {
	tb.Helper()
	db := testworld.Got(sql.Open("sqlite3", file))(tb)
	defer db.Close()
	for _, q := range queries {
		testworld.Got(db.Exec(q))(tb)
	}
}

// dump is all that is in the tables, as text, without the rows' numbers.
func dump(tb testing.TB, h home.Dir) string {
	tb.Helper()
	db := testworld.Got(sql.Open("sqlite3", "file:"+h.Path(home.DBFile)+"?mode=ro"))(tb)
	defer db.Close()
	var out strings.Builder
	for _, table := range tables {
		rows := testworld.Got(db.Query("SELECT * FROM " + table + " ORDER BY 2, 3"))(tb)
		names := testworld.Got(rows.Columns())(tb)
		for rows.Next() {
			row := make([]any, len(names))
			to := make([]any, len(names))
			for i := range row {
				to[i] = &row[i]
			}
			testworld.Must(tb, rows.Scan(to...))
			for i, v := range row {
				if names[i] != "seq" {
					fmt.Fprintf(&out, "%s.%s=%v ", table, names[i], v)
				}
			}
			out.WriteByte('\n')
		}
		testworld.Must(tb, rows.Err())
		rows.Close()
	}
	return out.String()
}

var tables = []string{"actors", "sessions", "tasks", "task_dependencies", "messages", "deliveries",
	"actor_inputs", "notes", "logs", "settings", "self_update_runs"}

func TestMigrate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, file string)
	}{
		{"no file", func(*testing.T, string) {}},
		{"empty file", func(t *testing.T, file string) { testworld.Must(t, os.WriteFile(file, nil, 0o644)) }},
		{"user_version 0", func(t *testing.T, file string) { mustSQL(t, file, "CREATE TABLE other (a)") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := testworld.Home(t)
			file := h.Path(home.DBFile)
			tt.setup(t, file)
			db := mustOpen(t, h)
			mustApply(t, db, store.AddLog{Text: "one"})
			testworld.Must(t, db.Check(t.Context()))
			raw, err := sql.Open("sqlite3", file)
			testworld.Must(t, err)
			defer raw.Close()
			var version int
			var mode string
			testworld.Must(t, raw.QueryRow("PRAGMA user_version").Scan(&version))
			testworld.Must(t, raw.QueryRow("PRAGMA journal_mode").Scan(&mode))
			if version != store.Schema() || mode != "wal" {
				t.Errorf("user_version %d, journal_mode %s, want %d, wal", version, mode, store.Schema())
			}
			for _, table := range tables {
				var def string
				if err := raw.QueryRow("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?", table).Scan(&def); err != nil {
					t.Errorf("%s: %v", table, err)
				} else if !strings.Contains(def, ") STRICT") {
					t.Errorf("%s is not STRICT", table)
				}
			}
			left, err := fs.Glob(os.DirFS(h.Root()), ".tmp-*")
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, home home.Dir, file string)
		is    error
		text  string
	}{
		{"newer schema", func(t *testing.T, _ home.Dir, file string) {
			mustSQL(t, file, "PRAGMA user_version = 99")
		}, store.ErrNewer, "99"},
		{"garbage", func(t *testing.T, _ home.Dir, file string) {
			testworld.Must(t, os.WriteFile(file, bytes.Repeat([]byte("no database "), 1000), 0o600))
		}, nil, "not a database"},
		{"link", func(t *testing.T, home home.Dir, file string) {
			testworld.Must(t, os.WriteFile(home.Path("other.db"), nil, 0o600))
			testworld.Must(t, os.Symlink(home.Path("other.db"), file))
		}, home.ErrLink, "symbolic link"},
		{"directory", func(t *testing.T, _ home.Dir, file string) { testworld.Must(t, os.Mkdir(file, 0o700)) }, nil, "not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := testworld.Home(t)
			file := h.Path(home.DBFile)
			tt.setup(t, h, file)
			for which, open := range map[string]func(context.Context, home.Dir) (*store.DB, error){"Open": store.Open, "OpenRead": store.OpenRead} {
				db, err := open(t.Context(), h)
				if err == nil {
					db.Close()
					t.Errorf("%s: no error", which)
					continue
				}
				if tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("%s: %v, want %v", which, err, tt.is)
				}
				if !strings.Contains(err.Error(), tt.text) || strings.Count(err.Error(), file) != 1 {
					t.Errorf("%s: %q, want the file once and %q", which, err, tt.text)
				}
			}
		})
	}
}

func TestOpenReadMakesNothing(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	testworld.ErrorIs(t, testworld.Err(store.OpenRead(t.Context(), h)), fs.ErrNotExist, "OpenRead without a file")
	mustSQL(t, h.Path(home.DBFile), "CREATE TABLE other (a)")
	testworld.Fails(t, testworld.Err(store.OpenRead(t.Context(), h)), "older", "OpenRead of schema 0")
	testworld.Must(t, mustOpen(t, h).Close())
	db := testworld.Got(store.OpenRead(t.Context(), h))(t)
	defer db.Close()
	testworld.Fails(t, db.Apply(t.Context(), store.AddLog{Text: "x"}), "", "Apply on a read-only database: no error")
}

// Nobody else may read the records, whatever the umask and whatever was there.
func TestMode(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	for _, before := range []bool{false, true} {
		h := testworld.Home(t)
		if before {
			testworld.Must(t, os.WriteFile(h.Path(home.DBFile), nil, 0o666))
		}
		db := mustOpen(t, h)
		mustApply(t, db, store.AddLog{Text: "x"})
		for _, suffix := range []string{"", "-wal", "-shm"} {
			info := testworld.Got(os.Stat(h.Path(home.DBFile + suffix)))(t)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("meta.db%s has mode %v, want 0600", suffix, info.Mode())
			}
		}
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	for i := range 200 {
		mustApply(t, db, store.AddLog{Text: strings.Repeat("x", 200), About: fmt.Sprint("about-", i)})
	}
	testworld.Must(t, db.Close())
	file := h.Path(home.DBFile)
	data := testworld.Got(os.ReadFile(file))(t)
	copy(data[len(data)-3*4096:], bytes.Repeat([]byte{0xff}, 2*4096))
	testworld.Must(t, os.WriteFile(file, data, 0o600))
	db = testworld.Got(store.OpenRead(t.Context(), h))(t)
	defer db.Close()
	testworld.Fails(t, db.Check(t.Context()), file, "an error that names it")
}

// The file is deleted under an open database: the next record goes into a new
// one, which readers see too.
func TestReplaced(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := mustOpen(t, h)
	mustApply(t, db, store.AddLog{Text: "old"})
	before := testworld.Got(db.DataVersion(t.Context()))(t)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		testworld.Must(t, os.Remove(h.Path(home.DBFile+suffix)))
	}
	mustApply(t, db, store.AddLog{Text: "new"})
	l := testworld.Got(db.Logs(t.Context(), store.LogFilter{}))(t)
	if len(l.Items) != 1 || l.Items[0].Text != "new" || db.Replaced() != 1 {
		t.Errorf("logs %v, replaced %d, want the new log alone, 1", l.Items, db.Replaced())
	}
	after := testworld.Got(db.DataVersion(t.Context()))(t)
	if before == after {
		t.Errorf("DataVersion %d before and after", before)
	}
}

func TestDataVersion(t *testing.T) {
	t.Parallel()
	home := testworld.Home(t)
	db, other := mustOpen(t, home), mustOpen(t, home)
	version := func() int64 {
		t.Helper()
		return testworld.Got(db.DataVersion(t.Context()))(t)
	}
	a := version()
	if b := version(); a != b {
		t.Errorf("DataVersion %d, then %d with no write between", a, b)
	}
	mustApply(t, other, store.AddLog{Text: "theirs"})
	b := version()
	mustApply(t, db, store.AddLog{Text: "ours"})
	if c := version(); a == b || b == c {
		t.Errorf("DataVersion %d, after another's write %d, after ours %d", a, b, c)
	}
}
