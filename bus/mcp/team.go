package mcp

import (
	"context"

	"netsky/agent"
	"netsky/store"
	"netsky/view"
	"netsky/work/task"
)

// Mail is the agent's mailbox.
type Mail interface {
	// Waiting returns the waiting messages, rendered, as many as a tool's result can hold,
	// and how many messages are left after it.
	Waiting(ctx context.Context) (texts string, left int, err error)
	// Owed lists the IDs of the messages that still need an answer, the oldest first.
	Owed() []string
	// Answered records that the model has answered the message.
	Answered(id string)
}

// Records reads and writes the records.
type Records interface {
	// Record stores what happened; its error may match store.ErrSpooled.
	Record(ctx context.Context, ops ...store.Op) error
	Notes(ctx context.Context, f store.NoteFilter) (store.List[store.Note], error)
}

// Tasks is the recorded tasks as the agent may read and change them. The errors may match store.ErrSpooled.
type Tasks interface {
	Book() task.Book
	Add(ctx context.Context, w task.Wish) (store.Task, error)
	// Edit changes a task, and takes it back from its worker if nobody is to work on it any more.
	Edit(ctx context.Context, r task.Edit) (task.Edited, error)
	Note(ctx context.Context, n task.Note) (about string, err error)
	// Word returns what a task is called.
	Word(ctx context.Context, k store.Task) string
}

// Members is the team.
type Members interface {
	List(ctx context.Context) ([]Member, error)
	// Peek returns the last lines of the agent's pane, unchanged.
	Peek(ctx context.Context, id agent.ID, lines int) (string, error)
	// Start and Stop return one line on what they did.
	Start(ctx context.Context, id agent.ID, objective string) (string, error)
	Stop(ctx context.Context, id agent.ID) (string, error)
	// StartTask gives a task to an agent, "" for its assignee; likewise.
	StartTask(ctx context.Context, task string, id agent.ID) (string, error)
}

// A Member is one agent as the others see it.
type Member struct {
	view.Agent
	Task string // what it works on, in a few words
}
