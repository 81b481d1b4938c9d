package chat

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

const (
	mostRedacted = 4 << 10 // bytes of a text: more fits in no line
	leastPart    = 8       // bytes of a secret that are taken for a part of it
)

// Redact returns a text of somebody else's, for a line, without the secret: neither whole nor any
// part of eight bytes or more, in any case, as it is, in base64 or hexadecimal, or with the
// escapes of addresses, JSON and HTML, also escaped more than once.
func Redact(text, secret, mark string) string {
	if secret == "" {
		return text
	}
	text = text[:min(len(text), mostRedacted)]
	hide := make([]bool, len(text))
	needles := forms(secret)
	now, from := text, make([]int, len(text)+1) // where each byte of now was in text
	for i := range from {
		from[i] = i
	}
	for range 5 {
		for _, n := range needles {
			n.mark(now, from, hide)
		}
		next, steps := unescape(now)
		if next == now {
			break
		}
		for i, at := range steps {
			steps[i] = from[at]
		}
		now, from = next, steps
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hide[i]:
			b.WriteByte(text[i])
		case i == 0 || !hide[i-1]:
			b.WriteString(mark)
		}
	}
	return b.String()
}

// A needle is one form of a secret, and how much of it is a part.
type needle struct {
	text  string
	least int
}

// forms returns a secret as it may be written: in a query with a plus for a blank, in base64 by how
// many bytes are in front.
func forms(secret string) []needle {
	list := []needle{{secret, leastPart}, {strings.ReplaceAll(secret, " ", "+"), leastPart}, {hex.EncodeToString([]byte(secret)), 2 * leastPart}}
	for front := range 3 {
		data := append(make([]byte, front), secret...)
		whole := len(data) * 8 / 6
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			list = append(list, needle{e.EncodeToString(data)[(front*8+5)/6 : whole], leastPart * 4 / 3})
		}
	}
	return list
}

// mark marks where the text has the needle or a part of it.
func (n needle) mark(text string, from []int, hide []bool) {
	if n.text == "" {
		return
	}
	for i := 0; i < len(text); i++ {
		longest := 0
		for j := range n.text {
			k := 0
			for i+k < len(text) && j+k < len(n.text) && lower(text[i+k]) == lower(n.text[j+k]) {
				k++
			}
			longest = max(longest, k)
		}
		if longest < min(n.least, len(n.text)) {
			continue
		}
		for at := from[i]; at < from[i+longest]; at++ {
			hide[at] = true
		}
		i += longest - 1
	}
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|&(#[0-9]+|#[xX][0-9A-Fa-f]+|[A-Za-z]+);`)
})

// unescape returns a text with one level of escapes undone, and where each of its bytes, and its
// end, was in the text.
func unescape(text string) (string, []int) {
	var b strings.Builder
	var from []int
	put := func(s string, at, step int) {
		for i := range len(s) {
			from = append(from, at+i*step)
		}
		b.WriteString(s)
	}
	last := 0
	for _, m := range escapes().FindAllStringIndex(text, -1) {
		put(text[last:m[0]], last, 1)
		put(meant(text[m[0]:m[1]]), m[0], 0)
		last = m[1]
	}
	put(text[last:], last, 1)
	return b.String(), append(from, len(text))
}

// meant returns what an escape means.
func meant(escape string) string {
	var s string
	var err error
	switch escape[0] {
	case '%':
		s, err = url.PathUnescape(escape)
	case '\\':
		s, err = strconv.Unquote(`"` + escape + `"`)
	default:
		s = html.UnescapeString(escape)
	}
	if err != nil {
		return escape // half of a surrogate pair
	}
	return s
}
