package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/store"
)

// ErrNothing is returned for a note about what is not on record.
var ErrNothing = errors.New("nothing on record has this name or id")

// A Note is a text to remember.
type Note struct {
	About string `json:"about"` // an agent, or an id of anything that is on record, or its beginning
	Text  string `json:"text"`
}

// Note records a text, and returns what it is about: the whole id of what its beginning was given of.
func (b Book) Note(ctx context.Context, n Note) (about string, err error) {
	about, text := strings.TrimSpace(n.About), strings.TrimSpace(n.Text)
	switch {
	case about == "":
		return "", fieldf("about", "missing")
	case len(about) > 128 || strings.ContainsAny(about, "\n\t"):
		return "", fieldf("about", "must be an id or a name, not a text")
	case text == "":
		return "", fieldf("text", "missing")
	}
	if err := within("text", text); err != nil {
		return "", err
	}
	if about, err = b.subject(ctx, about); err != nil {
		return "", err
	}
	return about, b.Records.Record(ctx, store.AddNote{About: about, Author: string(b.By), Text: text})
}

// subject returns the whole id of what a note is about. While the records can't be read, that is what was given.
func (b Book) subject(ctx context.Context, about string) (string, error) {
	if id, err := agent.ParseArg(about); err == nil {
		return string(id), nil
	}
	s, err := b.Records.Resolve(ctx, about)
	missing := errors.Is(err, store.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil:
		return s.ID, nil
	case errors.Is(err, store.ErrAmbiguous):
		return "", &FieldError{"about", err.Error()}
	case missing && (b.Mail == nil || !b.Mail(ctx, about)):
		return "", fmt.Errorf("%q: %w", envelope.Line(about, 60), ErrNothing)
	}
	return about, nil
}
