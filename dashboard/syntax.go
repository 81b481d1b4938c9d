// This file colors source code: it finds the comments, strings, numbers and keywords of a
// line. It does not parse: where a language's finer rules matter, a word may get a color too many or
// too few, and never is a character lost or added. (Chroma knows the finer rules, of 270 languages
// that it sets up in 5 ms whenever a program with it starts: too much for a program that starts as
// often as netsky's verbs.)
//
// A line takes time linear in its length.

package dashboard

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind says what a span of text is.
type Kind uint8

const (
	Plain Kind = iota
	Comment
	String
	Number
	Keyword
)

// A Colored is a part of a line.
type Colored struct {
	Kind Kind
	Text string
}

// maxLine is the length, in bytes, of the longest line that is colored. Longer ones are data.
const maxLine = 2000

// A Scanner colors the lines of one file in their order. Its zero value leaves all plain.
type Scanner struct {
	lang *language
	in   *quote // what an earlier line has opened
}

// For returns a Scanner for a file of that name.
func For(file string) Scanner {
	base := strings.ToLower(path.Base(file))
	all := languages()
	if l := all.byName[base]; l != nil {
		return Scanner{lang: l}
	}
	return Scanner{lang: all.byExtension[path.Ext(base)]}
}

// Line returns the spans of the next line, which together are the line. The line has no line end.
func (s *Scanner) Line(line string) []Colored {
	if s.lang == nil || len(line) > maxLine {
		return plain(line)
	}
	all := run{line: line}
	for all.to < len(line) {
		rest := line[all.to:]
		n, kind := 0, Plain
		if s.in != nil {
			n, kind = s.close(rest), s.kind()
			if n < 0 {
				n = len(rest)
			} else {
				s.in = nil
			}
		} else {
			n, kind = s.next(rest, isWord(before(line, all.to)))
		}
		all.add(kind, n)
	}
	if s.in != nil && !s.in.lines {
		s.in = nil
	}
	return all.end()
}

func plain(line string) []Colored {
	if line == "" {
		return nil
	}
	return []Colored{{Plain, line}}
}

func before(line string, at int) rune {
	r, _ := utf8.DecodeLastRuneInString(line[:at])
	return r
}

// kind is the kind of the text that is open.
func (s *Scanner) kind() Kind {
	if s.in.comment {
		return Comment
	}
	return String
}

// close returns where what is open ends in the text, -1 if it does not.
func (s *Scanner) close(text string) int {
	for i := 0; i < len(text); i++ {
		if !s.in.raw && text[i] == '\\' {
			i++
		} else if strings.HasPrefix(text[i:], s.in.end) {
			return i + len(s.in.end)
		}
	}
	return -1
}

// next returns the length and the kind of what the text begins with. joined says that a word
// continues there.
func (s *Scanner) next(text string, joined bool) (int, Kind) {
	for _, c := range s.lang.comments {
		if strings.HasPrefix(text, c) && !(c == "#" && joined) {
			return len(text), Comment
		}
	}
	for i := range s.lang.quotes {
		q := &s.lang.quotes[i]
		if strings.HasPrefix(text, q.begin) && !(joined && q.begin == "'") {
			s.in = q
			return len(q.begin), s.kind()
		}
	}
	r, n := utf8.DecodeRuneInString(text)
	if !isWord(r) {
		return n, Plain
	}
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !isWord(r) && !(r == '.' && text[0] >= '0' && text[0] <= '9') {
			break
		}
		n += size
	}
	switch word := text[:n]; {
	case text[0] >= '0' && text[0] <= '9':
		return n, Number
	case s.lang.keywords[word] || s.lang.anyCase && s.lang.keywords[strings.ToLower(word)]:
		return n, Keyword
	}
	return n, Plain
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// A run is the spans of a line so far; the last one ends where the next begins.
type run struct {
	line  string
	from  int // where the last span begins
	to    int
	kind  Kind
	spans []Colored
}

// add adds the next n bytes, to the last span if they are of its kind.
func (r *run) add(kind Kind, n int) {
	if kind != r.kind {
		r.end()
	}
	r.kind, r.to = kind, r.to+n
}

// end completes the last span.
func (r *run) end() []Colored {
	if r.to > r.from {
		r.spans = append(r.spans, Colored{r.kind, r.line[r.from:r.to]})
		r.from = r.to
	}
	return r.spans
}
