//go:build live

package store_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// killCopy runs a copy in another process that dies before its k-th step, and reports
// whether it had so many.
func killCopy(t *testing.T, h home.Dir, verb string, k int) bool {
	t.Helper()
	err := mustChild(t, h, fmt.Sprint(verb, ":", k)).Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	testworld.Must(t, err, "%s, killed at step %d", verb, k)
	return false
}

// A copy that is killed leaves none, or a whole one, and the next makes it.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := mustOpen(t, h)
	steps := 0
	for killed := true; killed; steps++ {
		mustLog(t, db, fmt.Sprintf("log-%03d", steps))
		if killed = killCopy(t, h, "backup", steps+1); killed {
			if _, err := os.Lstat(h.Path(copied)); err == nil {
				t.Fatalf("killed at step %d: there is a copy", steps+1)
			}
		}
		testworld.Must(t, db.Check(t.Context()))
	}
	testworld.Equal(t, mustRead(t, h.Path(copied)), mustRead(t, h.Path(home.DBFile)), "the copy")
	mustHold(t, filepath.Dir(h.Path(copied)), "records.db")
	if steps < 4 {
		t.Errorf("only %d steps", steps)
	}
}

// A restore that is killed leaves the database that was there, or the copy in its place;
// the same restore then finishes it. Nothing that was committed is lost.
func TestRestoreKilled(t *testing.T) {
	t.Parallel()
	for _, meanwhile := range []string{"nothing", "it is used by who has it open", "it is opened"} {
		t.Run(meanwhile, func(t *testing.T) {
			t.Parallel()
			steps := 0
			for killed := true; killed; steps++ {
				killed = restoreKilled(t, meanwhile, steps+1)
				if t.Failed() {
					t.Fatalf("killed at step %d", steps+1)
				}
			}
			if steps < 8 {
				t.Errorf("only %d steps", steps)
			}
		})
	}
}

func restoreKilled(t *testing.T, meanwhile string, k int) bool {
	h := testworld.Home(t)
	defer os.RemoveAll(filepath.Dir(h.Root()))
	db := testworld.Got(store.Open(t.Context(), h))(t)
	mustLog(t, db, "a")
	mustBackup(t, h, copied)
	mustLog(t, db, "b")
	killed := killCopy(t, h, "restore", k)
	was := ""
	switch meanwhile {
	case "nothing":
		testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
		testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "a", "the database")
		testworld.Equal(t, mustRead(t, h.Path(aside)), "a b", "what was put aside")
	case "it is opened":
		next := testworld.Got(store.Open(t.Context(), h))(t)
		mustLog(t, next, "c")
		was = mustRead(t, h.Path(home.DBFile))
		testworld.Must(t, next.Close())
	default:
		mustLog(t, db, "c")
		was = mustRead(t, h.Path(home.DBFile))
	}
	switch was {
	case "":
	case "a b c": // the old one
		testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
		testworld.Equal(t, mustRead(t, h.Path(aside)), "a b c", "what was put aside")
		testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "a", "the database")
	case "a c": // the copy
		testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
		testworld.Equal(t, mustRead(t, h.Path(aside)), "a b", "what was put aside")
		testworld.Equal(t, mustRead(t, h.Path(home.DBFile)), "a c", "the database")
	default:
		t.Errorf("the database has %q", was)
	}
	mustLog(t, db, "d")
	testworld.Must(t, db.Check(t.Context()))
	testworld.Must(t, db.Close())
	testworld.Contains(t, mustRead(t, h.Path(home.DBFile)), "d", "the database, used after that")
	mustHold(t, h.Path("state/copies"), "aside.db", "records.db")
	for _, e := range testworld.Got(os.ReadDir(h.Root()))(t) {
		if strings.HasPrefix(e.Name(), ".tmp-") || strings.HasSuffix(e.Name(), "-restore") {
			t.Errorf("%s is left", e.Name())
		}
	}
	return killed
}

// A copy that fails in the middle leaves no part of it.
func TestBackupFails(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := mustOpen(t, h)
	for range 100 {
		mustApply(t, db, store.AddLog{Text: "x", About: strings.Repeat("x", 10_000)})
	}
	cmd := mustChild(t, h, "backup:-1")
	cmd.Env, cmd.Stderr = append(cmd.Env, "STORE_TEST_ROOM=1"), nil
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), h.Path(copied)) {
		t.Errorf("%v: %s", err, out)
	}
	mustHold(t, h.Path("state/copies"))
	testworld.Must(t, db.Check(t.Context()))
}
