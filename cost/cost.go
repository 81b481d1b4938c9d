// Package cost keeps the records of what the agents' turns used: tokens by agent, task, model
// and day, what is known of their price, and how far that has gone into the owner's budgets.
//
// One row is one request to a model, under the id that the agent's program has for it, so the
// same request read twice counts once. What was read of a file, how far that is, and what it means
// to the budgets is one transaction ([Records.Take]): a crash leaves all of it or nothing, and the
// next reading continues where the last one was recorded.
//
// Money is a whole number of thousand millionths of the owner's currency, and it is either what
// the program has stated or what the owner's table of prices makes of the tokens. Where there is
// neither, it is not known; sums keep what is known and what is not apart.
//
// The package reads no file of any program, tells nobody anything and bars nothing. What a turn
// was about is known only if its reader says so. Package store removes what is old.
package cost

import (
	"cmp"
	"context"
	"database/sql"
	"regexp"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/store"
)

// A Usage counts tokens; none is in two of the fields.
type Usage struct {
	Input      int64 `json:"input"` // without what came from a cache or went into it
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Total returns the number of all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Plus returns the sum of two usages, each figure of it up to 1e18.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		Input: capped(u.Input + o.Input), Output: capped(u.Output + o.Output),
		CacheRead: capped(u.CacheRead + o.CacheRead), CacheWrite: capped(u.CacheWrite + o.CacheWrite),
	}
}

// minus returns the difference; what would be below zero is zero.
func (u Usage) minus(v Usage) Usage {
	return Usage{max(u.Input-v.Input, 0), max(u.Output-v.Output, 0), max(u.CacheRead-v.CacheRead, 0), max(u.CacheWrite-v.CacheWrite, 0)}
}

// covers reports whether no field is below the other's.
func (u Usage) covers(v Usage) bool {
	return u.Input >= v.Input && u.Output >= v.Output && u.CacheRead >= v.CacheRead && u.CacheWrite >= v.CacheWrite
}

// bounded returns the usage with fields that a request can have.
func (u Usage) bounded() Usage {
	const most = 1 << 40
	f := func(n int64) int64 { return min(max(n, 0), most) }
	return Usage{f(u.Input), f(u.Output), f(u.CacheRead), f(u.CacheWrite)}
}

// A Turn is what one request to a model used.
type Turn struct {
	Source  string // the runtime whose program says so
	Key     string // the program's id of it
	Thread  string // the conversation
	Prompt  string // the program's id of what it answers, which other requests share
	Message string // the envelope that it is about, "" if unknown
	Model   string
	Usage   Usage
	Time    time.Time
}

// A Statement is what a program says a conversation has used of a model since its beginning, and
// what that cost. It covers requests that the program does not list.
type Statement struct {
	Source  string
	Thread  string
	Model   string
	Message string // the envelope that the last turn was about
	Usage   Usage
	Nano    int64
	Unsure  bool // the program does not know the price itself
	Base    bool // what it is about is counted elsewhere: only what the next one adds counts
	Time    time.Time
}

// A File is how far a file was read. It is the one with that number, whatever its name is.
type File struct {
	Device, Inode int64
	Path          string
	Agent         agent.ID
	Thread        string
	Offset        int64
	Head          string // digest of its beginning, by which it is recognised
	State         string // the reader's
}

// A Thread is a conversation of an agent's.
type Thread struct {
	ID      string
	Agent   agent.ID
	Runtime string
	First   store.Time // what the file has from before is not the agent's
	Last    store.Time
}

// Records are the records of cost in an open database.
type Records struct{ DB *store.DB }

// Threads returns the conversations heard of since a time, and those of sessions that have not
// ended.
func (r Records) Threads(ctx context.Context, since time.Time) ([]Thread, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (t Thread, err error) {
		err = rows.Scan(&t.ID, &t.Agent, &t.Runtime, &t.First, &t.Last)
		return t, err
	}, `SELECT thread, agent, runtime, first, last FROM threads
		WHERE last >= ?1 OR EXISTS (SELECT 1 FROM sessions WHERE sessions.thread = threads.thread AND ended = 0)
			OR EXISTS (SELECT 1 FROM sessions WHERE sessions.thread = threads.thread AND ended >= ?1) ORDER BY last`, store.At(since))
}

// Inputs returns the conversations that took a message since a time and that no session had: those of
// `netsky codex N`, as only Codex's messages are inputs.
func (r Records) Inputs(ctx context.Context, since time.Time) ([]Thread, error) {
	return store.Collect(ctx, r.DB.Pool(), func(rows *sql.Rows) (t Thread, err error) {
		err = rows.Scan(&t.ID, &t.Agent, &t.Runtime, &t.First, &t.Last)
		return t, err
	}, `SELECT thread, actor, 'codex', min(created), max(created) FROM actor_inputs WHERE thread <> '' AND thread NOT IN (SELECT thread FROM threads)
		GROUP BY thread HAVING max(created) >= ? ORDER BY max(created)`, store.At(since))
}

// LastRead returns when a file was read last; zero if none was.
func (r Records) LastRead(ctx context.Context) (t time.Time, err error) {
	var at store.Time
	if err = r.DB.Pool().QueryRowContext(ctx, "SELECT coalesce(max(changed), 0) FROM turn_files").Scan(&at); err == nil && at != 0 {
		t = at.Time()
	}
	return t, err
}

// File returns how far the file with that number was read; the zero File if it was not.
func (r Records) File(ctx context.Context, device, inode int64) (f File, err error) {
	err = r.DB.Pool().QueryRowContext(ctx, "SELECT device, inode, path, agent, thread, offset, head, state FROM turn_files WHERE device = ? AND inode = ?", device, inode).
		Scan(&f.Device, &f.Inode, &f.Path, &f.Agent, &f.Thread, &f.Offset, &f.Head, &f.State)
	if err == sql.ErrNoRows {
		return File{}, nil
	}
	return f, err
}

// A Price is what a million tokens cost, in thousand millionths of the currency.
type Price struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read"`
	CacheWrite int64 `json:"cache_write"`
}

// Prices are the owner's, by the model's name.
type Prices map[string]Price

var dated = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[-@](\d{8}|\d{4}-\d{2}-\d{2})$`) })

// Of returns the price of a model: under its own name, or without what says which release of it
// or how long its memory is.
func (p Prices) Of(model string) (Price, bool) {
	for _, name := range []string{model, plain(model), dated().ReplaceAllString(plain(model), "")} {
		if price, ok := p[name]; ok {
			return price, true
		}
	}
	return Price{}, false
}

// plain returns a model's name without what a program appends in brackets.
func plain(model string) string {
	name, _, _ := strings.Cut(model, "[")
	return cmp.Or(name, model)
}

// nano returns what the tokens cost. It can't overflow: a float is exact enough for one request.
func (p Price) nano(u Usage) int64 {
	sum := float64(u.Input)*float64(p.Input) + float64(u.Output)*float64(p.Output) +
		float64(u.CacheRead)*float64(p.CacheRead) + float64(u.CacheWrite)*float64(p.CacheWrite)
	return int64(min(sum/1e6+0.5, 1e18))
}

type querier interface {
	store.Querier
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func exec(c *sql.Conn, query string, args ...any) error {
	_, err := c.ExecContext(context.Background(), query, args...)
	return err
}
