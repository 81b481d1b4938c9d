package mcp

import (
	"context"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/store"
)

const noteSchema = `{
	"type": "object",
	"properties": {
		"about": {"type": "string", "description": "the id of a task or a message, or an agent's name"},
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
	about, text := strings.TrimSpace(in.About), strings.TrimSpace(in.Text)
	switch {
	case about == "":
		return "", argumentf("note: about: missing")
	case len(about) > 128 || strings.ContainsAny(about, "\n\t"):
		return "", argumentf("note: about: must be an id or a name, not a text")
	case text == "":
		return "", argumentf("note: text: missing")
	}
	if err := within("note: text", text, maxBody); err != nil {
		return "", err
	}
	if id, err := agent.ParseArg(about); err == nil {
		about = string(id)
	} else if k, err := s.task(ctx, "note", about); err == nil {
		about = k.ID
	}
	noted, err := s.record(ctx, "note", store.AddNote{About: about, Author: string(s.o.Agent), Text: text})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("note on %s recorded%s", about, noted), nil
}
