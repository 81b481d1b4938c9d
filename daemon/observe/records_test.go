package observe_test

import (
	"database/sql"
	"errors"
	"testing"

	"netsky/bus"
	"netsky/daemon/observe"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// After an update, a verb that reads migrates the records that an older netsky wrote, and
// finds in them what was there.
func TestRecordsOfAnOlderNetsky(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	testworld.Must(t, errors.Join(db.Apply(t.Context(), store.AddLog{Text: "before"}), db.Close()))
	raw := testworld.Got(sql.Open("sqlite3", h.Path(home.DBFile)))(t)
	testworld.Got(raw.Exec("DROP INDEX tasks_brief; DROP INDEX tasks_wanted; ALTER TABLE tasks DROP COLUMN starter; ALTER TABLE tasks DROP COLUMN brief; ALTER TABLE tasks DROP COLUMN briefed; ALTER TABLE tasks DROP COLUMN closed_by; ALTER TABLE tasks DROP COLUMN begun; ALTER TABLE tasks DROP COLUMN head; ALTER TABLE tasks DROP COLUMN starts; " +
		"DROP TABLE worktrees; DROP TABLE checks; DROP TABLE landings; DROP TABLE comments; DROP TABLE turns; DROP TABLE turns_stated; DROP TABLE turn_files; DROP TABLE budgets; DROP TRIGGER sessions_thread_made; DROP TRIGGER sessions_thread_changed; DROP TABLE threads; " +
		"DROP TABLE schedules; DROP TABLE phone_lines; DROP TABLE phone_heard; DROP TABLE phone_said; PRAGMA user_version = 1"))(t)
	testworld.Must(t, raw.Close())
	if _, err := store.OpenRead(t.Context(), h); !errors.Is(err, store.ErrOlder) {
		t.Fatalf("OpenRead: %v, want %v", err, store.ErrOlder)
	}
	db, rebuilt, err := observe.Records(t.Context(), h, func() (*bus.Bus, error) { return bus.New(h, bus.Options{}), nil })
	if err != nil || rebuilt {
		t.Fatalf("rebuilt %v, %v", rebuilt, err)
	}
	defer db.Close()
	logs, err := db.Logs(t.Context(), store.LogFilter{})
	list, err2 := db.Schedules(t.Context(), true)
	if err != nil || err2 != nil || len(logs.Items) != 1 || len(list) != 0 {
		t.Errorf("%+v, %+v, %v, %v", logs, list, err, err2)
	}
}
