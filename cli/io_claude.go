package cli

import (
	"context"

	"netsky/bus/mcp"
	"netsky/spawn"
)

// serveClaude is the server of an agent on Claude Code, which holds its mailbox.
func (a *app) serveClaude(ctx context.Context, l *spawn.Launcher, o mcp.Options) error {
	return mcp.Serve(ctx, o)
}
