// This file is what the readers of programs' files of conversations have in common: what they keep
// from one line to the next, and which message a request is about.
//
// It opens no file. Where a line was read before, by a netsky that was killed, the kept text says how to go on.

package cost

import (
	"encoding/json"

	"netsky/bus/envelope"
)

// A Reading of a file of one conversation. S is what its format has a reader remember; it must be encoded
// by every value it can have.
type Reading[S any] struct {
	Thread string
	Now    S
}

// Open returns a Reading that goes on from a State; "" and what is none are the beginning.
func Open[S any](thread, state string) Reading[S] {
	r := Reading[S]{Thread: thread}
	if json.Unmarshal([]byte(state), &r.Now) != nil {
		r.Now = *new(S)
	}
	return r
}

// State returns what Open goes on from.
func (r *Reading[S]) State() string {
	data, _ := json.Marshal(r.Now) // S always encodes
	return string(data)
}

// A Prompt is what requests answer.
type Prompt struct {
	ID      string `json:"prompt,omitempty"`  // the program's own
	Message string `json:"message,omitempty"` // the envelope that it was, or began with
}

// Heard handles a text that the program was given for a prompt, of which there may be several.
func (p *Prompt) Heard(id, text string) {
	if id == "" || id != p.ID {
		*p = Prompt{ID: Cut(id)}
	}
	if ids, _ := envelope.RenderedIDs(text); len(ids) > 0 && p.Message == "" {
		p.Message = Cut(ids[0])
	}
}

// maxID is the length of an id or a name that is kept, in bytes.
const maxID = 200

// Cut shortens an id or a name of the program's.
func Cut(s string) string { return envelope.Cut(s, maxID) }
