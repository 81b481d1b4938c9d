package store_test

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

var update = flag.Bool("update", false, "write testdata/schemas of a schema that has none, from the one before")

func fixture(n int) string { return fmt.Sprintf("testdata/schemas/%03d.sql", n) }

// mustSchema makes the database that a netsky with that schema wrote: the text of one of them.
func mustSchema(tb testing.TB, h home.Dir, n int) {
	tb.Helper()
	mustSQL(tb, h.Path(home.DBFile), "PRAGMA journal_mode = WAL", string(testworld.Got(os.ReadFile(fixture(n)))(tb)))
}

// mustRows returns what a query finds in the home's database, each row as one text.
func mustRows(tb testing.TB, h home.Dir, query string, args ...any) []string {
	tb.Helper()
	db := testworld.Got(sql.Open("sqlite3", "file:"+h.Path(home.DBFile)+"?mode=ro"))(tb)
	defer db.Close()
	return testworld.Got(store.Collect(tb.Context(), db, func(r *sql.Rows) (text string, err error) {
		err = r.Scan(&text)
		return text, err
	}, query, args...))(tb)
}

// mustTables returns the tables' names and, for each, the names of its columns that are written.
func mustTables(tb testing.TB, h home.Dir) map[string][]string {
	tb.Helper()
	tables := map[string][]string{}
	for _, name := range mustRows(tb, h, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid") {
		tables[name] = mustRows(tb, h, "SELECT name FROM pragma_table_info(?)", name)
	}
	return tables
}

// mustValues returns the rows of a table, as what follows VALUES in SQL.
func mustValues(tb testing.TB, h home.Dir, table string, columns []string) []string {
	tb.Helper()
	return mustRows(tb, h, fmt.Sprintf("SELECT '(' || quote(%s) || ')' AS row FROM %s ORDER BY row", strings.Join(columns, ") || ', ' || quote("), table))
}

// mustShape returns the definitions of all tables, indexes and triggers.
func mustShape(tb testing.TB, h home.Dir) []string {
	tb.Helper()
	return mustRows(tb, h, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name")
}

// mustWrite writes the fixture of a schema: the one before, migrated. Its author adds a row to
// each table that is new.
func mustWrite(tb testing.TB, n int) {
	tb.Helper()
	h := testworld.Home(tb)
	mustSchema(tb, h, n-1)
	testworld.Must(tb, store.Migrate(tb.Context(), h, store.MigrationsTo(n)))
	var out strings.Builder
	define := func(kinds string) {
		for _, text := range mustRows(tb, h, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND type IN ("+kinds+") ORDER BY rowid") {
			fmt.Fprintf(&out, "%s;\n", text)
		}
	}
	define("'table'")
	tables := mustTables(tb, h)
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		for _, row := range mustValues(tb, h, table, tables[table]) {
			fmt.Fprintf(&out, "INSERT INTO %s (%s) VALUES %s;\n", table, strings.Join(tables[table], ", "), row)
		}
	}
	define("'index', 'trigger'")
	fmt.Fprintf(&out, "PRAGMA user_version = %d;\n", n)
	testworld.Must(tb, os.WriteFile(fixture(n), []byte(out.String()), 0o644))
}

// From each schema that a netsky has written, the database is migrated with all that it holds,
// and a copy made before goes back to it. A migration is added with the fixture of its schema.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for n := 1; n <= store.Schema(); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if _, err := os.Stat(fixture(n)); errors.Is(err, fs.ErrNotExist) && *update {
				mustWrite(t, n)
			} else if err != nil {
				t.Fatalf("%v: write it with `go test ./store -run TestSchemas -update`, and give each new table a row", err)
			}
			migrated(t, n)
		})
	}
	left := testworld.Got(os.ReadDir("testdata/schemas"))(t)
	testworld.Len(t, left, store.Schema(), "fixtures")
}

