// Package bus delivers envelopes between addresses through directories.
//
// Each address has a mailbox, channels/agent/<address>/ below the home, and
// anyone who can write a file can write to it: an envelope is a JSON object in
// inbox/. The one process that holds the mailbox's lock, its Receiver, takes
// them out: inbox/ → claimed/ → (the runtime has it, confirmed) → the ID goes
// to the file seen → delivered/. An invalid file goes to poison/, byte for byte,
// with its reason beside it, and the queue goes on. It is left alone while it
// is being written, and moves back by itself if it becomes valid in poison/.
//
// # What it promises
//
// When Send returns nil, the message survives a loss of power. It reaches the
// recipient's runtime at least once and has its effect exactly once: an
// envelope whose ID (or idempotency key) its sender has used before is filed
// unread, for as long as Options.Keep, after which IDs are forgotten. The
// messages of one sender come in the order of sending, as long as the clock is
// not set back between two processes. No reader ever sees half an envelope of
// ours, and no file is ever overwritten by a move.
//
// Whoever can write below the home can write in anybody's name: From is a
// claim, and what needs authority takes it from elsewhere. What comes through
// Send or an outbox obeys who may write to whom, and agents' sends have brakes.
//
// # What it does not know
//
// It knows no runtime, no records and no configuration. It says nothing to a
// model but what Render makes of an envelope, and nothing to a person.
//
// # What a crash leaves
//
// A dead sender leaves the whole message or none, and at most a hidden file,
// which the receiver sweeps away after 36 hours. A dead receiver leaves what it
// had taken in claimed/; the next one files what had been confirmed or
// witnessed and offers the rest again, before anything new. A dead router
// leaves a file in the outbox that it may have sent; it is sent again under the
// same ID. Locks are flocks and end with their process.
package bus
