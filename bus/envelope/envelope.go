package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"netsky/agent"
)

// A Kind says what an envelope is for. Any other kind of [a-z_]{1,32} is a plain message.
type Kind string

const (
	KindMessage        Kind = ""
	KindBrief          Kind = "brief"
	KindReply          Kind = "reply"
	KindError          Kind = "error"
	KindAck            Kind = "ack"
	KindShutdown       Kind = "shutdown"
	KindShutdownAck    Kind = "shutdown_ack"
	KindHandoff        Kind = "handoff"
	KindCron           Kind = "cron"
	KindApproval       Kind = "approval"
	KindApprovalAnswer Kind = "approval_answer"
	KindCancel         Kind = "cancel"
	KindNotice         Kind = "notice" // netsky's own, about the agent that it is from
	KindHeld           Kind = "held"   // no answer yet: the model can't answer now
)

// Control reports whether envelopes of this kind are handled by the receiver, so that no
// model ever sees them.
func (k Kind) Control() bool { return slices.Contains(control, k) }

// Known reports whether netsky gives the kind a meaning.
func (k Kind) Known() bool { return slices.Contains(known, k) || k.Control() }

var known = []Kind{KindMessage, KindBrief, KindReply, KindError, KindHandoff, KindCron, KindApproval, KindApprovalAnswer, KindHeld, KindNotice}

var control = []Kind{KindAck, KindShutdown, KindShutdownAck, KindCancel}

// ControlKinds returns the kinds that Control reports.
func ControlKinds() (names []string) {
	for _, k := range control {
		names = append(names, string(k))
	}
	return names
}

// Answerable reports whether netsky itself may answer an envelope of this kind. Two
// programs that answer each other's answers would never stop.
func (k Kind) Answerable() bool {
	return k != KindReply && k != KindError && !k.Control()
}

// mayBeEmpty reports whether an envelope of this kind needs no text.
func (k Kind) mayBeEmpty() bool {
	return k == KindReply || k == KindError || k == KindAck || k == KindShutdownAck
}

// An Envelope is one message. From, Text and Time are required; the rest is optional.
type Envelope struct {
	ID   string // 1 to 128 of A-Z a-z 0-9 . _ : -, no leading dot
	From agent.ID
	To   agent.ID
	Kind Kind
	Text string
	Time time.Time // "ts", RFC 3339

	InReplyTo      string    // the ID of the envelope that this one answers
	Thread         string    // at most 256 bytes
	Hops           int       // how many envelopes led to this one
	Via            string    // how it was sent: cli, mcp, web, imessage, cron, code; "" is the bus
	IdempotencyKey string    // stands for ID, per sender
	RequiresAck    bool      // the sender waits for an answer
	Expires        time.Time // after this it is filed unread
	Attachments    []string  // files beneath the recipient's mailbox, attach/
	Start          string    // of a shutdown: the start id it is meant for

	Extra map[string]json.RawMessage // unknown fields, byte for byte
}

// ErrInvalid reports a malformed envelope.
var ErrInvalid = errors.New("invalid envelope")

type invalidError string

func (e invalidError) Error() string        { return string(e) }
func (e invalidError) Is(target error) bool { return target == ErrInvalid }

func Invalidf(format string, args ...any) error {
	return invalidError(fmt.Sprintf(format, args...))
}

// AnswerID returns the ID of an answer that netsky gives: the same for the same answerer,
// question and kind, so that an answer repeated after a crash has one effect.
func AnswerID(answerer agent.ID, answered string, kind Kind) string {
	return "r-" + Digest(string(answerer), answered, string(kind))
}

