// This file reads and writes the file NAME.why beside a file that was put aside: a text
// for people, then lines for netsky. A crash while it is written leaves a part of it;
// missing lines are unknown.

package mailbox

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"netsky/bus/envelope"
)

// A Reason is the machine-readable reason why a file was put aside. The text beside it is
// for people, and its wording may change.
type Reason string

const (
	Duplicate Reason = "duplicate" // filed unread: its ID or idempotency key was delivered before
	Expired   Reason = "expired"   // filed unread: it had expired
	Retracted Reason = "retracted" // filed unread: taken back before it was claimed
	Invalid   Reason = "invalid"   // poisoned: not a valid envelope for where it was found
	Refused   Reason = "refused"   // poisoned: not allowed, not deliverable, or stopped by a brake
)

// A Why is what a .why file contains.
type Why struct {
	Text   string
	Reason Reason
	Origin Origin // of a file in poison/
}

const (
	reasonWord = "reason: "
	originWord = "netsky-origin: "
	// NotDelivered begins the text beside a file in poison/.
	NotDelivered = "not delivered: "
)

// oldWhys are the beginnings of texts without a reason, as earlier versions wrote them.
var oldWhys = []struct {
	text   string
	reason Reason
}{
	{"filed unread: it expired", Expired}, {"filed unread: taken back", Retracted}, {"filed unread: ", Duplicate},
	{NotDelivered, Invalid},
}

// String returns the file's contents.
func (w Why) String() string {
	text := w.Text + "\n" + reasonWord + string(w.Reason) + "\n"
	if w.Origin.Place != "" {
		text += w.Origin.line() + "\n"
	}
	return text
}

// Poisoned returns what is written beside a file in poison/: the reason, and what a valid
// envelope is.
func Poisoned(reason error, o Origin) Why {
	word := Refused
	if errors.Is(reason, envelope.ErrInvalid) {
		word = Invalid
	}
	return Why{Text: NotDelivered + envelope.Plain(reason.Error()) + `

A valid envelope is one JSON object, alone in a file whose name ends in .json:

{"from":"agent0","text":"hi","ts":"2026-11-20T12:00:00Z"}

from   agent0, agent1 to agent9999, agentinfinity or owner
text   valid UTF-8, not empty, without the tags in which a model is shown
       messages (<channel …>, </channel>)
ts     a time as in RFC 3339

It may also have: id, to, kind, in_reply_to, thread, hops, idempotency_key,
requires_ack, expires, attachments. No key occurs twice.

Once this file is a valid envelope, netsky moves it back where it was found.`, Reason: word, Origin: o}
}

// ParseWhy reads a file's contents. What it does not know is part of the text.
func ParseWhy(data []byte) (w Why) {
	w.Text = strings.TrimSpace(string(data))
	for {
		i := strings.LastIndexByte(w.Text, '\n')
		line := w.Text[i+1:]
		word, isReason := strings.CutPrefix(line, reasonWord)
		if isReason && w.Reason == "" {
			w.Reason = Reason(word)
		} else if o, ok := parseOrigin(line); ok && w.Origin.Place == "" {
			w.Origin = o
		} else {
			break
		}
		w.Text = strings.TrimSpace(w.Text[:max(i, 0)])
	}
	for _, old := range oldWhys {
		if strings.HasPrefix(w.Text, old.text) {
			w.Reason = cmp.Or(w.Reason, old.reason)
		}
	}
	return w
}

// An Origin is where a file in poison/ was found, and as what. It is the last line of the
// file's .why; those written by earlier versions lack it.
type Origin struct {
	Place string // inbox or outbox; "" if unknown
	Mark  Mark   // what was judged, without the device
}

type originLine struct {
	Place string `json:"place"`
	Inode uint64 `json:"inode"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime_ns"`
}

func (o Origin) line() string {
	data, err := json.Marshal(originLine{o.Place, o.Mark.Ino, o.Mark.Size, o.Mark.MTime})
	if err != nil {
		panic(err) // strings and numbers
	}
	return originWord + string(data)
}

func parseOrigin(line string) (o Origin, ok bool) {
	data, ok := strings.CutPrefix(line, originWord)
	var l originLine
	if !ok || json.Unmarshal([]byte(data), &l) != nil || l.Place != "inbox" && l.Place != "outbox" {
		return Origin{}, false
	}
	return Origin{l.Place, Mark{Ino: l.Inode, Size: l.Size, MTime: l.Mtime}}, true
}
