package task

import (
	"context"
	"strings"

	"netsky/agent"
	"netsky/store"
)

// Note records a text about a task, a message or an agent, and returns what it is about: the whole
// id of a task whose beginning was given.
func (b Book) Note(ctx context.Context, on, text string) (about string, err error) {
	about, text = strings.TrimSpace(on), strings.TrimSpace(text)
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
	if id, err := agent.ParseArg(about); err == nil {
		about = string(id)
	} else if k, err := b.Find(ctx, about); err == nil {
		about = k.ID
	}
	return about, b.Records.Record(ctx, store.AddNote{About: about, Author: string(b.By), Text: text})
}
