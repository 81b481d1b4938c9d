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
		return "\nthere is no such agent yet; agents lists who there is, and agent0 can start one"
	case errors.Is(err, bus.ErrNotAllowed) && sending && send.envelope.To == agent.Owner:
		return "\nto answer a message of the owner's use reply with its id; anything else tell agent0, who writes to the owner"
	case errors.Is(err, bus.ErrNotAllowed):
		return "\ntell agent0 what you need; it may write to all"
	case errors.Is(err, bus.ErrBrake):
		return "\nstop writing there: this many messages mean a loop, or a reader who does not keep up. The owner has been told. " +
			"Send what you have in one message a minute later, or continue without it"
	case errors.Is(err, envelope.ErrInvalid) && sending && envelope.SafeText(send.envelope.Text) != send.envelope.Text:
		return "\nwrite &lt; for the < in front of the word channel, or leave the tag out, and send it again"
	case errors.Is(err, envelope.ErrInvalid) && sending && len(send.envelope.Text) > bus.DefaultMaxBytes/2:
		return "\nput it into a file and send the file's path"
	case errors.Is(err, store.ErrNotFound):
		return "\ntasks lists what there is, with ids"
	}
	return ""
}
