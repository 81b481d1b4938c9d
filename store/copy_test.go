package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

const copied, aside = "state/copies/records.db", "state/copies/aside.db"

// copyChild is the process of which the copy is killed before its step of that number.
func copyChild(h home.Dir, verb string, last int) (err error) {
	n := 0
	store.OnCopyStep(func(name string) {
		if n++; n == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	})
	if os.Getenv("STORE_TEST_ROOM") != "" { // no file can grow beyond 100 KB
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100_000, Max: 100_000}); err != nil {
			return err
		}
	}
	if verb == "backup" {
		_, err = store.Backup(context.Background(), h, copied)
		return err
	}
	return store.Restore(context.Background(), h, copied, aside)
}

// mustRead returns the texts of the logs in a database file, which must be whole.
func mustRead(tb testing.TB, file string) string {
	tb.Helper()
	db := testworld.Got(sql.Open("sqlite3", "file:"+file+"?mode=ro"))(tb)
	defer db.Close()
	var whole, texts string
	testworld.Must(tb, db.QueryRow("PRAGMA integrity_check").Scan(&whole), "%s", file)
	testworld.Equal(tb, whole, "ok", "%s", file)
	testworld.Must(tb, db.QueryRow("SELECT coalesce(group_concat(text, ' '), '') FROM (SELECT text FROM logs ORDER BY text)").Scan(&texts), "%s", file)
	return texts
}

func mustLog(tb testing.TB, db *store.DB, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		mustApply(tb, db, store.AddLog{Text: text})
	}
}

func mustBackup(tb testing.TB, h home.Dir, rel string) store.Copy {
	tb.Helper()
	return testworld.Got(store.Backup(tb.Context(), h, rel))(tb)
}

// mustHold requires that nothing but these files is in the directory.
func mustHold(tb testing.TB, dir string, files ...string) {
	tb.Helper()
	var got []string
	for _, e := range testworld.Got(os.ReadDir(dir))(tb) {
		if !strings.HasSuffix(e.Name(), "-wal") && !strings.HasSuffix(e.Name(), "-shm") {
			got = append(got, e.Name())
		}
	}
	testworld.EqualList(tb, got, files, "files in %s", dir)
}

// A copy is the records at one moment, while several write: of two logs that were committed
// together it has both or neither, and all that was there when it began.
func TestBackup(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := mustOpen(t, h)
	for i := range 400 {
		mustApply(t, db, store.AddLog{Text: fmt.Sprint("before-", i), About: strings.Repeat("x", 10_000)})
	}
	size := testworld.Got(store.Size(h))(t)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprint("pair-", w, "-", i, "-")
				db.Apply(ctx, store.AddLog{Text: text + "a", About: strings.Repeat("x", 3000)}, store.AddLog{Text: text + "b"})
			}
		})
	}
	c := mustBackup(t, h, copied)
	stop()
	writers.Wait()
	info := testworld.Got(os.Stat(h.Path(copied)))(t)
	if c.File != h.Path(copied) || c.Bytes != info.Size() || c.Bytes < 4_000_000 || c.Schema != store.Schema() || c.Took <= 0 || info.Mode() != 0o600 {
		t.Errorf("%+v, a file of %d bytes, mode %v", c, info.Size(), info.Mode())
	}
	if size < 4_000_000 {
		t.Errorf("Size said %d", size)
	}
	mustHold(t, filepath.Dir(c.File), "records.db")
	texts := strings.Fields(mustRead(t, c.File))
	n := 0
	for _, text := range texts {
		if strings.HasPrefix(text, "before-") {
			n++
		}
		if base, ok := strings.CutSuffix(text, "-a"); ok && !slices.Contains(texts, base+"-b") {
			t.Errorf("%s without %s-b", text, base)
		}
	}
	testworld.Equal(t, n, 400, "logs from before")
	testworld.Must(t, db.Check(t.Context()))

	mustLog(t, db, "more")
	testworld.Must(t, os.WriteFile(c.File+"-wal", []byte("of an earlier copy"), 0o600))
	mustBackup(t, h, copied)
	testworld.Contains(t, mustRead(t, c.File), "more", "a second copy in the place of the first")
}

