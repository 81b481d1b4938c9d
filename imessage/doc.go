// Package imessage is the phone bridge: it carries messages between the owner's phone and the
// bus.
package imessage
