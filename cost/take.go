package cost

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"netsky/store"
	"netsky/work/task"
)

// A Batch is what was read of one file, in its order.
type Batch struct {
	File    File
	First   store.Time // what is older belongs to nobody
	Entries []Entry
}

// An Entry is what one line says: turns, or one statement about each of a conversation's models.
type Entry struct {
	Turns  []Turn
	Stated []Statement
}

// Take records a batch: the turns, the place in the file from which reading continues, and which
// budgets that reaches, in one transaction.
func (r Records) Take(ctx context.Context, b Batch, p Prices, l Limits, now time.Time) error {
	return r.DB.Do(ctx, "turns", func(c *sql.Conn) error {
		t := taking{c: c, b: b, prices: p}
		for _, e := range b.Entries {
			for _, turn := range e.Turns {
				if err := t.turn(turn); err != nil {
					return err
				}
			}
			if err := t.stated(e.Stated); err != nil {
				return err
			}
		}
		if err := t.attribute(now); err != nil {
			return err
		}
		if err := t.place(now); err != nil {
			return err
		}
		if len(b.Entries) == 0 {
			return nil
		}
		return reach(c, b.File.Agent, l, now)
	})
}

type taking struct {
	c      *sql.Conn
	b      Batch
	prices Prices
}

// turn records one request. What is on record of it grows, as a program writes it several times.
func (t *taking) turn(n Turn) error {
	at := store.At(n.Time)
	if n.Key == "" || at < t.b.First {
		return nil
	}
	u := n.Usage.bounded()
	var priced string
	err := t.c.QueryRowContext(context.Background(), `INSERT INTO turns (source, key, agent, thread, prompt, message, model, input, output, cache_read, cache_write, time)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (source, key) DO UPDATE SET input = max(input, excluded.input), output = max(output, excluded.output),
			cache_read = max(cache_read, excluded.cache_read), cache_write = max(cache_write, excluded.cache_write),
			prompt = iif(prompt = '', excluded.prompt, prompt), message = iif(message = '', excluded.message, message), model = iif(model = '', excluded.model, model)
		RETURNING model, input, output, cache_read, cache_write, priced`,
		n.Source, n.Key, t.b.File.Agent, n.Thread, n.Prompt, n.Message, n.Model, u.Input, u.Output, u.CacheRead, u.CacheWrite, at).
		Scan(&n.Model, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &priced)
	if err != nil || priced == pricedStated {
		return err
	}
	if price, ok := t.prices.Of(n.Model); ok {
		return exec(t.c, "UPDATE turns SET nano = ?, priced = ? WHERE source = ? AND key = ?", price.nano(u), pricedTable, n.Source, n.Key)
	}
	return nil
}

// Where a price is from.
const (
	pricedStated = "stated"
	pricedTable  = "table"
)

// attribute says what turns were about, once that is known: of the requests for one prompt all
// are about the same, and a task's brief is about the task.
func (t *taking) attribute(now time.Time) error {
	done := make(map[string]bool)
	for _, n := range t.turns() {
		if n.Prompt == "" || done[n.Prompt] {
			continue
		}
		done[n.Prompt] = true
		if err := exec(t.c, `UPDATE turns SET message = coalesce((SELECT o.message FROM turns o WHERE o.thread = ?1 AND o.prompt = ?2 AND o.message <> '' LIMIT 1), '')
			WHERE thread = ?1 AND prompt = ?2 AND message = ''`, n.Thread, n.Prompt); err != nil {
			return err
		}
	}
	briefs, err := t.briefs(store.At(now.Add(-lateTasks)))
	for _, message := range briefs {
		if id, ok := task.OfBrief(message); ok {
			err = cmp.Or(err, exec(t.c, `UPDATE turns SET task = ?1 WHERE agent = ?2 AND message = ?3 AND task = '' AND EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND (assignee = ?2
				OR EXISTS (SELECT 1 FROM messages WHERE id = ?3 AND target = ?2 AND sender NOT GLOB 'agent[1-9]*')))`, // clones give none to others
				id, t.b.File.Agent, message))
		}
	}
	return err
}

