package record

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/store"
)

// Records are the records of work in an open database.
type Records struct{ DB *store.DB }

// A Filter selects records; empty fields match all.
type Filter struct {
	Agent agent.ID
	Task  string
	ID    string // or its beginning
	Tree  string // of checks
	Repo  string // of checks and landings: the git directory that its worktrees share
	State string
	// Of comments.
	Author agent.ID
	Newest bool // the newest first
	Limit  int  // 0 is 100; at most 1,000
}

// where returns the filter's conditions.
func (f Filter) where() (clause string, args []any) {
	var conds []string
	add := func(cond string, v string) {
		if v != "" {
			conds, args = append(conds, cond), append(args, v)
		}
	}
	add("agent = ?", string(f.Agent))
	add("task = ?", f.Task)
	add("tree = ?", f.Tree)
	add("repo = ?", f.Repo)
	add("state = ?", f.State)
	add("author = ?", string(f.Author))
	if f.ID != "" {
		conds, args = append(conds, "id >= ? AND id < ?"), append(args, f.ID, f.ID+"\x7f")
	}
	if len(conds) > 0 {
		clause = " WHERE " + strings.Join(conds, " AND ")
	}
	return clause, args
}

func (f Filter) limit() int {
	if f.Limit <= 0 {
		return 100
	}
	return min(f.Limit, 1000)
}

// Worktrees returns what is on record of the worktrees of all agents.
func (r Records) Worktrees(ctx context.Context) ([]Worktree, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (w Worktree, err error) {
		err = rows.Scan(&w.Agent, &w.Repo, &w.Dir, &w.Branch, &w.Base, &w.State, &w.Made, &w.Changed)
		return w, err
	}, "SELECT agent, repo, dir, branch, base, state, made, changed FROM worktrees ORDER BY agent")
}

// Checks returns checks, the newest first.
func (r Records) Checks(ctx context.Context, f Filter) ([]Check, error) {
	where, args := f.where()
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (k Check, err error) {
		err = rows.Scan(&k.ID, &k.Agent, &k.Task, &k.Repo, &k.Target, &k.Base, &k.Head, &k.Tree, &k.Command, &k.Digest, &k.State, &k.Status, &k.Reason, &k.Log, &k.Asker, &k.Started, &k.Ended)
		return k, err
	}, `SELECT id, agent, task, repo, target, base, head, tree, command, digest, state, status, reason, log, asker, started, ended
		FROM checks`+where+fmt.Sprintf(" ORDER BY started DESC, seq DESC LIMIT %d", f.limit()), args...)
}

// Landings returns landings, the newest first.
func (r Records) Landings(ctx context.Context, f Filter) ([]Landing, error) {
	where, args := f.where()
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (l Landing, err error) {
		err = rows.Scan(&l.ID, &l.Agent, &l.Task, &l.Repo, &l.Target, &l.How, &l.Base, &l.Head, &l.Tree, &l.Before, &l.After, &l.Evidence, &l.State, &l.Undo, &l.URL, &l.Reason, &l.Asker,
			&l.Started, &l.Ended, &l.Undone)
		return l, err
	}, `SELECT id, agent, task, repo, target, how, base, head, tree, before, after, evidence, state, undo, url, reason, asker, started, ended, undone
		FROM landings`+where+fmt.Sprintf(" ORDER BY started DESC, seq DESC LIMIT %d", f.limit()), args...)
}

// Comments returns comments, the oldest first if not told otherwise.
func (r Records) Comments(ctx context.Context, f Filter) ([]Comment, error) {
	where, args := f.where()
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (k Comment, err error) {
		err = rows.Scan(&k.ID, &k.Agent, &k.File, &k.Line, &k.Old, &k.Head, &k.Excerpt, &k.Text, &k.Author, &k.State, &k.Message, &k.Created, &k.Ended)
		return k, err
	}, `SELECT id, agent, file, line, old, head, excerpt, text, author, state, message, created, ended
		FROM comments`+where+fmt.Sprintf(" ORDER BY seq%s LIMIT %d", map[bool]string{true: " DESC"}[f.Newest], f.limit()), args...)
}
