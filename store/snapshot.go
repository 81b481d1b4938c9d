package store

import (
	"context"
	"database/sql"

	"netsky/agent"
)

// How many of the newest a Snapshot holds; the rest is read by page.
const (
	snapshotMessages = 50
	snapshotLogs     = 50
	snapshotTasks    = 200
)

// A Snapshot is the state of all records at one moment.
type Snapshot struct {
	Time     Time                  `json:"time"`
	LastLog  int64                 `json:"last_log"` // the greatest log ID in it
	Actors   []ActorNow            `json:"actors"`
	Waiting  map[DeliveryState]int `json:"waiting"`  // how many deliveries are queued, claimed, poisoned, failed, expired
	Tasks    []Task                `json:"tasks"`    // not ended: in progress first, then by priority
	Messages []Message             `json:"messages"` // the newest
	Logs     []Log                 `json:"logs"`     // the newest
}

// An ActorNow is an actor with its last session and what waits for it.
type ActorNow struct {
	Actor
	Session *Session `json:"session,omitempty"`
	Queued  int      `json:"queued"`
	Claimed int      `json:"claimed"`
	Poison  int      `json:"poisoned"`
	Tasks   int      `json:"tasks"` // assigned to it and not ended
}

// Snapshot reads the state in one transaction.
func (db History) Snapshot(ctx context.Context) (Snapshot, error) {
	s := Snapshot{Time: At(db.Now())}
	tx, err := db.read.Load().BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s, fileError(db.home, err)
	}
	defer tx.Rollback()
	if err := s.fill(ctx, tx); err != nil {
		return s, fileError(db.home, err)
	}
	return s, nil
}

func (s *Snapshot) fill(ctx context.Context, q Querier) error {
	all, err := actors(ctx, q)
	if err != nil {
		return err
	}
	s.Actors = make([]ActorNow, len(all))
	at := make(map[agent.ID]*ActorNow, len(all))
	for i, a := range all {
		s.Actors[i].Actor = a
		at[a.ID] = &s.Actors[i]
	}
	last, err := Collect(ctx, q, scanSession, `SELECT `+sessionColumns+` FROM sessions WHERE seq IN (
		SELECT (SELECT s.seq FROM sessions s WHERE s.actor = a.id ORDER BY s.started DESC, s.seq DESC LIMIT 1) FROM actors a)`)
	if err != nil {
		return err
	}
	for i := range last {
		at[last[i].Actor].Session = &last[i]
	}
	if err := s.fillWaiting(ctx, q, at); err != nil {
		return err
	}
	s.Tasks, err = Collect(ctx, q, scanTask, "SELECT "+taskColumns+` FROM tasks WHERE state IN ('open', 'in_progress', 'blocked')
		ORDER BY state <> 'in_progress', priority, created LIMIT ?`, snapshotTasks)
	if err != nil {
		return err
	}
	m, err := messages(ctx, q, MessageFilter{Page: Page{Limit: snapshotMessages}})
	if err != nil {
		return err
	}
	s.Messages = m.Items
	l, err := logs(ctx, q, LogFilter{Page: Page{Limit: snapshotLogs}})
	if err != nil {
		return err
	}
	s.Logs = l.Items
	if len(s.Logs) > 0 {
		s.LastLog = s.Logs[0].ID
	}
	return nil
}

// fillWaiting counts unfinished and failed deliveries. Counts use an index; delivered and
// answered ones are the majority and not counted.
func (s *Snapshot) fillWaiting(ctx context.Context, q Querier, at map[agent.ID]*ActorNow) error {
	type count struct {
		who   agent.ID
		state string
		n     int
	}
	scan := func(r *sql.Rows) (c count, err error) {
		err = r.Scan(&c.who, &c.state, &c.n)
		return c, err
	}
	counts, err := Collect(ctx, q, scan, `SELECT target, state, count(*) FROM deliveries
		WHERE state IN ('queued', 'claimed', 'poisoned', 'failed', 'expired') GROUP BY state, target`)
	if err != nil {
		return err
	}
	s.Waiting = map[DeliveryState]int{}
	for _, c := range counts {
		s.Waiting[DeliveryState(c.state)] += c.n
		a := at[c.who]
		if a == nil {
			continue
		}
		switch DeliveryState(c.state) {
		case Queued:
			a.Queued = c.n
		case Claimed:
			a.Claimed = c.n
		case Poisoned:
			a.Poison = c.n
		}
	}
	counts, err = Collect(ctx, q, scan, `SELECT assignee, '', count(*) FROM tasks
		WHERE state IN ('open', 'in_progress', 'blocked') AND assignee <> '' GROUP BY assignee`)
	if err != nil {
		return err
	}
	for _, c := range counts {
		if a := at[c.who]; a != nil {
			a.Tasks = c.n
		}
	}
	return nil
}
