package chatdb

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrMalformed is returned for a blob that is not a whole archive of a string, or that exceeds a
// limit. The error's text has the offset and the fact, and nothing of the message.
var ErrMalformed = errors.New("malformed typedstream")

// The limits. The largest body known from real use has 48 KB.
const (
	MaxBlob  = 4 << 20 // bytes of a blob
	MaxText  = 1 << 20 // bytes of a text, as UTF-8
	MaxDepth = 64      // objects and types inside each other
	MaxTable = 100_000 // entries of each table
)

// header is how every archive of macOS begins: streamer version 4, the signature in its
// little-endian spelling, system version 1000.
var header = []byte("\x04\x0bstreamtyped\x81\xe8\x03")

// Text returns the text of an attributedBody: of an attributed or a plain string, mutable or not.
// Its characters are as they are archived, with U+FFFC where an attachment is.
func Text(blob []byte) (string, error) {
	r := &reader{data: blob, work: workPerByte*len(blob) + workBase}
	if len(blob) > MaxBlob {
		return "", r.wrong("blob of %d bytes, more than %d", len(blob), MaxBlob)
	}
	if wide, ok := bytes.CutPrefix(blob, []byte("\xff\xfe")); ok {
		return r.wideText(wide)
	}
	if !bytes.HasPrefix(blob, header) {
		return "", r.wrong("no header of an archive")
	}
	r.at = len(header)
	if err := r.expectType("@"); err != nil {
		return "", err
	}
	text, err := r.root()
	if err != nil {
		return "", err
	}
	if r.at != len(r.data) {
		return "", r.wrong("%d bytes after the end of the archive", len(r.data)-r.at)
	}
	return string(text), nil
}

// wideText decodes a body that is UTF-16LE text and nothing else.
func (r *reader) wideText(data []byte) (string, error) {
	if len(data)%2 != 0 {
		return "", r.wrong("UTF-16 text of %d bytes, an odd number", len(data))
	}
	text := make([]byte, 0, min(len(data)+len(data)/2, MaxText))
	for i := 0; i < len(data); i += 2 {
		r.at = 2 + i
		c := rune(data[i]) | rune(data[i+1])<<8
		if utf16.IsSurrogate(c) {
			if i+4 > len(data) {
				return "", r.wrong("half a surrogate pair")
			}
			c = utf16.DecodeRune(c, rune(data[i+2])|rune(data[i+3])<<8)
			if c == utf8.RuneError {
				return "", r.wrong("half a surrogate pair")
			}
			i += 2
		}
		text = utf8.AppendRune(text, c)
		if len(text) > MaxText {
			return "", r.wrong("text of more than %d bytes", MaxText)
		}
	}
	return string(text), nil
}

// root reads the archive's one object, which has the text.
func (r *reader) root() ([]byte, error) {
	name, err := r.openObject()
	if err != nil {
		return nil, err
	}
	switch name {
	case "NSString", "NSMutableString":
		return r.stringBody()
	case "NSAttributedString", "NSMutableAttributedString":
	default:
		return nil, r.wrong("root of class %.40q, which is no string", name)
	}
	if err := r.expectType("@"); err != nil {
		return nil, err
	}
	name, err = r.openObject()
	if err != nil {
		return nil, err
	}
	if name != "NSString" && name != "NSMutableString" {
		return nil, r.wrong("text of class %.40q, which is no string", name)
	}
	text, err := r.stringBody()
	if err != nil {
		return nil, err
	}
	return text, r.runs(units(text))
}

// openObject reads the beginning of a new object and returns the name of its class.
func (r *reader) openObject() (string, error) {
	head, err := r.byte()
	if err != nil {
		return "", err
	}
	if head != tagNew {
		return "", r.before("0x%02x where a new object was expected", head)
	}
	class, err := r.newObject()
	if err != nil {
		return "", err
	}
	return string(r.objects[class].name), nil
}

// stringBody reads what a string object consists of: its text and its end.
func (r *reader) stringBody() ([]byte, error) {
	if err := r.expectType("+"); err != nil {
		return nil, err
	}
	began := r.at
	text, isNil, err := r.rawString()
	switch {
	case err != nil:
		return nil, err
	case isNil:
		return nil, r.before("no text in the string")
	case len(text) > MaxText:
		return nil, r.wrong("text of %d bytes, more than %d", len(text), MaxText)
	case !utf8.Valid(text):
		r.at = began
		return nil, r.wrong("text that is not UTF-8")
	}
	return text, r.expectEnd()
}

// runs reads the attribute runs to the end of the root. Each is the number of its dictionary and
// its length; a dictionary follows at its first use. Together they cover the text.
func (r *reader) runs(units int) error {
	known, covered := 0, 0
	for {
		if end, err := r.atEnd(); err != nil || end {
			if err == nil && covered != units {
				err = r.before("attribute runs over %d of the text's %d units", covered, units)
			}
			return err
		}
		if err := r.expectType("iI"); err != nil {
			return err
		}
		number, err := r.signed(32)
		if err != nil {
			return err
		}
		length, err := r.unsigned(32)
		if err != nil {
			return err
		}
		if number < 1 || number > int64(known)+1 {
			return r.before("run with dictionary %d, where %d are known", number, known)
		}
		if length > uint64(units-covered) {
			return r.before("run of %d units, where the text has %d left", length, units-covered)
		}
		covered += int(length)
		if number > int64(known) {
			if err := r.dictionary(); err != nil {
				return err
			}
			known++
		}
	}
}

// dictionary reads the attributes of a run.
func (r *reader) dictionary() error {
	if err := r.expectType("@"); err != nil {
		return err
	}
	o, err := r.object()
	if err != nil {
		return err
	}
	if o == none {
		return r.before("no dictionary for a run")
	}
	switch name := string(r.objects[r.objects[o].class].name); name {
	case "NSDictionary", "NSMutableDictionary":
		return nil
	default:
		return r.wrong("attributes of class %.40q, which is no dictionary", name)
	}
}

// units returns the length of a valid text in UTF-16 units.
func units(text []byte) int {
	n := 0
	for _, b := range text {
		if b < 0x80 || b >= 0xc0 {
			n++ // the first byte of a character
		}
		if b >= 0xf0 {
			n++ // of one that takes two units
		}
	}
	return n
}

// wrong returns an error at the place that the reader has reached.
func (r *reader) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: offset %d: %s", ErrMalformed, r.at, fmt.Sprintf(format, args...))
}

// before returns an error about the byte in front of the reader's place.
func (r *reader) before(format string, args ...any) error {
	return fmt.Errorf("%w: offset %d: %s", ErrMalformed, max(r.at-1, 0), fmt.Sprintf(format, args...))
}
