package store

import (
	"context"
	"database/sql"
	"fmt"
)

// A Setting is one stored value, and who set it.
type Setting struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Who     string `json:"who,omitempty"`
	Updated Time   `json:"updated"`
}

// SetSetting records a setting; one set at a later moment stays.
type SetSetting Setting

func (SetSetting) name() string { return "set_setting" }

func (s SetSetting) stamped(now Time) Op { stamp(&s.Updated, now); return s }

func (s SetSetting) apply(t *tx) error {
	if s.Key == "" {
		return fmt.Errorf("%w: setting without a key", errOp)
	}
	return t.exec(`INSERT INTO settings (key, value, who, updated) VALUES (?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value, who = excluded.who, updated = excluded.updated
		WHERE excluded.updated >= updated`, s.Key, s.Value, s.Who, s.Updated)
}

func scanSetting(r *sql.Rows) (s Setting, err error) {
	err = r.Scan(&s.Key, &s.Value, &s.Who, &s.Updated)
	return s, err
}

// Settings lists all settings by key.
func (db *DB) Settings(ctx context.Context) ([]Setting, error) {
	return Collect(ctx, db.read.Load(), scanSetting, "SELECT key, value, who, updated FROM settings ORDER BY key")
}

// Setting returns the setting with that key; its error matches ErrNotFound.
func (db *DB) Setting(ctx context.Context, key string) (Setting, error) {
	return first(ctx, db.read.Load(), scanSetting, key, "SELECT key, value, who, updated FROM settings WHERE key = ?", key)
}
