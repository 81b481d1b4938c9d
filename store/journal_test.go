package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

func mustJournal(tb testing.TB, home home.Dir) *store.Journal {
	tb.Helper()
	j := store.NewJournal(home)
	tb.Cleanup(func() { testworld.Must(tb, j.Close()) })
	return j
}

func mustSpool(tb testing.TB, home home.Dir) store.Spool {
	tb.Helper()
	return testworld.Got(store.SpoolSize(home))(tb)
}

func TestJournal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, home home.Dir)
		want  error
		text  string
	}{
		{"no database yet", func(*testing.T, home.Dir) {}, nil, ""},
		{"newer", func(t *testing.T, h home.Dir) {
			mustSQL(t, h.Path(home.DBFile), "PRAGMA user_version = 99")
		}, store.ErrSpooled, "newer"},
		{"corrupt", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.WriteFile(h.Path(home.DBFile), []byte(strings.Repeat("garbage!", 1000)), 0o600))
		}, store.ErrSpooled, "not a database"},
		{"locked", func(t *testing.T, h home.Dir) {
			testworld.Must(t, mustOpen(t, h).Close())
			db := testworld.Got(sql.Open("sqlite3", h.Path(home.DBFile)+"?_txlock=exclusive"))(t)
			tx := testworld.Got(db.Begin())(t)
			t.Cleanup(func() { tx.Rollback(); db.Close() })
		}, store.ErrSpooled, "locked"},
		{"nothing can be written", func(t *testing.T, h home.Dir) {
			testworld.Must(t, os.Mkdir(h.Path(home.DBFile), 0o700))
			testworld.Must(t, os.Remove(h.Path(home.SpoolDir)))
			testworld.Must(t, os.WriteFile(h.Path(home.SpoolDir), nil, 0o600))
		}, store.ErrUnrecorded, "not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.Home(t)
			tt.setup(t, h)
			j := mustJournal(t, h)
			began := time.Now()
			for range 5 {
				err := j.Record(t.Context(), store.AddLog{Text: "x", Part: "up"})
				if !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.text) {
					t.Errorf("Record: %v, want %v (%s)", err, tt.want, tt.text)
				}
			}
			// The bound is two seconds for all five, as a locked
			// database is not asked again; this leaves room for a slow disk.
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("five records took %v", took)
			}
			if tt.want == store.ErrSpooled {
				if s := mustSpool(t, h); s.Files != 5 || s.Bytes == 0 {
					t.Errorf("spool %+v, want 5 files", s)
				}
				names, _ := filepath.Glob(h.Path(home.SpoolDir, "*"))
				for _, name := range names {
					if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
						t.Errorf("%s: %v, %v, want 0600", name, info.Mode(), err)
					}
				}
			}
		})
	}
}

// mustSpooled records the ops while the database is unusable.
func mustSpooled(tb testing.TB, h home.Dir, ops ...store.Op) {
	tb.Helper()
	file := h.Path(home.DBFile)
	os.Rename(file, file+".away")
	testworld.Must(tb, os.Mkdir(file, 0o700))
	j := store.NewJournal(h)
	for _, op := range ops {
		if err := j.Record(tb.Context(), op); !errors.Is(err, store.ErrSpooled) {
			tb.Fatalf("Record(%T): %v, want spooled", op, err)
		}
	}
	testworld.Must(tb, j.Close())
	testworld.Must(tb, os.Remove(file))
	os.Rename(file+".away", file)
}

// Every op survives the way through the spool: the records are the same as
// those of a database that worked, and a second replay changes nothing.
func TestReplay(t *testing.T) {
	t.Parallel()
	direct, h := testworld.Home(t), testworld.Home(t)
	mustApply(t, mustOpen(t, direct), story()...)
	mustSpooled(t, h, story()...)
	copies := map[string][]byte{}
	names := testworld.Got(filepath.Glob(h.Path(home.SpoolDir, "*.json")))(t)
	for _, name := range names {
		copies[name] = testworld.Got(os.ReadFile(name))(t)
	}
	db := mustOpen(t, h)
	want := dump(t, direct)
	for round := range 2 {
		n, err := db.ReplaySpool(t.Context())
		if n != len(story()) || err != nil {
			t.Errorf("ReplaySpool: %d, %v, want %d", n, err, len(story()))
		}
		testworld.Equal(t, dump(t, h), want, "round %d", round)
		testworld.Equal(t, mustSpool(t, h), (store.Spool{}), "spool")
		for name, data := range copies { // as after a crash before the removal
			testworld.Must(t, os.WriteFile(name, data, 0o600))
		}
	}
}

