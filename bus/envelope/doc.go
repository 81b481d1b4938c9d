// Package envelope defines the wire format of the bus: the type Envelope, its JSON, its
// validity, and how it is shown to a model.
//
// Parse is strict, because anybody may have written the file: everyone who reads it must
// read the same message. Render is strict as well, because its reader is a model: whatever
// a text contains, Render returns one element with that text. This package does not know
// where envelopes are stored or who may send them.
package envelope