// Digest returns 32 hex digits of the SHA-256 of the parts.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		io.WriteString(h, p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Validate reports what is wrong with the envelope; the error matches ErrInvalid. A
// missing ID or To is allowed: the bus sets them.
func (e Envelope) Validate() error {
	if list := e.faults(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// faults returns everything that Validate would reject.
func (e Envelope) faults() (list []error) {
	add := func(format string, args ...any) { list = append(list, Invalidf(format, args...)) }
	if _, err := agent.ParseAddress(string(e.From)); e.From == "" {
		add("from: missing")
	} else if err != nil {
		add("from: %v", err)
	}
	if e.To != "" {
		if _, err := agent.ParseAddress(string(e.To)); err != nil {
			add("to: %v", err)
		}
	}
	if e.Kind != "" && !isWord(string(e.Kind)) {
		add("kind: %s: want 1 to 32 of a-z and _", Clip(string(e.Kind)))
	}
	if e.Via != "" && !isWord(e.Via) {
		add("via: %s: want 1 to 32 of a-z and _", Clip(e.Via))
	}
	if e.ID != "" && !IsID(e.ID) {
		add("id: %s: want 1 to 128 of A-Z a-z 0-9 . _ : - without a leading dot", Clip(e.ID))
	}
	if e.InReplyTo != "" && !IsID(e.InReplyTo) {
		add("in_reply_to: %s: want 1 to 128 of A-Z a-z 0-9 . _ : - without a leading dot", Clip(e.InReplyTo))
	}
	for _, err := range []error{e.timeFault(), e.expiresFault(), e.textFault()} {
		if err != nil {
			list = append(list, err)
		}
	}
	return append(list, e.otherFaults()...)
}

func (e Envelope) timeFault() error {
	if e.Time.IsZero() {
		return Invalidf("ts: missing")
	}
	if !inRange(e.Time) {
		return Invalidf("ts: year %d: want 1 to 9999", e.Time.UTC().Year())
	}
	return nil
}

// Expired reports whether the envelope has expired at that time.
func (e Envelope) Expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

func (e Envelope) expiresFault() error {
	if !e.Expires.IsZero() && !inRange(e.Expires) {
		return Invalidf("expires: year %d: want 1 to 9999", e.Expires.UTC().Year())
	}
	return nil
}

func inRange(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1 && year <= 9999
}

func (e Envelope) textFault() error {
	switch {
	case e.Text == "" && !e.Kind.mayBeEmpty():
		return Invalidf("text: empty")
	case !utf8.ValidString(e.Text):
		return Invalidf("text: not valid UTF-8")
	case strings.Contains(e.Text, "\x00"):
		return Invalidf("text: holds a NUL")
	}
	if at, end, ok := findWrapper(e.Text); ok {
		token := e.Text[at:end]
		return Invalidf("text: holds the channel wrapper %s", Clip(token))
	}
	return nil
}

func (e Envelope) otherFaults() (list []error) {
	add := func(format string, args ...any) { list = append(list, Invalidf(format, args...)) }
	if e.Hops < 0 || e.Hops > MaxHops {
		add("hops: %d: want 0 to %d", e.Hops, MaxHops)
	}
	if len(e.Attachments) > maxAttachments {
		add("attachments: %d exceed the limit of %d", len(e.Attachments), maxAttachments)
	}
	for _, a := range e.Attachments[:min(len(e.Attachments), maxAttachments)] {
		if a == "" || !isLine(a, 1024) {
			add("attachments: %s: want one line of at most 1024 bytes", Clip(a))
		}
	}
	for _, f := range []struct{ name, value string }{
		{"thread", e.Thread}, {"idempotency_key", e.IdempotencyKey}, {"start", e.Start},
	} {
		if !isLine(f.value, 256) {
			add("%s: %s: want one line of at most 256 bytes", f.name, Clip(f.value))
		}
	}
	for key, value := range e.Extra {
		if _, known := fieldOf(foldKey(key)); known {
			add("%s: known field in Extra", Clip(key))
		} else if !utf8.ValidString(key) || !json.Valid(value) || !utf8.Valid(value) {
			add("%s: not JSON", Clip(key))
		}
	}
	return list
}

const (
	MaxHops        = 1_000_000 // far above the brake; it only keeps the number a number
	maxAttachments = 64
)

func IsID(s string) bool {
	if len(s) < 1 || len(s) > 128 || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == ':', c == '-':
		default:
			return false
		}
	}
	return true
}

func isWord(s string) bool {
	if len(s) < 1 || len(s) > 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}

// isLine reports whether s is valid UTF-8 of at most limit bytes that a
// terminal shows as it is.
func isLine(s string, limit int) bool {
	if len(s) > limit || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r == '\n' || r == '\t' || hidden(r) {
			return false
		}
	}
	return true
}

// The extra fields that netsky sets itself.
const (
	unfinished = "unfinished"
	cancelled  = "cancelled"
	phone      = "phone"
)

// CutOff returns the extra field of a shutdown_ack that was sent while a turn was still
// running.
func CutOff() map[string]json.RawMessage {
	return map[string]json.RawMessage{unfinished: json.RawMessage("true")}
}

// Unfinished reports whether the envelope has that field.
func (e Envelope) Unfinished() bool { return string(e.Extra[unfinished]) == "true" }

// Withdrawn returns the extra field of the error that answers a message which was cancelled.
func Withdrawn() map[string]json.RawMessage {
	return map[string]json.RawMessage{cancelled: json.RawMessage("true")}
}

// Cancelled reports whether the envelope has that field.
func (e Envelope) Cancelled() bool { return string(e.Extra[cancelled]) == "true" }

// ToPhone returns the extra field of a message to the owner that is for their phone: it is
// texted at once.
func ToPhone() map[string]json.RawMessage {
	return map[string]json.RawMessage{phone: json.RawMessage("true")}
}

// ForPhone reports whether the extra fields of a message have that field.
func ForPhone(extra map[string]json.RawMessage) bool { return string(extra[phone]) == "true" }
