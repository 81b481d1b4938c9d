package mcp

import (
	"context"
	"time"

	"netsky/agent"
	"netsky/store"
)

// Mail is the mailbox in hand.
type Mail interface {
	// Waiting hands over what waits, rendered, as much at a time as a tool's
	// result can hold, and says how many messages are left after it.
	Waiting(ctx context.Context) (texts string, left int, err error)
	// Owed lists the IDs of the messages that want an answer and have none yet,
	// the oldest first.
	Owed() []string
	// Answered says that the model has answered the message.
	Answered(id string)
}

// Records is what is read and written of the records.
type Records interface {
	// Record stores what happened; its error may match store.ErrSpooled.
	Record(ctx context.Context, ops ...store.Op) error
	// The errors of Task match store.ErrNotFound if nothing has that ID.
	Task(ctx context.Context, id string) (store.Task, error)
	Tasks(ctx context.Context, f store.TaskFilter) (store.List[store.Task], error)
	Dependencies(ctx context.Context, task string) ([]store.Dependency, error)
	Notes(ctx context.Context, f store.NoteFilter) (store.List[store.Note], error)
}

// Members is the team.
type Members interface {
	List(ctx context.Context) ([]Member, error)
	// Peek is the last lines of the agent's pane, as they are.
	Peek(ctx context.Context, id agent.ID, lines int) (string, error)
	// Start and Stop say in one line what they did.
	Start(ctx context.Context, id agent.ID, objective string) (string, error)
	Stop(ctx context.Context, id agent.ID) (string, error)
}

// A Member is one agent as the others see it.
type Member struct {
	Agent   agent.ID
	Runtime string
	State   agent.State
	Detail  string    // what it is busy with or waits for
	Since   time.Time // zero: unknown
	Waiting int       // messages in its mailbox that it has not taken up
	Task    string    // what it works on, in a few words
}
