// Package bus delivers envelopes between addresses through directories.
//
// Each address has a mailbox, channels/agent/<address>/ below the home. Anyone who can
// write a file can write to it: an envelope is a JSON object in inbox/. The one process
// that holds the mailbox's lock, its Receiver, takes envelopes out: inbox/ → claimed/ →
// (the runtime has it, confirmed) → the ID is appended to the file seen → delivered/. An
// invalid file moves to poison/, byte for byte, with its reason beside it, and the queue
// continues. A file is left alone while it is being written, and moves back by itself if
// it becomes valid in poison/.
//
// # What it promises
//
// When Send returns nil, the message survives a power loss. It reaches the recipient's
// runtime at least once and has its effect exactly once: an envelope whose ID (or
// idempotency key) its sender has used before is filed unread, for as long as
// Options.Keep, after which IDs are forgotten. Messages of one sender arrive in the order
// of sending, as long as the clock is not set back between two processes. No reader ever
// sees half an envelope that the bus wrote, and no move ever overwrites a file.
//
// Any process that can write below the home can write in any name: From is a claim, and
// authority never rests on it. What is sent with Send or an outbox obeys the rules on who
// may write to whom, and agents' sends have brakes.
//
// # What it does not know
//
// It knows no runtime, no records and no configuration. All that it says to a model is
// what Render makes of an envelope; to a person it says nothing.
//
// # What a crash leaves
//
// A dead sender leaves the whole message or none, and at most a hidden file, which the
// receiver removes after 36 hours. A dead receiver leaves what it had taken in claimed/;
// the next one files what had been confirmed or witnessed and offers the rest again,
// before anything new. A dead router leaves a file in the outbox that it may have sent; it
// is sent again under the same ID. Locks are flocks and end with their process.
package bus
