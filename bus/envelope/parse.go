package envelope

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"netsky/agent"
)

// A field is one of the envelope's own, in the order in which they are written.
type field int

const (
	fieldID field = iota
	fieldFrom
	fieldTo
	fieldKind
	fieldText
	fieldTime
	fieldInReplyTo
	fieldThread
	fieldHops
	fieldVia
	fieldKey
	fieldAck
	fieldExpires
	fieldAttachments
	fieldStart
	fieldCount
)

var names = [fieldCount]string{
	"id", "from", "to", "kind", "text", "ts", "in_reply_to", "thread", "hops", "via",
	"idempotency_key", "requires_ack", "expires", "attachments", "start",
}

func (f field) String() string { return names[f] }

func fieldOf(name string) (field, bool) {
	for f := range names {
		if names[f] == name {
			return field(f), true
		}
	}
	return 0, false
}

// maxDepth is how deep values may nest; only unknown fields nest at all.
const maxDepth = 64

// Parse reads one envelope and validates it. It is stricter than encoding/json,
// which takes the last of two equal keys, takes FROM for from, and silently repairs
// broken text: everyone who reads the file must read the same message.
// The error matches ErrInvalid.
func Parse(data []byte) (Envelope, error) {
	return Fit(nil).Parse(data)
}

// Decode reads an envelope's fields and checks their types and nothing else,
// except that a required text cannot be left out. It asks fault about what is
// wrong with a field, and continues if that returns nil.
func Decode(data []byte, fault func(error) error) (Envelope, error) {
	var e Envelope
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return e, Invalidf("empty")
	case !utf8.Valid(data):
		return e, Invalidf("not valid UTF-8")
	}
	var known [fieldCount]bool
	var unknown map[string]bool // by folded key
	text := false
	err := eachField(data, func(rawKey, value []byte) error {
		key, err := unquote(rawKey)
		if err != nil {
			return fault(Invalidf("key %s: %v", Clip(string(rawKey)), err))
		}
		folded := foldKey(key)
		f, ours := fieldOf(folded)
		switch {
		case ours && key != folded:
			return fault(Invalidf("%s: a spelling of %s", Clip(key), folded))
		case ours && known[f] || unknown[folded]:
			return fault(Invalidf("%s: duplicate key", Clip(key)))
		case !ours:
			if e.Extra == nil {
				e.Extra, unknown = make(map[string]json.RawMessage), make(map[string]bool)
			}
			unknown[folded] = true
			e.Extra[key] = bytes.Clone(value)
			return nil
		}
		known[f] = true
		if string(value) == "null" {
			return nil
		}
		text = text || f == fieldText
		if err := e.set(f, value); err != nil {
			return fault(err)
		}
		return nil
	})
	if err == nil && !text {
		err = fault(Invalidf("text: missing"))
	}
	return e, err
}

func (e *Envelope) set(f field, value []byte) error {
	switch f {
	case fieldHops:
		n, err := strconv.Atoi(string(value))
		if err != nil {
			return Invalidf("hops: %s: want a whole number", Clip(string(value)))
		}
		e.Hops = n
		return nil
	case fieldAck:
		if s := string(value); s != "true" && s != "false" {
			return Invalidf("requires_ack: %s: want true or false", Clip(s))
		}
		e.RequiresAck = string(value) == "true"
		return nil
	case fieldAttachments:
		return e.setAttachments(value)
	}
	if value[0] != '"' {
		return Invalidf("%v: want a string", f)
	}
	s, err := unquote(value)
	if err != nil {
		return Invalidf("%v: %v", f, err)
	}
	switch f {
	case fieldTime:
		e.Time, err = parseTime(f, s)
	case fieldExpires:
		e.Expires, err = parseTime(f, s)
	case fieldFrom:
		e.From, err = parseAddress(f, s)
	case fieldTo:
		e.To, err = parseAddress(f, s)
	case fieldKind:
		e.Kind = Kind(s)
	default:
		*e.line(f) = s
	}
	return err
}

// line is where a field lives that is a plain string.
func (e *Envelope) line(f field) *string {
	switch f {
	case fieldID:
		return &e.ID
	case fieldText:
		return &e.Text
	case fieldInReplyTo:
		return &e.InReplyTo
	case fieldThread:
		return &e.Thread
	case fieldVia:
		return &e.Via
	case fieldKey:
		return &e.IdempotencyKey
	case fieldStart:
		return &e.Start
	}
	panic("bus: " + f.String() + " is no plain string")
}

func (e *Envelope) setAttachments(value []byte) error {
	var raw []json.RawMessage
	if json.Unmarshal(value, &raw) != nil || len(raw) > maxAttachments {
		return Invalidf("attachments: want a list of at most %d strings", maxAttachments)
	}
	for _, item := range raw {
		if item[0] != '"' {
			return Invalidf("attachments: want strings")
		}
		s, err := unquote(item)
		if err != nil {
			return Invalidf("attachments: %v", err)
		}
		e.Attachments = append(e.Attachments, s)
	}
	return nil
}

func parseAddress(f field, s string) (agent.ID, error) {
	id, err := agent.ParseAddress(s)
	if err != nil {
		return "", Invalidf("%v: %v", f, err)
	}
	return id, nil
}

func parseTime(f field, s string) (time.Time, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil || !inRange(t) {
		return time.Time{}, Invalidf("%v: %s: want RFC 3339, as 2026-11-20T12:00:00Z", f, Clip(s))
	}
	return t.UTC(), nil
}

// foldKey maps all spellings that encoding/json and its likes take for the
// same key to one. A known field's own name is mapped to itself.
func foldKey(key string) string {
	for i := range len(key) {
		if c := key[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return strings.Map(foldRune, key)
		}
	}
	return key
}

func foldRune(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	if 'A' <= least && least <= 'Z' {
		least += 'a' - 'A'
	}
	return least
}