// A file that can never be recorded is set aside with the reason; the others
// are recorded.
func TestReplayBad(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	mustSpooled(t, h, store.AddLog{Text: "first"}, store.UpsertDelivery{Message: "nobody", Target: "agent1", State: store.Queued},
		store.AddLog{Text: "last"})
	for name, text := range map[string]string{
		"1-garbage.json":            "{",
		"2-unknown.json":            `[{"op":"explode","args":{}}]`,
		"3-no-time.json":            `[{"op":"add_log","args":{"text":"x","time":"noon"}}]`,
		"99999999999999999999.json": `[{"op":"add_log","args":{"key":"k","text":"by hand"}}]`,
		".tmp-1-1":                  "half",
	} {
		testworld.Must(t, os.WriteFile(h.Path(home.SpoolDir, name), []byte(text), 0o600))
	}
	testworld.Must(t, os.Symlink("/etc/passwd", h.Path(home.SpoolDir, "4-link.json")))
	db := mustOpen(t, h)
	n, err := db.ReplaySpool(t.Context())
	if n != 3 || err == nil || !strings.Contains(err.Error(), "explode") || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("ReplaySpool: %d, %v, want 3 and what was wrong", n, err)
	}
	texts := mustTexts(t, db)
	if len(texts) != 3 || !texts["first"] || !texts["last"] || !texts["by hand"] {
		t.Errorf("logs %v, want first, last, by hand", texts)
	}
	if s := mustSpool(t, h); s.Files != 0 || s.Bad != 5 {
		t.Errorf("spool %+v, want 5 bad", s)
	}
	why, err := os.ReadFile(h.Path(home.SpoolDir, "2-unknown.why"))
	if err != nil || !strings.Contains(string(why), "unknown") {
		t.Errorf("2-unknown.why: %q, %v", why, err)
	}
	testworld.Equal(t, testworld.Got(db.ReplaySpool(t.Context()))(t), 0, "ReplaySpool again")
}

// A database that takes nothing is no reason to set files aside.
func TestReplayWaits(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	mustSpooled(t, h, store.AddLog{Text: "x"})
	db := mustOpen(t, h)
	mustSQL(t, h.Path(home.DBFile), "CREATE TRIGGER no_logs BEFORE INSERT ON logs BEGIN SELECT raise(ABORT, 'disk full'); END",
		"CREATE TRIGGER no_settings BEFORE INSERT ON settings BEGIN SELECT raise(ABORT, 'disk full'); END")
	if n, err := db.ReplaySpool(t.Context()); n != 0 || err == nil {
		t.Errorf("ReplaySpool: %d, %v, want 0 and an error", n, err)
	}
	if s := mustSpool(t, h); s.Files != 1 || s.Bad != 0 {
		t.Errorf("spool %+v, want the one file still there", s)
	}
}

func TestSpoolIsBounded(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	testworld.Must(t, os.Mkdir(h.Path(home.DBFile), 0o700))
	j := mustJournal(t, h)
	testworld.ErrorIs(t, j.Record(t.Context(), store.AddLog{Text: strings.Repeat("x", 5<<20)}), store.ErrUnrecorded, "a record of 5 MiB")
	full := h.Path(home.SpoolDir, "0-full.json")
	testworld.Must(t, os.WriteFile(full, nil, 0o600))
	testworld.Must(t, os.Truncate(full, 64<<20))
	if err := j.Record(t.Context(), store.AddLog{Text: "x"}); !errors.Is(err, store.ErrUnrecorded) || !strings.Contains(fmt.Sprint(err), "full") {
		t.Errorf("a full spool: %v, want ErrUnrecorded, full", err)
	}
}