// A database that is open is put aside with its log, and those who have it open change over.
func TestRestore(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db, other := mustOpen(t, h), mustOpen(t, h)
	mustLog(t, db, "one")
	mustBackup(t, h, copied)
	mustLog(t, db, "two")
	testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
	mustLog(t, db, "three")
	mustLog(t, other, "four")
	testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "four one three", "the database")
	testworld.Equal(t, mustRead(t, h.Path(aside)), "one two", "what was put aside")
	testworld.Equal(t, mustRead(t, h.Path(copied)), "one", "the copy, which stays")
	if db.Replaced() != 1 || other.Replaced() != 1 {
		t.Errorf("replaced %d and %d", db.Replaced(), other.Replaced())
	}
	testworld.Must(t, db.Check(t.Context()))

	testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
	testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "four one three", "the same restore again")
	testworld.Must(t, store.Restore(t.Context(), h, aside, aside+"2"))
	testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "one two", "what was put aside, put back")
	testworld.Fails(t, store.Restore(t.Context(), h, copied, ""), "exist", "without a name for what is there")
	testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "one two", "refused")
	mustHold(t, h.Path("state/copies"), "aside.db", "aside.db2", "records.db")
}

// After a crash, an older netsky that does not know of the whole copy made a database: that is
// kept, too, and the restore is finished.
func TestRestoreAfterOlder(t *testing.T) {
	t.Parallel()
	h, older := testworld.Home(t), testworld.Home(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	mustLog(t, db, "one")
	mustBackup(t, h, copied)
	mustLog(t, db, "two")
	testworld.Must(t, db.Close())
	file := h.Path(home.DBFile)
	testworld.Must(t, os.Rename(file, h.Path(aside)))
	testworld.Must(t, os.WriteFile(file+"-restore", testworld.Got(os.ReadFile(h.Path(copied)))(t), 0o600))
	db = testworld.Got(store.Open(t.Context(), older))(t)
	mustLog(t, db, "made since")
	testworld.Must(t, db.Close())
	testworld.Must(t, os.Rename(older.Path(home.DBFile), file))

	for range 2 {
		testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
		testworld.Equal(t, mustRead(t, file), "one", "the database")
		testworld.Equal(t, mustRead(t, h.Path(aside)), "one two", "what was put aside")
		since := testworld.Got(filepath.Glob(h.Path(aside) + "-*[0-9a-f]"))(t)
		if len(since) != 1 {
			t.Fatalf("kept: %v", since)
		}
		testworld.Equal(t, mustRead(t, since[0]), "made since", "what the older one made")
	}
}

// What is in the place of the database may be of any kind.
func TestRestoreOver(t *testing.T) {
	t.Parallel()
	garbage := bytes.Repeat([]byte("no database "), 1000)
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, file string)
		aside string
	}{
		{"nothing", func(t *testing.T, file string) { testworld.Must(t, os.Remove(file)) }, ""},
		{"garbage", func(t *testing.T, file string) { testworld.Must(t, os.WriteFile(file, garbage, 0o600)) }, aside},
		{"newer schema", func(t *testing.T, file string) { mustSQL(t, file, "PRAGMA user_version = 99") }, aside},
		{"an empty file", func(t *testing.T, file string) { testworld.Must(t, os.Truncate(file, 0)) }, aside},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := testworld.Home(t)
			db := testworld.Got(store.Open(t.Context(), h))(t)
			mustLog(t, db, "one")
			testworld.Must(t, db.Close())
			mustBackup(t, h, copied)
			file := h.Path(home.DBFile)
			tt.setup(t, file)
			before, _ := os.ReadFile(file)
			testworld.Must(t, store.Restore(t.Context(), h, copied, tt.aside))
			testworld.Equal(t, mustRead(t, file), "one", "the database")
			if after, err := os.ReadFile(h.Path(aside)); tt.aside != "" && !bytes.Equal(before, after) {
				t.Errorf("%d bytes were put aside, and there were %d: %v", len(after), len(before), err)
			}
			mustLog(t, mustOpen(t, h), "two")
		})
	}
}

