// Package chat holds what passes between the phone bridge and a transport: a message that
// arrived, a message to be sent, and what became of it. A transport is Messages.app on this
// Mac, a Mac elsewhere that runs BlueBubbles, or a Telegram bot; the bridge has one set of
// rules for all of them.
//
// The package decides nothing. Who may speak, what is old, what is an echo, and what is an
// order is the bridge's business; a transport reports what it saw, with everything in it that
// the bridge needs to decide.
package chat

import (
	"errors"
	"strings"
	"time"
)

// The services that a message can come by. Only ServiceIMessage and ServiceTelegram know who
// wrote: the sender of an SMS or an RCS message can be forged.
const (
	ServiceIMessage = "iMessage"
	ServiceSMS      = "SMS"
	ServiceRCS      = "RCS"
	ServiceTelegram = "Telegram"
)

// A Kind says what a row of a conversation is.
type Kind string

const (
	Text     Kind = "text"     // words, attachments, or both
	Reaction Kind = "reaction" // a tapback on another message
	Press    Kind = "press"    // a button pressed below one of our messages
	Event    Kind = "event"    // anything else: a member joined, a chat was renamed, a sticker
)

// The reactions that mean something to the bridge; all others are OtherReaction.
const (
	Like          = "like"
	Dislike       = "dislike"
	OtherReaction = "other"
)

// A Chat is one conversation.
type Chat struct {
	// Key compares chats: a separator and an identifier, "-;+15550100" or "+;chat123", without
	// the prefix that Messages.app writes differently by version ("iMessage;", "any;").
	Key string
	// Identifier is who the other side of a direct chat is: a handle.
	Identifier string
	// GUID is the transport's own name of the chat, for sending to it.
	GUID string
	// Direct says that it has one other member. A chat of unknown style is not direct.
	Direct bool
}

// A Message is one message, as a transport saw it.
type Message struct {
	GUID    string // the transport's own id, never used twice
	Chat    Chat
	Handle  string // who wrote it; empty for our own account's
	FromMe  bool   // written by the account that the transport itself sends with
	Service string
	Kind    Kind
	At      time.Time // when it was written, by the transport's clock; zero is unknown

	Text string
	// Unreadable says why the text could not be read; Text is empty then.
	Unreadable string

	About    string // reactions, presses and replies: the GUID of the message that it belongs to
	Reaction string // reactions: Like, Dislike or OtherReaction
	Removed  bool   // reactions: it was taken back

	Attachments []Attachment

	// More says that the message is not whole: as the phone split it, another one follows that is a
	// part of it. After is the GUID of the message that this one is a part of, directly or by others.
	More  bool
	After string
}

// An Attachment is a file that came with a message.
type Attachment struct {
	GUID  string
	Name  string // as the sender named it: not a path, and not to be trusted as a file's name
	MIME  string
	Bytes int64 // -1 is unknown
	// Missing says why the file cannot be had (yet), if so.
	Missing string
}

// A Batch is what arrived since a cursor.
type Batch struct {
	Messages []Message // oldest first, at most MaxBatch
	// Cursor is what the next call continues from. It is to be recorded in one transaction with
	// the messages, so that each is seen once.
	Cursor string
	// Notes are what the owner should find in the log: a database that was replaced, a row whose
	// chat never came.
	Notes []string
}

// MaxBatch is how many messages one batch has at most.
const MaxBatch = 500

// An Outgoing is one message to be sent: a text or a file.
type Outgoing struct {
	ID   string // ours: the same for every try of the same message
	Chat Chat
	Text string
	File string // the path of a file to send instead of a text
	// Choices are answers to offer as buttons, where the transport has any.
	Choices []string
	// Mark is what Mark returned before the first try: where Find begins to look.
	Mark string
	// Taken reports whether a guid is known to be another message's, so that of two messages with
	// the same text each needs one of its own. It may be nil.
	Taken func(guid string) bool
}

// A State is what became of a message that was to be sent.
type State string

const (
	Sent        State = "sent"        // seen on the transport's side, without an error
	Unconfirmed State = "unconfirmed" // handed over; nothing shows that it went out
	Failed      State = "failed"      // it did not go out
)

// A Receipt says what became of a message.
type Receipt struct {
	State State
	GUID  string // the message's id on the transport, if it is known
	Fact  string // why it is not sent, or not known to be
	Next  string // what the owner can do about it; may be empty
	// Again says that another try can succeed and cannot send it twice.
	Again bool
	// Wait is how long the transport asked not to be called again; 0 if it did not.
	Wait time.Duration
}

// A Fact is one line of what a transport found out about itself.
type Fact struct {
	Name   string    `json:"name"` // what was looked at
	State  FactState `json:"state"`
	Detail string    `json:"detail"`         // what was found
	Next   string    `json:"next,omitempty"` // what the owner can do about it
}

// A FactState says how a check ended.
type FactState string

const (
	OK        FactState = "ok"
	Bad       FactState = "bad"
	Unchecked FactState = "unchecked" // it can't be found out here
)

// ErrNoHistory is returned by a transport that cannot show earlier messages.
var ErrNoHistory = errors.New("this transport cannot show earlier messages")

// ErrCannotLook is returned by a transport that cannot find out whether a message went out.
var ErrCannotLook = errors.New("this transport cannot look for what it sent")

// Degraded is the error of a transport that cannot read for now: the disk is not readable for
// us, the server does not answer. It is tried again.
type Degraded struct {
	Reason string // a fact, for the owner: "chat.db: authorization denied"
	Next   string // what the owner can do about it; empty if it recovers alone
	Err    error
}

func (d *Degraded) Error() string { return d.Reason }

func (d *Degraded) Unwrap() error { return d.Err }

// ServiceName returns the service in the spelling of the constants above; unknown ones are
// returned as they are. iMessageLite is iMessage by satellite.
func ServiceName(s string) string {
	if strings.EqualFold(s, "iMessageLite") {
		return ServiceIMessage
	}
	for _, known := range []string{ServiceIMessage, ServiceSMS, ServiceRCS, ServiceTelegram} {
		if strings.EqualFold(s, known) {
			return known
		}
	}
	return s
}

// KeyOf returns the chat with this guid ("iMessage;-;+15550100", "any;+;chat123") or key; ok is
// false for another form.
func KeyOf(guid string) (c Chat, ok bool) {
	rest := guid
	if !strings.HasPrefix(guid, "-;") && !strings.HasPrefix(guid, "+;") {
		_, rest, _ = strings.Cut(guid, ";")
	}
	sep, id, _ := strings.Cut(rest, ";")
	if id == "" || sep != "-" && sep != "+" {
		return Chat{}, false
	}
	return Chat{Key: sep + ";" + Handle(id), Identifier: Handle(id), GUID: guid, Direct: sep == "-"}, true
}

// Handle returns a handle in the form in which handles are compared: a mail address with its
// letters A to Z in lower case, a telephone number without anything but its digits and the plus
// in front. Other letters stay as they are, since the lower case of some, as of the Kelvin sign,
// is an ASCII letter: the address of somebody else would become the owner's.
func Handle(s string) string {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "@") {
		return strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}, s)
	}
	if strings.HasPrefix(s, "-") {
		return s // a group of Telegram's; without the sign it would be a person
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '+' && i == 0, '0' <= r && r <= '9':
			b.WriteRune(r)
		case strings.ContainsRune(" -().\u00a0\u2011", r):
		default:
			return s // no telephone number: a short name, a group
		}
	}
	return b.String()
}