// briefs returns the messages that may be tasks' briefs, of turns since then that are about no task yet.
func (t *taking) briefs(since store.Time) ([]string, error) {
	return store.Collect(context.Background(), t.c, text, `SELECT DISTINCT message FROM turns WHERE agent = ? AND time >= ? AND task = '' AND message GLOB ?`,
		t.b.File.Agent, since, task.Briefs)
}

// text scans a row of one text.
func text(r *sql.Rows) (s string, err error) {
	err = r.Scan(&s)
	return s, err
}

// lateTasks is how long after a turn a task may be recorded whose brief it took.
const lateTasks = 48 * time.Hour

// place records how far the file was read.
func (t *taking) place(now time.Time) error {
	f := t.b.File
	return exec(t.c, `INSERT INTO turn_files (device, inode, path, agent, thread, offset, head, state, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (device, inode) DO UPDATE SET path = excluded.path, agent = excluded.agent, thread = excluded.thread,
			offset = excluded.offset, head = excluded.head, state = excluded.state, changed = excluded.changed`,
		f.Device, f.Inode, f.Path, f.Agent, f.Thread, f.Offset, f.Head, f.State, store.At(now))
}

func (t *taking) turns() (all []Turn) {
	for _, e := range t.b.Entries {
		all = append(all, e.Turns...)
	}
	return all
}

// stated compares what a program states of a conversation with the requests on record since its
// last statement. What is stated beyond them becomes a turn of its own, and the price that is
// stated takes the place of any other.
func (t *taking) stated(all []Statement) error {
	fresh, err := t.since(all)
	if err != nil || len(fresh) == 0 {
		return err
	}
	first := fresh[0]
	models, err := store.Collect(context.Background(), t.c, text,
		"SELECT DISTINCT model FROM turns WHERE source = ? AND thread = ? AND seq > ?", first.Source, first.Thread, first.upto)
	if err != nil {
		return err
	}
	for _, m := range models {
		if !slices.ContainsFunc(all, func(s Statement) bool { return plain(s.Model) == plain(m) }) {
			return nil // the names are others, so nothing can be compared
		}
	}
	for _, s := range fresh {
		if s.Base || store.At(s.Time) < t.b.First {
			continue // of somebody else
		}
		if err := t.compare(s); err != nil {
			return err
		}
	}
	return nil
}

// An increase is what a statement says beyond the last one.
type increase struct {
	Statement
	upto  int64 // the seq of the last turn on record at the last one
	total int64 // of all tokens since the conversation's beginning
}

// since returns what has been added since the last statement, and records this one. Statements
// only grow: one that does not was read before.
func (t *taking) since(all []Statement) (fresh []increase, err error) {
	for _, s := range all {
		var last Usage
		var nano, upto int64
		err := t.c.QueryRowContext(context.Background(), "SELECT input, output, cache_read, cache_write, nano, upto FROM turns_stated WHERE source = ? AND thread = ? AND model = ?",
			s.Source, s.Thread, s.Model).Scan(&last.Input, &last.Output, &last.CacheRead, &last.CacheWrite, &nano, &upto)
		if err != nil && err != sql.ErrNoRows {
			return nil, err
		}
		u := s.Usage.bounded()
		if u == last || !u.covers(last) {
			continue
		}
		if err := exec(t.c, `INSERT INTO turns_stated (source, thread, model, input, output, cache_read, cache_write, nano, upto, time)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT coalesce(max(seq), 0) FROM turns), ?9)
			ON CONFLICT (source, thread, model) DO UPDATE SET input = excluded.input, output = excluded.output, cache_read = excluded.cache_read,
				cache_write = excluded.cache_write, nano = excluded.nano, upto = excluded.upto, time = excluded.time`,
			s.Source, s.Thread, s.Model, u.Input, u.Output, u.CacheRead, u.CacheWrite, s.Nano, store.At(s.Time)); err != nil {
			return nil, err
		}
		s.Usage, s.Nano = u.minus(last), s.Nano-nano
		fresh = append(fresh, increase{s, upto, u.Total()})
	}
	return fresh, nil
}

