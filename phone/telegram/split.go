package telegram

import (
	"unicode/utf16"

	"netsky/phone/chat"
)

// A phone sends what is too long for one message, and an album, as several messages, one after another.

// leastSplit is how long a text is, in UTF-16 units, that a phone has cut: it looks for a good place
// in the second half of what a message can hold.
const leastSplit = maxText / 2

// splitWithin is how many seconds are between two parts of a text, which a phone sends at once.
const splitWithin = 2

// A split is what tells whether a message is a part.
type split struct {
	at    int // among the messages
	date  int64
	album string
}

// A tail is a message of which more follows.
type tail struct {
	split
	guid, handle string
}

// join says of each message whether more of it follows, and what it is a part of.
func (t *Transport) join(in arrived) {
	for _, s := range in.splits {
		m := &in.messages[s.at]
		last, open := t.tails[m.Chat.Key]
		if open && last.handle == m.Handle && last.album == s.album && (s.album != "" || s.date-last.date <= splitWithin) {
			m.After = last.guid
		}
		delete(t.tails, m.Chat.Key)
		m.More = m.Kind == chat.Text && (s.album != "" || len(utf16.Encode([]rune(m.Text))) >= leastSplit)
		if !m.More {
			continue
		}
		if t.tails == nil || len(t.tails) == mostTails {
			t.tails = make(map[string]tail)
		}
		t.tails[m.Chat.Key] = tail{s, m.GUID, m.Handle}
	}
}

// mostTails bounds what strangers can make us remember.
const mostTails = 100
