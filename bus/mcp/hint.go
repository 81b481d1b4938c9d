package mcp

import (
	"errors"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/store"
)

// hint returns what to do next about an error, for the model. All such advice is here; the
// code below states facts.
func hint(err error) string {
	var send sendError
	sending := errors.As(err, &send)
	switch {
	case errors.Is(err, bus.ErrNoMailbox):
		return "\nthere is no such agent yet; the agents tool lists those there are, and agent0 can start one"
	case errors.Is(err, bus.ErrNotAllowed) && sending && send.envelope.To == agent.Owner:
		return "\nto answer a message from the owner, use reply with its id; tell anything else to agent0, who writes to the owner"
	case errors.Is(err, bus.ErrNotAllowed):
		return "\ntell agent0 what you need; it may write to everyone"
	case errors.Is(err, bus.ErrBrake):
		return "\nstop writing to it: this many messages mean a loop, or a reader that cannot keep up. The owner has been told. " +
			"Send what you have as one message in a minute, or continue without it"
	case errors.Is(err, envelope.ErrInvalid) && sending && envelope.SafeText(send.envelope.Text) != send.envelope.Text:
		return "\nwrite &lt; instead of < before the word channel, or leave the tag out, and send it again"
	case errors.Is(err, envelope.ErrInvalid) && sending && len(send.envelope.Text) > bus.DefaultMaxBytes/2 && envelope.ForPhone(send.envelope.Extra):
		return "\nwrite it to a file, and send that with send_file and a few words"
	case errors.Is(err, envelope.ErrInvalid) && sending && len(send.envelope.Text) > bus.DefaultMaxBytes/2:
		return "\nwrite it to a file and send the file's path"
	case errors.Is(err, store.ErrNotFound):
		return "\nthe tasks tool lists tasks with their ids"
	}
	return ""
}
