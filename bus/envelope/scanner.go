package envelope

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A scanner checks JSON as it walks over it, once, and builds nothing. It is as
// strict as json.Valid, which a fuzz test holds it to, and stops at maxDepth.
type scanner struct {
	data  []byte
	at    int
	depth int
}

// eachField calls fn with every key, still quoted, and value of the one object
// that data must be.
func eachField(data []byte, fn func(key, value []byte) error) error {
	s := scanner{data: data}
	if s.space() != '{' {
		if json.Valid(data) {
			return Invalidf("not a JSON object")
		}
		return s.syntax()
	}
	s.at++
	if s.space() == '}' {
		s.at++
	} else {
		for {
			key, ok := s.key()
			if !ok {
				return s.syntax()
			}
			from := s.at
			if !s.value() {
				return s.syntax()
			}
			if err := fn(key, data[from:s.at]); err != nil {
				return err
			}
			if c := s.space(); c == '}' {
				s.at++
				break
			} else if c != ',' {
				return s.syntax()
			}
			s.at++
		}
	}
	if s.space(); s.at < len(data) {
		return Invalidf("something follows the JSON object at byte %d", s.at)
	}
	return nil
}

// syntax is the error for data that is no JSON.
func (s *scanner) syntax() error {
	if s.depth > maxDepth {
		return Invalidf("nested deeper than %d", maxDepth)
	}
	if s.at >= len(s.data) {
		return Invalidf("not JSON: it ends too early")
	}
	if s.at == 0 && bytes.HasPrefix(s.data, []byte("\ufeff")) {
		return Invalidf("not JSON: it begins with a byte order mark: save it as UTF-8 without one")
	}
	return Invalidf("not JSON: unexpected %q as byte %d", rune(s.data[s.at]), s.at+1)
}

// Unfinished reports whether data may be the beginning of an object whose rest
// is still to be written.
func Unfinished(data []byte) bool {
	if len(bytes.TrimSpace(data)) == 0 {
		return true
	}
	for cut := 1; cut < utf8.UTFMax && cut <= len(data); cut++ { // half a character
		if rest := data[len(data)-cut:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				data = data[:len(data)-cut]
			}
			break
		}
	}
	s := scanner{data: data}
	if s.space() != '{' {
		return s.at >= len(data)
	}
	return !s.value() && s.at >= len(data) && s.depth <= maxDepth
}

// space skips white space and returns the byte after it, 0 at the end.
func (s *scanner) space() byte {
	for ; s.at < len(s.data); s.at++ {
		if c := s.data[s.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// key scans a key and its colon and goes to the value.
func (s *scanner) key() (key []byte, ok bool) {
	if s.space() != '"' {
		return nil, false
	}
	from := s.at
	if !s.text() {
		return nil, false
	}
	key = s.data[from:s.at]
	if s.space() != ':' {
		return nil, false
	}
	s.at++
	s.space()
	return key, true
}

func (s *scanner) value() bool {
	if s.at >= len(s.data) {
		return false
	}
	switch c := s.data[s.at]; {
	case c == '"':
		return s.text()
	case c == '{':
		return s.list('}', func() bool { _, ok := s.key(); return ok && s.value() })
	case c == '[':
		return s.list(']', func() bool { s.space(); return s.value() })
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	switch s.data[s.at] {
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	}
	return s.word("null")
}

// list scans what stands between two brackets.
func (s *scanner) list(end byte, item func() bool) bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	s.at++
	if s.space() == end {
		s.at++
		s.depth--
		return true
	}
	for {
		if !item() {
			return false
		}
		switch s.space() {
		case end:
			s.at++
			s.depth--
			return true
		case ',':
			s.at++
		default:
			return false
		}
	}
}

// text scans a string.
func (s *scanner) text() bool {
	for s.at++; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\':
			if s.at++; s.at >= len(s.data) {
				return false
			}
			switch s.data[s.at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if s.at++; s.at >= len(s.data) || !isHex(s.data[s.at]) {
						return false
					}
				}
			default:
				return false
			}
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func (s *scanner) number() bool {
	if s.data[s.at] == '-' {
		s.at++
	}
	switch {
	case s.at < len(s.data) && s.data[s.at] == '0':
		s.at++
	case !s.digits():
		return false
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		if s.at++; !s.digits() {
			return false
		}
	}
	if s.at < len(s.data) && (s.data[s.at] == 'e' || s.data[s.at] == 'E') {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scanner) word(w string) bool {
	rest := s.data[s.at:]
	if len(rest) < len(w) && strings.HasPrefix(w, string(rest)) {
		s.at = len(s.data) // the end cuts it off
		return false
	}
	if !bytes.HasPrefix(rest, []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}
