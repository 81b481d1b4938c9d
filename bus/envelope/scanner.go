package envelope

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// scan returns a decoder of data that leaves to Decode what it can name better: a key that is there
// twice, and half a surrogate pair.
func scan(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// eachField calls fn with every key, still quoted, and value of the one object
// that data must be.
func eachField(data []byte, fn func(key, value []byte) error) error {
	d := scan(data)
	if d.PeekKind() != '{' {
		if err := d.SkipValue(); err != nil {
			return syntax(data, err)
		}
		return Invalidf("not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return syntax(data, err)
	}
	since := func(at int64) []byte { return bytes.TrimLeft(data[at:d.InputOffset()], ",: \t\r\n") }
	for d.PeekKind() != '}' {
		at := d.InputOffset()
		if _, err := d.ReadToken(); err != nil {
			return syntax(data, err)
		}
		key := since(at)
		at = d.InputOffset()
		for begun := true; begun || d.StackDepth() > 1; begun = false {
			if _, err := d.ReadToken(); err != nil {
				return syntax(data, err)
			}
			if d.StackDepth() > 1+maxDepth {
				return Invalidf("nested deeper than %d", maxDepth)
			}
		}
		if err := fn(key, since(at)); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return syntax(data, err)
	}
	if rest := bytes.TrimLeft(data[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return Invalidf("something follows the JSON object at byte %d", len(data)-len(rest))
	}
	return nil
}

// syntax is the error for data that is no JSON.
func syntax(data []byte, err error) error {
	at := new(jsontext.SyntacticError)
	switch {
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return Invalidf("not JSON: it begins with a byte order mark: save it as UTF-8 without one")
	case !errors.As(err, &at) || errors.Is(err, io.ErrUnexpectedEOF) || at.ByteOffset >= int64(len(data)):
		return Invalidf("not JSON: it ends too early")
	}
	return Invalidf("not JSON: unexpected %q as byte %d", rune(data[at.ByteOffset]), at.ByteOffset+1)
}

// Unfinished reports whether data may be the beginning of an object whose rest
// is still to be written.
func Unfinished(data []byte) bool {
	d := scan(data)
	if d.PeekKind() != '{' {
		return len(bytes.TrimSpace(data)) == 0
	}
	return errors.Is(d.SkipValue(), io.ErrUnexpectedEOF)
}