func TestSchemaOf(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	file := h.Path(home.DBFile)
	_, err := store.SchemaOf(t.Context(), h)
	testworld.ErrorIs(t, err, fs.ErrNotExist, "SchemaOf without a database")
	testworld.ErrorIs(t, testworld.Err(store.Size(h)), fs.ErrNotExist, "Size without a database")
	testworld.ErrorIs(t, testworld.Err(store.Backup(t.Context(), h, copied)), fs.ErrNotExist, "Backup without a database")
	testworld.ErrorIs(t, store.Restore(t.Context(), h, copied, ""), fs.ErrNotExist, "Restore without a copy")
	mustSQL(t, file, "CREATE TABLE other (a)")
	testworld.Equal(t, testworld.Got(store.SchemaOf(t.Context(), h))(t), 0, "a database without our tables")
	mustSQL(t, file, "PRAGMA user_version = 99")
	testworld.Equal(t, testworld.Got(store.SchemaOf(t.Context(), h))(t), 99, "a newer one")
	testworld.Equal(t, mustBackup(t, h, copied).Schema, 99, "its copy")
	testworld.Must(t, os.WriteFile(file, bytes.Repeat([]byte("no database "), 1000), 0o600))
	if _, err := store.SchemaOf(t.Context(), h); !store.Damaged(err) || !strings.Contains(err.Error(), file) {
		t.Errorf("garbage: %v", err)
	}
	if _, err := store.Backup(t.Context(), h, copied+"2"); !store.Damaged(err) {
		t.Errorf("a copy of garbage: %v", err)
	}
	mustHold(t, h.Path("state/copies"), "records.db")
}

// Writers don't make a copy begin again and again, and one that ends early leaves nothing.
// It is not parallel, as it replaces the hook of all.
func TestBackupEnds(t *testing.T) {
	h := testworld.Home(t)
	db := mustOpen(t, h)
	for range 400 {
		mustApply(t, db, store.AddLog{Text: "x", About: strings.Repeat("x", 10_000)})
	}
	defer store.OnCopyStep(func(string) {})
	for _, tt := range []struct {
		last int // after how many steps it is ended
		want error
	}{{10, nil}, {3, context.Canceled}} {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		store.OnCopyStep(func(name string) {
			if name != "pages" {
				return
			}
			mustLog(t, db, "written meanwhile")
			if n++; n == tt.last {
				cancel()
			}
		})
		testworld.ErrorIs(t, testworld.Err(store.Backup(ctx, h, copied)), tt.want, "Backup")
		cancel()
		if tt.want == nil {
			testworld.Lacks(t, mustRead(t, h.Path(copied)), "meanwhile", "the copy")
			testworld.Must(t, os.Remove(h.Path(copied)))
		}
	}
	mustHold(t, h.Path("state/copies"))
	testworld.Must(t, db.Check(t.Context()))
}

// A full disk is said before anything is copied. It needs a file system of its own.
func TestBackupRoom(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := mustOpen(t, h)
	for range 400 {
		mustApply(t, db, store.AddLog{Text: "x", About: strings.Repeat("x", 10_000)})
	}
	dir := h.Path("state/copies")
	testworld.Must(t, os.Mkdir(dir, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Logf("no mounts here: %s", out)
		return // TestBackupFails shows most of it
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	_, err := store.Backup(t.Context(), h, copied)
	testworld.ErrorIs(t, err, unix.ENOSPC, "Backup")
	testworld.Fails(t, err, dir+": needs ", "Backup")
	mustHold(t, dir)
	if err := store.Restore(t.Context(), h, copied, aside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Restore: %v", err)
	}
	mustBackup(t, h, "state/whole.db")
	// The database can't be kept on another file system, and stays.
	mustLog(t, db, "last")
	testworld.ErrorIs(t, store.Restore(t.Context(), h, "state/whole.db", aside), unix.EXDEV, "Restore")
	testworld.Contains(t, mustRead(t, h.Path(home.DBFile)), "last", "the database")
	mustHold(t, dir)
	testworld.Must(t, db.Check(t.Context()))
}
