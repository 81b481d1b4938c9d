package envelope

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"netsky/agent"
)

const (
	renderedHead = `<channel source="agent" chat_id="`
	noticeHead   = `<channel source="netsky">`
	renderedTail = "\n</channel>"
)

// RenderNotice renders netsky's own notice to a model. Nothing in it can be taken for a
// message.
func RenderNotice(text string) string {
	var b strings.Builder
	b.WriteString(noticeHead + "\n")
	renderText(&b, text)
	b.WriteString(renderedTail)
	return b.String()
}

// RenderedIDs is the inverse of Render for a text that a runtime was given: the IDs of the
// envelopes whose complete renderings it contains, each at the beginning of a line, in
// order. alone reports that the text consists only of such renderings and notices, at
// least one, separated by white space: nothing was added to it. Nothing inside a rendering
// counts as another.
func RenderedIDs(text string) (ids []string, alone bool) {
	list, alone := Unrender(text)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids, alone
}

// Unrender is RenderedIDs with senders.
func Unrender(text string) (list []Envelope, alone bool) {
	blocks, others := 0, false
	for text != "" {
		e, after, ok := cutRendered(text)
		if ok {
			blocks++
			if e.ID != "" {
				list = append(list, e)
			}
			text = after
		}
		line, rest, _ := strings.Cut(text, "\n")
		others = others || strings.TrimSpace(line) != ""
		text = rest
	}
	return list, blocks > 0 && !others
}

// cutRendered removes a rendering, or a notice, from the beginning of a text.
func cutRendered(text string) (e Envelope, after string, ok bool) {
	head, body, ok := strings.Cut(text, "\n")
	if !ok {
		return e, "", false
	}
	if head != noticeHead {
		if e, ok = parseHead(head); !ok {
			return e, "", false
		}
	}
	// Render lets no < of the body stand, so the first one ends it. An empty
	// body leaves two line ends, the first of which is cut off by now.
	end := strings.IndexByte(body, '<')
	if end < 1 || !strings.HasPrefix(body[end-1:], renderedTail) || !isEscaped(body[:end-1]) {
		return e, "", false
	}
	return e, body[end-1+len(renderedTail):], true
}

// parseHead reads the first line of a rendering.
func parseHead(line string) (e Envelope, ok bool) {
	rest, ok := strings.CutPrefix(line, renderedHead)
	if !ok {
		return e, false
	}
	chat, rest, _ := strings.Cut(rest, `" from="`)
	from, rest, _ := strings.Cut(rest, `" ts="`)
	ts, rest, _ := strings.Cut(rest, `" id="`)
	id, rest, ok := strings.Cut(rest, `"`)
	if !ok || chat != from || !IsID(id) {
		return e, false
	}
	if _, err := agent.ParseAddress(from); err != nil {
		return e, false
	}
	at, err := time.Parse(time.RFC3339Nano, ts)
	if err != nil || Stamp(at) != ts {
		return e, false
	}
	if waited, ok := strings.CutPrefix(rest, ` waited="`); ok {
		hours := strings.TrimLeft(waited, "0123456789")
		if hours == waited || waited[0] == '0' {
			return e, false
		}
		if rest, ok = strings.CutPrefix(hours, `h"`); !ok {
			return e, false
		}
	}
	if attached, ok := strings.CutPrefix(rest, ` attachments="`); ok {
		names, after, _ := strings.Cut(attached, `"`)
		if names == "" || !isEscaped(names) {
			return e, false
		}
		rest = after
	}
	return Envelope{ID: id, From: agent.ID(from), Time: at}, rest == ">"
}

// isEscaped reports whether Render can have written the text.
func isEscaped(text string) bool {
	for i, r := range text {
		switch {
		case r == '&':
			if !isEntity(text[i:]) {
				return false
			}
		case r < utf8.RuneSelf:
			if rendered[r] != "" {
				return false
			}
		case unicode.IsControl(r) || isBidi(r) || r == 0xfffe || r == 0xffff:
			return false
		}
	}
	return utf8.ValidString(text)
}

func isEntity(s string) bool {
	for _, c := range []byte(`&<>"'`) {
		if strings.HasPrefix(s, rendered[c]) {
			return true
		}
	}
	return false
}
