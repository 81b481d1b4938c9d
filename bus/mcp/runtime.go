package mcp

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"netsky/agent"
)

// A Runtime is the program whose child the server is, as far as it can be
// reached from outside of MCP.
type Runtime interface {
	// Push hands a text to the program as if its user had sent it. nil says that
	// the bytes were taken, no more. An error for which Refused holds says that
	// this way is closed, and that nothing was taken.
	Push(ctx context.Context, text string) error
	// Point types one line into its pane that says that n messages wait, if
	// nothing there would be disturbed; the error says what would.
	Point(ctx context.Context, n int) error
	// Interrupt ends the running turn; an error if none runs.
	Interrupt(ctx context.Context) error
	// State is how it is at this moment: State, Evidence and Detail of a report.
	State(ctx context.Context) agent.Report
	// Holds reports whether the conversation holds the envelope already.
	Holds(id string) bool
	// Ended is how a turn ended, as the conversation tells it: that of the number,
	// or without one that which took the envelope. It is an EventStop with the
	// model's last text, or an EventStopFailed, with the Error "interrupted" if it
	// was broken off. ok is false if the conversation does not tell; the ID is the
	// turn's number even then, if it tells that.
	Ended(id, turn string) (e agent.Event, ok bool)
}

// Refused reports whether a way to the program is closed, rather than that it
// was tried and something went wrong on it.
func Refused(err error) bool {
	var r interface{ Refused() bool }
	if errors.As(err, &r) {
		return r.Refused()
	}
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
