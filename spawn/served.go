package spawn

import (
	"context"

	"netsky/agent"
)

// Served is implemented by a Runtime whose mailbox is held by a child of its program: the
// child can die while the program lives, and the program can't be made to start another.
type Served interface {
	Runtime
	// Idle reports whether the launch's program, process pid, runs no turn and no
	// background work, so that it may be ended; why says what it is doing, or why that is
	// unknown.
	Idle(ctx context.Context, l agent.Launch, pid int) (idle bool, why string)
}
