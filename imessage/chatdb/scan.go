package chatdb

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"netsky/phone/chat"
)

// maxBodies is how many bytes of bodies a batch may have before it ends.
const maxBodies = 8 << 20

// A scan is one look at the database: what follows a cursor.
type scan struct {
	db  *DB
	cur cursor
	now time.Time

	out   []chat.Message
	notes []string
	moved bool // the cursor has changed
	bytes int
	wake  time.Time // when something may be ready without another commit
}

// later asks for another look at a time.
func (s *scan) later(at time.Time) {
	if s.wake.IsZero() || at.Before(s.wake) {
		s.wake = at
	}
}

func (s *scan) run(v *view) error {
	s.wake = s.now.Add(time.Hour)
	why, err := v.foreign(s.cur)
	if err != nil {
		return err
	}
	if why != "" {
		s.db.marks = nil
		if s.cur, err = v.end(); err != nil {
			return err
		}
		s.moved = true
		s.notes = append(s.notes, fmt.Sprintf("chat.db: this is another database (%s); begins at its newest message", why))
		return nil
	}
	var last int64
	if _, err := v.one("SELECT coalesce(max(ROWID), 0) FROM message", nil, &last); err != nil {
		return err
	}
	s.db.noted(last, s.now)
	err = s.waiting(v)
	if err == nil {
		err = s.following(v)
	}
	// What was found before a damaged page is not held back by it.
	if err != nil && s.moved {
		return nil
	}
	return err
}

// waiting returns what was set aside and is ready now.
func (s *scan) waiting(v *view) error {
	var left []aside
	for i, a := range s.cur.Aside {
		if s.full() {
			left = append(left, s.cur.Aside[i:]...)
			break
		}
		r, ok, err := v.row(a.Row)
		if err != nil {
			return err
		}
		age := s.now.Sub(time.UnixMilli(a.Since))
		switch {
		case !ok: // deleted
		case r.planned && age < planFor && age > -planFor:
			left = append(left, a) // a commit will say so when it is sent
			continue
		case r.planned:
		case len(r.chats) == 0 && age < asideFor && age > -asideFor:
			left = append(left, a)
			s.later(s.now.Add(asideFor - age))
			continue
		case len(r.chats) == 0:
			s.notes = append(s.notes, fmt.Sprintf("chat.db: row %d got no chat within %v; it is not delivered", a.Row, asideFor))
		case r.empty() && age < emptyAfter && age > -emptyAfter:
			left = append(left, a)
			s.later(s.now.Add(emptyAfter - age))
			continue
		default:
			if err := s.add(v, r); err != nil {
				return err
			}
		}
		s.moved = true
	}
	s.cur.Aside = left
	return nil
}

// errStop ends the reading of rows.
var errStop = errors.New("stop")

// following returns the rows behind the cursor that are ready, in their order.
func (s *scan) following(v *view) error {
	// The ids first: a row is read by itself, so that only one is in memory, and a damaged page
	// stops at what it holds.
	var ids []int64
	err := v.all("SELECT ROWID FROM message WHERE ROWID > ? ORDER BY ROWID LIMIT ?", []any{s.cur.Row, chat.MaxBatch},
		func(rows *sql.Rows) error {
			var id int64
			defer func() { ids = append(ids, id) }()
			return rows.Scan(&id)
		})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if s.full() {
			return nil
		}
		first := s.db.since(id, s.now)
		if at := first.Add(settle); s.now.Before(at) {
			s.later(at)
			return nil
		}
		r, ok, err := v.row(id)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := s.pass(v, r, first); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
		s.cur.Row, s.cur.GUID, s.cur.Date, s.moved = id, r.guid, r.date, true
	}
	return nil
}

// pass returns a row or sets it aside; errStop says that it, and all behind it, have to wait.
func (s *scan) pass(v *view, r *row, first time.Time) error {
	alone := len(r.chats) == 0
	if r.planned {
		s.aside(r, first)
		return nil
	}
	if !alone && (!r.empty() || s.now.Sub(first) >= emptyAfter) {
		return s.add(v, r)
	}
	if at := first.Add(grace); s.now.Before(at) && !(r.fromMe && r.empty()) {
		s.later(at)
		return errStop
	}
	if alone {
		s.notes = append(s.notes, fmt.Sprintf("chat.db: row %d has no chat yet; those behind it no longer wait for it", r.id))
		s.later(s.now.Add(asideFor))
	} else {
		s.later(first.Add(emptyAfter))
	}
	s.aside(r, first)
	return nil
}

// aside keeps a row in the cursor.
func (s *scan) aside(r *row, first time.Time) {
	if len(s.cur.Aside) == maxAside {
		s.notes = append(s.notes, fmt.Sprintf("chat.db: more than %d rows are incomplete; row %d is not delivered", maxAside, s.cur.Aside[0].Row))
		s.cur.Aside = s.cur.Aside[1:]
	}
	s.cur.Aside = append(s.cur.Aside, aside{Row: r.id, Since: first.UnixMilli()})
}

func (s *scan) full() bool { return len(s.out) >= chat.MaxBatch || s.bytes >= maxBodies }

// add returns a row as a message, unless it is a second copy of a link.
func (s *scan) add(v *view, r *row) error {
	s.bytes += len(r.text) + len(r.body)
	again, err := v.repeatsLink(r)
	if err != nil || again {
		return err
	}
	m, err := v.message(r)
	if err != nil {
		return err
	}
	s.out = append(s.out, m)
	return nil
}
