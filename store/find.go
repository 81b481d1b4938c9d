package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/agent"
)

// MetaFile is the key in a message's metadata for the name of the file it arrived in, if a
// person chose it.
const MetaFile = "file"

// ErrSearch is returned by Find for a text that it can't search for.
var ErrSearch = errors.New("invalid search")

// Limits that keep every search cheap.
const (
	maxFindWords = 8
	maxFindText  = 200 // bytes of what is searched for
	foundBefore  = 60  // characters of the excerpt before the first word
	foundText    = 240 // characters of the excerpt
)

// A Found is a record in which all words of a search occur.
type Found struct {
	Kind string   `json:"kind"` // SubjectMessage, SubjectTask or SubjectNote
	ID   string   `json:"id"`
	Time Time     `json:"time"`
	From agent.ID `json:"from,omitempty"` // the sender, who asked, the author
	To   agent.ID `json:"to,omitempty"`   // the addressee, the assignee
	File string   `json:"file,omitempty"` // that a message arrived in, if a person named it
	// About is what a note is about.
	About string `json:"about,omitempty"`
	Text  string `json:"text"` // an excerpt with the first word in it

	seq int64
}

// Find lists the messages, tasks and notes whose text, file name or id contains all the
// words, the newest first. It ignores the case of A to Z. There is no index: the time
// grows with the number of records, and ctx ends the search.
func (db History) Find(ctx context.Context, text string, p Page) (List[Found], error) {
	words := strings.Fields(text)
	switch {
	case len(words) == 0:
		return List[Found]{}, fmt.Errorf("%w: no words", ErrSearch)
	case len(text) > maxFindText:
		return List[Found]{}, fmt.Errorf("%w: more than %d bytes", ErrSearch, maxFindText)
	case len(words) > maxFindWords:
		return List[Found]{}, fmt.Errorf("%w: more than %d words", ErrSearch, maxFindWords)
	}
	var from foundPlace
	if p.Cursor != "" {
		var err error
		if from, err = parseFoundPlace(p.Cursor); err != nil {
			return List[Found]{}, err
		}
	}
	n := p.limit()
	all := []Found{}
	for rank, s := range searches {
		found, err := s.find(ctx, db.read.Load(), rank, words, from, n+1)
		if err != nil {
			return List[Found]{}, fileError(db.home, err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(rankOfKind(a.Kind), rankOfKind(b.Kind)), cmp.Compare(b.seq, a.seq))
	})
	l := List[Found]{Items: all}
	if len(all) > n {
		l.Items = slices.Clip(all[:n])
		last := l.Items[n-1]
		l.Cursor = foundPlace{last.Time, rankOfKind(last.Kind), last.seq}.String()
	}
	return l, nil
}

// A search is one table's part of Find. Its expressions are constants.
type search struct {
	kind, table, time string
	from, to, about   string
	file              string
	text              string // what the excerpt is of
	fields            []string
}

var searches = []search{
	{SubjectMessage, "messages", "time", "sender", "target", "''",
		"iif(metadata = '', '', coalesce(json_extract(metadata, '$." + MetaFile + "'), ''))", "text", []string{"text", "id"}},
	{SubjectTask, "tasks", "created", "asked_by", "assignee", "''", "''", "title || char(10) || body", []string{"title", "body", "id"}},
	{SubjectNote, "notes", "created", "author", "''", "about", "''", "text", []string{"text", "id"}},
}

func rankOfKind(kind string) int {
	return slices.IndexFunc(searches, func(s search) bool { return s.kind == kind })
}

func (s search) find(ctx context.Context, q Querier, rank int, words []string, from foundPlace, limit int) ([]Found, error) {
	var w where
	for _, word := range words {
		pattern := "%" + likeEscape.Replace(word) + "%"
		var conds []string
		var args []any
		for _, f := range s.fields {
			conds, args = append(conds, f+` LIKE ? ESCAPE '\'`), append(args, pattern)
		}
		if s.file != "''" {
			conds, args = append(conds, s.file+` LIKE ? ESCAPE '\'`), append(args, pattern)
		}
		w.add("("+strings.Join(conds, " OR ")+")", args...)
	}
	if from != (foundPlace{}) {
		switch {
		case rank < from.rank:
			w.add(s.time+" < ?", from.at)
		case rank > from.rank:
			w.add(s.time+" <= ?", from.at)
		default:
			w.add("("+s.time+", seq) < (?, ?)", from.at, from.seq)
		}
	}
	// SQLite cuts the excerpt: a text may be a megabyte long.
	excerpt := fmt.Sprintf("substr(%s, max(1, instr(lower(%s), lower(?)) - %d), %d)", s.text, s.text, foundBefore, foundText)
	query := "SELECT id, " + s.time + ", " + s.from + ", " + s.to + ", " + s.about + ", " + s.file + ", " + excerpt + ", seq FROM " + s.table +
		w.String() + " ORDER BY " + s.time + " DESC, seq DESC LIMIT " + strconv.Itoa(limit)
	return Collect(ctx, q, func(r *sql.Rows) (Found, error) {
		f := Found{Kind: s.kind}
		err := r.Scan(&f.ID, &f.Time, &f.From, &f.To, &f.About, &f.File, &f.Text, &f.seq)
		return f, err
	}, query, append([]any{words[0]}, w.args...)...)
}

var likeEscape = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// A foundPlace is a record's position in the order of Find.
type foundPlace struct {
	at   Time
	rank int
	seq  int64
}

func (p foundPlace) String() string { return fmt.Sprintf("%d.%d.%d", int64(p.at), p.rank, p.seq) }

func parseFoundPlace(s string) (p foundPlace, err error) {
	parts := strings.Split(s, ".")
	if len(parts) == 3 {
		var at int64
		if at, err = strconv.ParseInt(parts[0], 10, 64); err == nil {
			p.at = Time(at)
			if p.rank, err = strconv.Atoi(parts[1]); err == nil {
				p.seq, err = strconv.ParseInt(parts[2], 10, 64)
			}
		}
		if err == nil {
			return p, nil
		}
	}
	return p, badCursor(s)
}

// byFile finds the newest messages that arrived in a file which a person gave that name,
// with or without .json.
func byFile(ctx context.Context, q Querier, name string) ([]Subject, error) {
	return Collect(ctx, q, scanSubject, `SELECT 'message', id FROM messages WHERE metadata <> ''
		AND json_extract(metadata, '$.`+MetaFile+`') IN (?1, ?1 || '.json') ORDER BY time DESC, seq DESC LIMIT 1`, name)
}
