package envelope

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MarshalJSON writes the envelope as Parse reads it: empty fields left out, unknown fields
// last and byte for byte. (encoding/json compacts what MarshalJSON returns; the bus does
// not.) Characters that a terminal would obey or not show are escaped.
func (e Envelope) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(e.Text)+len(e.Text)/8+256)
	b = append(b, '{')
	add := func(f field) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, f.String()...)
		b = append(b, '"', ':')
	}
	str := func(f field, s string) {
		if s != "" {
			add(f)
			b = appendQuoted(b, s)
		}
	}
	str(fieldID, e.ID)
	str(fieldFrom, string(e.From))
	str(fieldTo, string(e.To))
	str(fieldKind, string(e.Kind))
	add(fieldText)
	b = appendQuoted(b, e.Text)
	str(fieldTime, Stamp(e.Time))
	str(fieldInReplyTo, e.InReplyTo)
	str(fieldThread, e.Thread)
	if e.Hops != 0 {
		add(fieldHops)
		b = strconv.AppendInt(b, int64(e.Hops), 10)
	}
	str(fieldVia, e.Via)
	str(fieldKey, e.IdempotencyKey)
	if e.RequiresAck {
		add(fieldAck)
		b = append(b, "true"...)
	}
	str(fieldExpires, Stamp(e.Expires))
	if len(e.Attachments) > 0 {
		add(fieldAttachments)
		for i, a := range e.Attachments {
			b = append(b, "[,"[min(i, 1)])
			b = appendQuoted(b, a)
		}
		b = append(b, ']')
	}
	str(fieldStart, e.Start)
	for _, key := range slices.Sorted(maps.Keys(e.Extra)) {
		b = append(b, ',')
		b = appendQuoted(b, key)
		b = append(b, ':')
		b = append(b, e.Extra[key]...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON calls Parse.
func (e *Envelope) UnmarshalJSON(data []byte) (err error) {
	*e, err = Parse(data)
	return err
}

// Stamp formats a time for an envelope, "" for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

const hexDigits = "0123456789abcdef"

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // s[:done] has been written
	for i, r := range s {
		if r < utf8.RuneSelf && r >= ' ' && r != '"' && r != '\\' && r != 0x7f {
			continue
		}
		b = append(b, s[done:i]...)
		done = i + utf8.RuneLen(r)
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r > 0xffff && hidden(r):
			high, low := utf16.EncodeRune(r)
			b = appendEscape(appendEscape(b, high), low)
		case hidden(r):
			b = appendEscape(b, r)
		default:
			b = utf8.AppendRune(b, r)
			if r == utf8.RuneError && s[i:min(i+3, len(s))] != "\ufffd" {
				done = i + 1 // a broken byte
			}
		}
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

var (
	errSurrogate = errors.New("half a surrogate pair")
	errNUL       = errors.New("holds a NUL")
)

// unquote reads a string of valid JSON.
func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case err != nil:
		return "", errSurrogate
	case bytes.IndexByte(s, 0) >= 0:
		return "", errNUL
	}
	return string(s), nil
}
