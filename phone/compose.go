package phone

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"netsky/bus/envelope"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// The kinds of texts to the owner.
const (
	kindMail   = "mail"   // what an agent wrote; About is the message's id
	kindNeed   = "need"   // what needs the owner, in full; About is its code
	kindPast   = "past"   // such a text whose item is over
	kindList   = "list"   // what needs the owner, a line each; About is their codes
	kindAnswer = "answer" // ours, to a text of the owner's; About is its guid
	kindAlert  = "alert"  // ours, without being asked; it is reported until it was sent
	kindNote   = "note"   // ours, whose sender was told what became of it
)

// The order in which texts are sent: what the owner waits for first.
var ranks = map[string]int{kindAnswer: 0, kindNeed: 1, kindList: 1, kindAlert: 1, kindNote: 1, kindMail: 3}

// us is how texts are signed that no agent wrote.
const us = "netsky"

// A phone shows long texts badly, and a burst of parts looks like spam to a transport.
const (
	partUnits = 4000 // of one part, with its signature, in UTF-16: Telegram takes 4096
	mostParts = 5
)

// A letter is a text to the owner before it is split.
type letter struct {
	id      string // the same for the same text: it is recorded once
	chat    chat.Chat
	kind    string
	about   string
	digest  string
	name    string // who signs it
	text    string
	rest    string // where the rest is, if the text is too long
	files   []string
	choices []string
	hold    store.Time // not to be sent before
}

// compose returns the parts of a letter, as they are recorded.
func (b *Bridge) compose(l letter) []record.Said {
	now := store.At(b.o.Now())
	texts := split(l.name, l.text, l.rest)
	if l.text == "" && len(l.files) > 0 {
		texts = nil
	}
	said := record.Said{
		Line: b.o.Transport.Name(), ID: l.id, Parts: len(texts) + len(l.files), Chat: recorded(l.chat), Kind: l.kind, Rank: ranks[l.kind],
		About: l.about, Digest: l.digest, Created: now, NotBefore: l.hold,
	}
	list := make([]record.Said, 0, said.Parts)
	for i, text := range texts {
		said.Part, said.Text, said.Choices = i+1, text, nil
		if i == len(texts)-1 {
			said.Choices = l.choices
		}
		list = append(list, said)
	}
	for i, file := range l.files {
		said.Part, said.Text, said.File, said.Choices = len(texts)+i+1, "", file, nil
		list = append(list, said)
	}
	return list
}

// split returns a text in signed and, if there are more than one, numbered parts: cut at the
// end of a paragraph, a line or a word where there is one. Of a text of more than mostParts,
// the last one says where the rest is.
func split(name, text, rest string) (parts []string) {
	text = strings.TrimSpace(envelope.Plain(text))
	room := partUnits - units(name) - len("[ 0/0] ")
	var bodies []string
	for text != "" && len(bodies) < mostParts {
		body, tail := cut(text, room)
		if len(bodies) == mostParts-1 && tail != "" {
			end := "\n… " + rest
			body, _ = cut(text, room-units(end))
			body, tail = body+end, ""
		}
		bodies, text = append(bodies, body), tail
	}
	if len(bodies) == 0 {
		bodies = []string{""}
	}
	for i, body := range bodies {
		sign := name
		if len(bodies) > 1 {
			sign = fmt.Sprintf("%s %d/%d", name, i+1, len(bodies))
		}
		parts = append(parts, strings.TrimSpace("["+sign+"] "+body))
	}
	return parts
}

// units returns how long a text is in UTF-16.
func units(text string) (n int) {
	for _, r := range text {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// cut returns a text's first characters, at most n in UTF-16, and the rest.
func cut(text string, n int) (head, tail string) {
	end, last := 0, 0 // in bytes, and where the last of the characters begins
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if n -= max(utf16.RuneLen(r), 1); n < 0 {
			break
		}
		last, end = end, end+size
	}
	if end == len(text) {
		return text, ""
	}
	head = text[:end]
	for _, at := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(head, at); i > end/2 {
			return strings.TrimRight(text[:i], " \n"), strings.TrimLeft(text[i:], " \n")
		}
	}
	// No picture that is made of several characters is torn apart, as far as that can be seen.
	for i := 0; i < 16 && last > end/2 && joins(text[last:], text[end:]); i++ {
		end = last
		_, size := utf8.DecodeLastRuneInString(text[:last])
		last -= size
	}
	return text[:end], text[end:]
}

// joins reports whether what follows belongs to the character before.
func joins(before, after string) bool {
	b, _ := utf8.DecodeRuneInString(before)
	a, _ := utf8.DecodeRuneInString(after)
	const joiner = 0x200d
	return b == joiner || a == joiner || a >= 0xfe00 && a <= 0xfe0f || a >= 0x300 && a <= 0x36f || a >= 0x1f3fb && a <= 0x1f3ff ||
		a >= 0x1f1e6 && a <= 0x1f1ff && b >= 0x1f1e6 && b <= 0x1f1ff
}

// short returns a name of 32 characters for a text of any length.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// messageID returns the id of the envelope that a message becomes: the same for the same
// message, whoever sends it again.
func messageID(line, guid string) string { return idPrefix + short(line+"\x00"+guid) }

const idPrefix = "i-"
