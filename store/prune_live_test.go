//go:build live

package store_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

func mustCount(tb testing.TB, db *store.DB) (old, young int) {
	tb.Helper()
	f := store.MessageFilter{Page: store.Page{Limit: 1000}}
	for {
		l := testworld.Got(db.Messages(tb.Context(), f))(tb)
		for _, m := range l.Items {
			if strings.Contains(m.ID, "-old-") {
				old++
			} else {
				young++
			}
		}
		if f.Cursor = l.Cursor; f.Cursor == "" {
			return old, young
		}
	}
}

// A process is killed in the middle of a pass, again and again: what it removed is whole
// and counted in the log, what is young is there, and the last one finishes.
func TestPruneKilled(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	const n = 4000
	bulk(t, h, n)
	for round := range 12 {
		cmd := mustChild(t, h, "prune:0")
		out := testworld.Got(cmd.StdoutPipe())(t)
		testworld.Must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for i := 0; i < 2+round%5 && lines.Scan(); i++ {
		}
		testworld.Must(t, cmd.Process.Kill())
		for lines.Scan() {
		}
		cmd.Wait()
		db := testworld.Got(store.Open(t.Context(), h))(t)
		testworld.Must(t, db.Check(t.Context()))
		old, young := mustCount(t, db)
		counted := counted(t, db)
		if young != n || old+counted != n {
			t.Fatalf("round %d: %d young, %d old and %d that the log counts as removed, want %d and %d", round, young, old, counted, n, n)
		}
		testworld.Must(t, db.Close())
	}
	cmd := mustChild(t, h, "prune:0")
	testworld.Must(t, cmd.Run())
	if old, young := mustCount(t, mustOpen(t, h)); old != 0 || young != n {
		t.Errorf("%d old, %d young", old, young)
	}
}

// counted adds up the messages that the log says were removed.
func counted(tb testing.TB, db *store.DB) (sum int) {
	tb.Helper()
	l := testworld.Got(db.Logs(tb.Context(), store.LogFilter{Part: "records", Page: store.Page{Limit: 1000}}))(tb)
	for _, x := range l.Items {
		for part := range strings.SplitSeq(x.Text[strings.LastIndex(x.Text, ": ")+2:], ", ") {
			n := 0
			if _, err := fmt.Sscanf(part, "messages %d", &n); err == nil {
				sum += n
			}
		}
	}
	return sum
}

// Removed records make the file shorter, and the log beside it stays short.
func TestShorten(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	bulk(t, h, 20_000)
	db := mustOpen(t, h)
	before := testworld.Got(db.Space(t.Context()))(t)
	mustPrune(t, db, &store.Pass{Before: time.Now().Add(-30 * day), Key: "k", Why: "a test"})
	for {
		s := testworld.Got(db.Space(t.Context()))(t)
		if !s.Spare() {
			break
		}
		testworld.Must(t, db.Shorten(t.Context()))
	}
	after := testworld.Got(db.Space(t.Context()))(t)
	testworld.Must(t, db.Check(t.Context()))
	if after.File > before.File*3/4 || after.Whole() {
		t.Errorf("%+v, was %+v", after, before)
	}
	if info, err := os.Stat(h.Path(home.DBFile + "-wal")); err == nil && info.Size() > 32<<20 {
		t.Errorf("the log is %d bytes long", info.Size())
	}
	t.Logf("before %+v, after %+v", before, after)
}
