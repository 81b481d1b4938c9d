package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"netsky/agent"
)

// Desired states of an actor.
const (
	DesiredUp   = "up"
	DesiredDown = "down"
)

// An Actor is an address that has been started at least once, and its purpose.
type Actor struct {
	ID        agent.ID `json:"id"`
	Role      string   `json:"role"`
	Runtime   string   `json:"runtime"`
	Dir       string   `json:"dir"`
	Objective string   `json:"objective,omitempty"`
	Desired   string   `json:"desired,omitempty"` // DesiredUp or DesiredDown
	Created   Time     `json:"created,omitzero"`
	Updated   Time     `json:"updated,omitzero"`
}

// UpsertActor records an actor. An empty field keeps the stored value, an empty role means
// the one of the ID; Updated is when it happened.
type UpsertActor Actor

func (UpsertActor) name() string { return "upsert_actor" }

func (a UpsertActor) stamped(now Time) Op {
	stamp(&a.Updated, now)
	stamp(&a.Created, a.Updated)
	if a.Role == "" {
		a.Role = a.ID.Role()
	}
	return a
}

func (a UpsertActor) apply(t *tx) error {
	if _, err := agent.Parse(string(a.ID)); err != nil {
		return fmt.Errorf("%w: %w", errOp, err)
	}
	return t.exec(`INSERT INTO actors (id, role, runtime, dir, objective, desired, created, updated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET
			role      = excluded.role,
			runtime   = CASE WHEN (excluded.updated >= updated AND excluded.runtime <> '') OR runtime = '' THEN excluded.runtime ELSE runtime END,
			dir       = CASE WHEN (excluded.updated >= updated AND excluded.dir <> '') OR dir = '' THEN excluded.dir ELSE dir END,
			objective = CASE WHEN (excluded.updated >= updated AND excluded.objective <> '') OR objective = '' THEN excluded.objective ELSE objective END,
			desired   = CASE WHEN (excluded.updated >= updated AND excluded.desired <> '') OR desired = '' THEN excluded.desired ELSE desired END,
			created   = min(created, excluded.created),
			updated   = max(updated, excluded.updated)`,
		a.ID, a.Role, a.Runtime, a.Dir, a.Objective, a.Desired, a.Created, a.Updated)
}

const actorColumns = "id, role, runtime, dir, objective, desired, created, updated"

func scanActor(r *sql.Rows) (a Actor, err error) {
	err = r.Scan(&a.ID, &a.Role, &a.Runtime, &a.Dir, &a.Objective, &a.Desired, &a.Created, &a.Updated)
	return a, err
}

// Actors lists all actors in display order: agent0, agent1, ….
func (db Agents) Actors(ctx context.Context) ([]Actor, error) { return actors(ctx, db.read.Load()) }

func actors(ctx context.Context, q Querier) ([]Actor, error) {
	found, err := Collect(ctx, q, scanActor, "SELECT "+actorColumns+" FROM actors")
	slices.SortFunc(found, func(a, b Actor) int { return agent.Compare(a.ID, b.ID) })
	return found, err
}

// Actor returns the actor with that id.
func (db Agents) Actor(ctx context.Context, id agent.ID) (Actor, error) {
	return first(ctx, db.read.Load(), scanActor, string(id), "SELECT "+actorColumns+" FROM actors WHERE id = ?", id)
}
