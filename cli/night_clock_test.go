//go:build live

package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"netsky/internal/chaos"
)

// clockBack ends everything, moves all times in the home an hour into the future, and starts
// everything again: what a clock that was set back by an hour looks like to a new process.
// The machine's own clock is not touched.
func clockBack(w *world) chaos.Fault {
	return chaos.Fault{Name: "clock", Says: "set the clock back by an hour", When: chaos.Lastly, Do: func(ctx context.Context, d *chaos.Drill) (chaos.Hit, error) {
		starts, err := d.Starts()
		if err != nil {
			return chaos.Hit{}, err
		}
		defer d.Quiet()()
		if out, err := d.Netsky(ctx, "down", "--all"); err != nil {
			if last := strings.LastIndex(out, "\n"); last >= 0 {
				out = out[last+1:]
			}
			return chaos.Hit{On: fmt.Sprintf("down --all, which is not done to its end (%v: %s)", err, out), Up: true}, nil
		}
		if err := shift(w.home, time.Hour); err != nil {
			return chaos.Hit{}, err
		}
		return chaos.Hit{On: "everything down, its times moved an hour into the future", Up: true, Fresh: starts}, nil
	}}
}

// shift moves all times of a home that nobody uses: those of the files, in their names, in
// what they contain, and in the records.
func shift(home string, by time.Duration) error {
	if err := shiftRecords(filepath.Join(home, "meta.db"), by); err != nil {
		return err
	}
	return filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !strings.Contains(e.Name(), "meta.db") {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if moved := shiftText(string(data), by); moved != string(data) {
				if err := os.WriteFile(path, []byte(moved), info.Mode()); err != nil {
					return err
				}
			}
		}
		name := path
		if ns, rest, ok := strings.Cut(e.Name(), "-"); ok && len(ns) == 20 {
			n, err := strconv.ParseInt(ns, 10, 64)
			if err != nil {
				return err
			}
			name = filepath.Join(filepath.Dir(path), fmt.Sprintf("%020d-%s", n+int64(by), rest))
		}
		at := info.ModTime().Add(by)
		return errors.Join(os.Chtimes(path, at, at), os.Rename(path, name))
	})
}

var (
	millis  = regexp.MustCompile(`(^|[^-\w.]|"[a-z_]+":)(1[0-9]{12})\b`) // not in an id
	rfc3339 = regexp.MustCompile(`\b20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})`)
)

func shiftText(text string, by time.Duration) string {
	text = millis.ReplaceAllStringFunc(text, func(s string) string {
		m := millis.FindStringSubmatch(s)
		if strings.Contains(m[1], "until_ms") || strings.Contains(m[1], "retry_ms") {
			return s // a vendor's word, by the vendor's clock
		}
		n, _ := strconv.ParseInt(m[2], 10, 64) // thirteen digits
		return m[1] + strconv.FormatInt(n+by.Milliseconds(), 10)
	})
	return rfc3339.ReplaceAllStringFunc(text, func(s string) string {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return s
		}
		return at.Add(by).Format(time.RFC3339Nano)
	})
}

// shiftRecords moves what can be a time in milliseconds in every integer column.
func shiftRecords(file string, by time.Duration) (err error) {
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(`SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND c.type = 'INTEGER' AND c.pk = 0`)
	if err != nil {
		return err
	}
	var updates []string
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return err
		}
		updates = append(updates, fmt.Sprintf("UPDATE %q SET %q = %q + %d WHERE %q BETWEEN 1000000000000 AND 9999999999999", table, column, column, by.Milliseconds(), column))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, u := range updates {
		if _, err := db.Exec(u); err != nil {
			return fmt.Errorf("%s: %w", u, err)
		}
	}
	return nil
}
