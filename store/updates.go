package store

import (
	"context"
	"database/sql"
	"fmt"
)

// An Update is one run of the binary's own update: what was run, what was kept for a
// rollback, and how it went.
type Update struct {
	ID           string   `json:"id"`
	State        string   `json:"state"`
	Repository   string   `json:"repository,omitempty"`
	Revision     string   `json:"revision,omitempty"`
	Commands     []string `json:"commands,omitempty"`
	Backup       string   `json:"backup,omitempty"`
	RollbackHint string   `json:"rollback_hint,omitempty"`
	Error        string   `json:"error,omitempty"`
	Started      Time     `json:"started"`
	Updated      Time     `json:"updated"`
	Ended        Time     `json:"ended,omitzero"`

	seq int64
}

// UpsertUpdate records the whole run as of Updated; a later recorded version stays.
type UpsertUpdate Update

func (UpsertUpdate) name() string { return "upsert_update" }

func (u UpsertUpdate) stamped(now Time) Op {
	stamp(&u.Updated, now)
	stamp(&u.Started, u.Updated)
	return u
}

func (u UpsertUpdate) apply(t *tx) error {
	if u.ID == "" || u.State == "" {
		return fmt.Errorf("%w: update %q: id and state are required", errOp, u.ID)
	}
	commands, err := toJSON(u.Commands)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO self_update_runs (id, state, repository, revision, commands, backup, rollback_hint, error, started, updated, ended)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, repository = excluded.repository, revision = excluded.revision,
			commands = excluded.commands, backup = excluded.backup, rollback_hint = excluded.rollback_hint,
			error = excluded.error, updated = excluded.updated, ended = excluded.ended
		WHERE excluded.updated >= updated`,
		u.ID, u.State, u.Repository, u.Revision, commands, u.Backup, u.RollbackHint, u.Error, u.Started, u.Updated, u.Ended)
}

const updateColumns = "id, state, repository, revision, commands, backup, rollback_hint, error, started, updated, ended, seq"

func scanUpdate(r *sql.Rows) (u Update, err error) {
	var commands string
	err = r.Scan(&u.ID, &u.State, &u.Repository, &u.Revision, &commands, &u.Backup, &u.RollbackHint, &u.Error,
		&u.Started, &u.Updated, &u.Ended, &u.seq)
	if err == nil {
		err = fromJSON(commands, &u.Commands)
	}
	return u, err
}

// Updates lists the runs, the newest first.
func (db History) Updates(ctx context.Context, p Page) (List[Update], error) {
	var w where
	return paged(ctx, db.read.Load(), &w, p, scanUpdate, updateColumns, "self_update_runs", "started",
		func(u Update) (Time, int64) { return u.Started, u.seq })
}