// compare accounts for what was added of one model. The program forgets what it had not stated
// when it was killed, so the statement is about the last requests that it covers. What they cost
// is divided among them: most is used by what is read and written, and all vendors ask several
// times as much for output, and a fraction for what is cached.
func (t *taking) compare(s increase) error {
	covered, err := t.covered(s)
	if err != nil {
		return err
	}
	rest := s.Usage
	var weight float64
	for _, q := range covered {
		rest, weight = rest.minus(q.Usage), weight+q.weight()
	}
	weight += rest.weight()
	known, left := !s.Unsure && s.Nano >= 0 && weight > 0, s.Nano
	for _, q := range covered {
		if !known {
			break
		}
		share := min(int64(float64(s.Nano)*q.weight()/weight), left)
		if left -= share; rest == (Usage{}) && q.key == covered[len(covered)-1].key {
			share, left = share+left, 0
		}
		if err := exec(t.c, "UPDATE turns SET nano = ?, priced = ? WHERE source = ? AND key = ?", share, pricedStated, s.Source, q.key); err != nil {
			return err
		}
	}
	if rest == (Usage{}) {
		return nil
	}
	var nano, priced any = nil, ""
	if known {
		nano, priced = left, pricedStated
	} else if price, ok := t.prices.Of(s.Model); ok {
		nano, priced = price.nano(rest), pricedTable
	}
	return exec(t.c, `INSERT INTO turns (source, key, agent, thread, message, model, input, output, cache_read, cache_write, nano, priced, time)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, key) DO NOTHING`,
		s.Source, fmt.Sprintf("%s%s %s %d", unlisted, s.Thread, s.Model, s.total), t.b.File.Agent, s.Thread, s.Message, s.Model,
		rest.Input, rest.Output, rest.CacheRead, rest.CacheWrite, nano, priced, store.At(s.Time))
}

// unlisted begins the key of a turn that only a statement shows. No request has such a key.
const unlisted = "unlisted "

// weight is what the tokens cost, compared with other tokens of the same model.
func (u Usage) weight() float64 {
	return float64(u.Input) + 5*float64(u.Output) + float64(u.CacheRead)/10 + 1.25*float64(u.CacheWrite)
}

// A request is a request to a model that is on record.
type request struct {
	key, model string
	Usage
}

// covered returns the last requests that a statement covers.
func (t *taking) covered(s increase) (covered []request, err error) {
	all, err := store.Collect(context.Background(), t.c, func(r *sql.Rows) (q request, err error) {
		err = r.Scan(&q.key, &q.model, &q.Input, &q.Output, &q.CacheRead, &q.CacheWrite)
		return q, err
	}, "SELECT key, model, input, output, cache_read, cache_write FROM turns WHERE source = ? AND thread = ? AND seq > ? ORDER BY time DESC, seq DESC", s.Source, s.Thread, s.upto)
	var sum Usage
	for _, q := range all {
		if plain(q.model) != plain(s.Model) {
			continue
		}
		if sum = sum.Plus(q.Usage); !s.Usage.covers(sum) {
			break
		}
		covered = append(covered, q)
	}
	return covered, err
}

// Reprice gives the turns whose cost is not known the prices that the table has now.
func (r Records) Reprice(ctx context.Context, p Prices) error {
	models, err := store.Collect(ctx, r.DB.Pool(), text,
		"SELECT DISTINCT model FROM turns WHERE nano IS NULL")
	if err != nil {
		return err
	}
	for _, m := range models {
		price, ok := p.Of(m)
		for after := int64(0); ok; {
			if after, err = r.reprice(ctx, m, price, after); err != nil || after == 0 {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reprice is one of Reprice's transactions.
func (r Records) reprice(ctx context.Context, model string, p Price, after int64) (last int64, err error) {
	type row struct {
		seq int64
		Usage
	}
	err = r.DB.Do(ctx, "prices", func(c *sql.Conn) error {
		last = 0
		rows, err := store.Collect(context.Background(), c, func(r *sql.Rows) (q row, err error) {
			err = r.Scan(&q.seq, &q.Input, &q.Output, &q.CacheRead, &q.CacheWrite)
			return q, err
		}, "SELECT seq, input, output, cache_read, cache_write FROM turns WHERE model = ? AND nano IS NULL AND seq > ? ORDER BY seq LIMIT 200", model, after)
		for _, q := range rows {
			if err == nil {
				err = exec(c, "UPDATE turns SET nano = ?, priced = ? WHERE seq = ?", p.nano(q.Usage), pricedTable, q.seq)
			}
			last = q.seq
		}
		return err
	})
	return last, err
}
