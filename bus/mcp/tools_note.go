package mcp

import (
	"context"
	"errors"
	"fmt"

	"netsky/work/task"
)

const noteSchema = `{
	"type": "object",
	"properties": {
		"about": {"type": "string", "description": "the id of a task, a message or anything else that is on record, or an agent's name"},
		"text": {"type": "string", "description": "what to remember"}
	},
	"required": ["about", "text"],
	"additionalProperties": false
}`

type noteArgs struct {
	About string `json:"about"`
	Text  string `json:"text"`
}

func (s *Server) noteTool() tool {
	return tool{
		name: "note",
		description: "Record something worth remembering about a task, a message or an agent. The owner and the other agents can read it there; " +
			"nobody is notified.",
		schema: noteSchema,
		run:    with("note", s.note),
	}
}

func (s *Server) note(ctx context.Context, in noteArgs) (string, error) {
	if s.o.Records == nil {
		return "", fmt.Errorf("note: %w", errNoRecords)
	}
	about, err := s.book().Note(ctx, in.About, in.Text)
	if errors.Is(err, task.ErrNothing) {
		return "", argumentf("note: about: %v; the tools tasks and agents list what there is, a message's id is in its tag", err)
	}
	noted, err := s.taskError("note", err)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("note on %s recorded%s", about, noted), nil
}
