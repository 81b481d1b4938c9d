package store_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// child is what the test binary does as another process: it writes logs whose
// texts are name-0, name-1, … and prints each text when Apply has returned.
func child(what string) error {
	name, count, _ := strings.Cut(what, ":")
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	home, err := home.At(os.Getenv("STORE_TEST_HOME"))
	if err != nil {
		return err
	}
	switch name {
	case "prune":
		return pruneChild(home)
	case "backup", "restore":
		return copyChild(home, name, n)
	}
	ctx := context.Background()
	db, err := store.Open(ctx, home)
	if err != nil {
		return err
	}
	for i := range n {
		text := fmt.Sprint(name, "-", i)
		if err := db.Apply(ctx, store.AddLog{Text: text, Key: text, Actor: "agent1"}); err != nil {
			return err
		}
		fmt.Println(text)
	}
	return db.Close()
}

func mustTexts(tb testing.TB, db *store.DB) map[string]bool {
	tb.Helper()
	texts := map[string]bool{}
	f := store.LogFilter{Page: store.Page{Limit: 1000}}
	for {
		l := testworld.Got(db.Logs(tb.Context(), f))(tb)
		for _, x := range l.Items {
			texts[x.Text] = true
		}
		if f.Cursor = l.Cursor; f.Cursor == "" {
			return texts
		}
	}
}

// Thirty-two callers and two readers at once: nobody is told that the database
// is busy, and everything is there.
func TestManyGoroutines(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers, readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, err := db.Snapshot(t.Context()); err != nil {
					t.Errorf("Snapshot while others write: %v", err)
					return
				}
			}
		})
	}
	const each = 40
	for g := range 32 {
		writers.Go(func() {
			for i := range each {
				id := fmt.Sprintf("m-%d-%d", g, i)
				err := db.Apply(ctx, store.UpsertMessage{ID: id, From: "owner", To: agent.Clone(g + 1), Text: "x"},
					store.UpsertDelivery{Message: id, Target: agent.Clone(g + 1), State: store.Queued})
				if err != nil {
					t.Errorf("Apply: %v", err)
					return
				}
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	for g := range 32 {
		w, err := db.Waiting(t.Context(), agent.Clone(g+1))
		if err != nil || len(w) != each {
			t.Errorf("agent%d: %d waiting, %v, want %d", g+1, len(w), err, each)
		}
	}
	testworld.Must(t, db.Check(t.Context()))
}

// Of those that are committed together, who brings a wrong record is undone
// alone.
func TestWrongAmongOthers(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, testworld.Home(t))
	var all sync.WaitGroup
	for g := range 32 {
		all.Go(func() {
			for i := range 20 {
				good := db.Apply(t.Context(), store.AddLog{Text: fmt.Sprintf("good-%d-%d", g, i)})
				bad := db.Apply(t.Context(), store.AddLog{Text: "bad"}, store.SetSetting{}, store.AddLog{Text: "bad"})
				if good != nil || bad == nil {
					t.Errorf("Apply: %v for a right record, %v for a wrong one", good, bad)
				}
			}
		})
	}
	all.Wait()
	if texts := mustTexts(t, db); len(texts) != 32*20 || texts["bad"] {
		t.Errorf("%d texts, bad among them %v, want 640, none", len(texts), texts["bad"])
	}
}

func TestApplyAfterClose(t *testing.T) {
	t.Parallel()
	db := testworld.Got(store.Open(t.Context(), testworld.Home(t)))(t)
	testworld.Must(t, db.Close())
	testworld.Must(t, db.Close())
	testworld.Fails(t, db.Apply(t.Context(), store.AddLog{Text: "x"}), "closed", "Apply after Close")
}
