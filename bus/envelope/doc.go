// Package envelope is the wire of the bus: the type Envelope, its JSON, what
// makes one valid, and what a model is shown of it.
//
// Parse is strict, because the file may be anybody's: everyone who reads it must
// read the same message. Render is strict as well, because its reader is a
// model: whatever a text holds, what Render returns is one element with that
// text. No package below this one knows where envelopes lie or who may send them.
package envelope