func migrated(t *testing.T, n int) {
	h, made, now := testworld.Home(t), testworld.Home(t), testworld.Home(t)
	mustSchema(t, h, n)
	testworld.Must(t, store.Migrate(t.Context(), made, store.MigrationsTo(n)))
	testworld.EqualList(t, mustShape(t, h), mustShape(t, made), "a migration was changed: the fixture of schema %d has other tables", n)
	testworld.Must(t, mustOpen(t, now).Close())

	tables, rows := mustTables(t, h), map[string][]string{}
	for table, columns := range tables {
		if rows[table] = mustValues(t, h, table, columns); len(rows[table]) == 0 {
			t.Errorf("%s has no row of %s", fixture(n), table)
		}
	}
	same := func(what string) {
		t.Helper()
		for table, columns := range tables {
			testworld.EqualList(t, mustValues(t, h, table, columns), rows[table], "%s: %s", what, table)
		}
	}
	testworld.Equal(t, mustBackup(t, h, copied).Schema, n, "the copy's schema")

	db := mustOpen(t, h)
	same("migrated")
	testworld.EqualList(t, mustShape(t, h), mustShape(t, now), "migrated from %d, and made anew", n)
	testworld.Must(t, db.Check(t.Context()))
	mustReadAll(t, db)
	mustApply(t, db, story()...)
	mustReadAll(t, db)
	testworld.Must(t, db.Check(t.Context()))
	testworld.Must(t, db.Close())

	testworld.Must(t, store.Restore(t.Context(), h, copied, aside))
	testworld.Equal(t, testworld.Got(store.SchemaOf(t.Context(), h))(t), n, "the restored schema")
	same("restored")
	testworld.EqualList(t, mustShape(t, h), mustShape(t, made), "restored")
	testworld.Equal(t, mustRows(t, h, "PRAGMA integrity_check")[0], "ok", "restored")
}

// writes are the methods of a DB that read nothing.
var writes = []string{"Apply", "Close", "Do", "Prune", "Refresh", "ReplaySpool", "Rewrite", "Shorten"}

// mustReadAll calls every method of db that reads.
func mustReadAll(t *testing.T, db *store.DB) {
	t.Helper()
	called := 0
	for m, method := range reflect.ValueOf(db).Methods() {
		if slices.Contains(writes, m.Name) || method.Type().NumIn() == 0 {
			continue
		}
		called++
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < method.Type().NumIn(); i++ {
			arg := reflect.New(method.Type().In(i)).Elem()
			switch arg.Interface().(type) {
			case string:
				arg.SetString("m-1")
			case agent.ID:
				arg.SetString("agent1")
			case int64:
				arg.SetInt(1)
			case func(store.Arrival):
				arg.Set(reflect.ValueOf(func(store.Arrival) {}))
			}
			args = append(args, arg)
		}
		out := method.Call(args)
		if err, _ := out[len(out)-1].Interface().(error); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if called < 25 {
		t.Errorf("only %d methods read", called)
	}
}

// A migration that fails in the middle leaves the database as it was.
func TestMigrationFails(t *testing.T) {
	t.Parallel()
	for n := 1; n <= store.Schema(); n++ {
		h := testworld.Home(t)
		mustSchema(t, h, n)
		before := dumped(t, h)
		all := store.MigrationsTo(store.Schema())
		all["migrations/999_bad.sql"] = &fstest.MapFile{Data: []byte("CREATE TABLE half (a TEXT) STRICT; DELETE FROM logs; INSERT INTO nowhere VALUES (1);")}
		testworld.Fails(t, store.Migrate(t.Context(), h, all), "migrations/999_bad.sql", "from schema %d", n)
		testworld.EqualList(t, dumped(t, h), before, "from schema %d", n)
		testworld.Equal(t, testworld.Got(store.SchemaOf(t.Context(), h))(t), n, "schema")
		testworld.Must(t, mustOpen(t, h).Check(t.Context()))
	}
}

// dumped is all that a database holds.
func dumped(tb testing.TB, h home.Dir) []string {
	tb.Helper()
	all, tables := mustShape(tb, h), mustTables(tb, h)
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		all = append(all, mustValues(tb, h, table, tables[table])...)
	}
	return all
}

// What happens under a netsky that is older than the database is kept for the newer one.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	h := testworld.Home(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	mustLog(t, db, "before")
	testworld.Must(t, db.Close())
	mustSQL(t, h.Path(home.DBFile), "PRAGMA user_version = 99")
	j := mustJournal(t, h)
	err := j.Record(t.Context(), store.AddLog{Text: "by the older"})
	testworld.ErrorIs(t, err, store.ErrSpooled, "Record")
	testworld.ErrorIs(t, err, store.ErrNewer, "Record")
	testworld.ErrorIs(t, testworld.Err(store.OpenRead(t.Context(), h)), store.ErrNewer, "OpenRead")
	testworld.Equal(t, testworld.Got(store.SchemaOf(t.Context(), h))(t), 99, "the schema")
	mustSQL(t, h.Path(home.DBFile), fmt.Sprintf("PRAGMA user_version = %d", store.Schema()))
	db = mustOpen(t, h)
	testworld.Equal(t, testworld.Got(db.ReplaySpool(t.Context()))(t), 1, "ReplaySpool")
	testworld.Equal(t, len(mustTexts(t, db)), 2, "logs")
}
