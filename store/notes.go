package store

import (
	"context"
	"database/sql"
	"fmt"

	"netsky/agent"
)

// A Note is something to remember, about anything with an id.
type Note struct {
	ID      string `json:"id"`
	About   string `json:"about,omitempty"` // any id
	Author  string `json:"author,omitempty"`
	Text    string `json:"text"`
	Created Time   `json:"created"`

	seq int64
}

// AddNote records a note. Without an ID it gets one; applied again it changes nothing.
type AddNote Note

func (AddNote) name() string { return "add_note" }

func (n AddNote) stamped(now Time) Op {
	stamp(&n.Created, now)
	stampKey(&n.ID)
	return n
}

func (n AddNote) apply(t *tx) error {
	if n.ID == "" {
		return fmt.Errorf("%w: note without an id", errOp)
	}
	return t.exec("INSERT INTO notes (id, about, author, text, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
		n.ID, n.About, n.Author, n.Text, n.Created)
}

// reasonPrefix begins the ids of notes that say why a task is blocked.
const reasonPrefix = "why-"

// Because returns the note as the reason for which the task that it is about is blocked.
func (n AddNote) Because() AddNote {
	n.ID = reasonPrefix + agent.NewStart()
	return n
}

const noteColumns = "id, about, author, text, created, seq"

func scanNote(r *sql.Rows) (n Note, err error) {
	err = r.Scan(&n.ID, &n.About, &n.Author, &n.Text, &n.Created, &n.seq)
	return n, err
}

// Note returns the note with that id.
func (db Work) Note(ctx context.Context, id string) (Note, error) {
	return first(ctx, db.read.Load(), scanNote, id, "SELECT "+noteColumns+" FROM notes WHERE id = ?", id)
}

// Reason returns the note that says why a task is blocked: the last that was added as that, of a task
// from before there were such the last of all.
func (db Work) Reason(ctx context.Context, task string) (Note, error) {
	return first(ctx, db.read.Load(), scanNote, task, "SELECT "+noteColumns+" FROM notes WHERE about = ? ORDER BY id GLOB '"+reasonPrefix+"*' DESC, created DESC, seq DESC LIMIT 1", task)
}

// A NoteFilter selects notes; empty fields match all.
type NoteFilter struct {
	About, Author string
	Text          string // contained in the text
	Page
}

// Notes lists notes, the newest first.
func (db Work) Notes(ctx context.Context, f NoteFilter) (List[Note], error) {
	var w where
	w.is("about = ?", f.About)
	w.is("author = ?", f.Author)
	w.is("instr(text, ?) > 0", f.Text)
	return paged(ctx, db.read.Load(), &w, f.Page, scanNote, noteColumns, "notes", "created",
		func(n Note) (Time, int64) { return n.Created, n.seq })
}
