package bus

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"netsky/bus/disk"
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

// A why is the file NAME.why beside a file that was put aside: a text for people, then
// lines for netsky. A crash while it is written leaves a part of it; missing lines are
// unknown.
type why struct {
	text   string
	reason Reason
	origin origin // of a file in poison/
}

const (
	reasonWord   = "reason: "
	originWord   = "netsky-origin: "
	notDelivered = "not delivered: "
)

// oldWhys are the beginnings of texts without a reason, as earlier versions wrote them.
var oldWhys = []struct {
	text   string
	reason Reason
}{
	{"filed unread: it expired", Expired}, {"filed unread: taken back", Retracted}, {"filed unread: ", Duplicate},
	{notDelivered, Invalid},
}

func (w why) String() string {
	text := w.text + "\n" + reasonWord + string(w.reason) + "\n"
	if w.origin.place != "" {
		text += w.origin.line() + "\n"
	}
	return text
}

func parseWhy(data []byte) (w why) {
	w.text = strings.TrimSpace(string(data))
	for {
		i := strings.LastIndexByte(w.text, '\n')
		line := w.text[i+1:]
		word, isReason := strings.CutPrefix(line, reasonWord)
		if isReason && w.reason == "" {
			w.reason = Reason(word)
		} else if o, ok := parseOrigin(line); ok && w.origin.place == "" {
			w.origin = o
		} else {
			break
		}
		w.text = strings.TrimSpace(w.text[:max(i, 0)])
	}
	for _, old := range oldWhys {
		if strings.HasPrefix(w.text, old.text) {
			w.reason = cmp.Or(w.reason, old.reason)
		}
	}
	return w
}

// readWhy reads the .why beside a file; it is empty if there is none.
func readWhy(dir int, name string) why {
	data, _, err := disk.ReadFile(dir, envelope.WhyName(name), 64<<10)
	if err != nil {
		return why{}
	}
	return parseWhy(data)
}

// explain writes the .why of a file. If that fails, the message is still where it belongs.
func (b *Bus) explain(dir int, name string, w why) error {
	return b.files.Replace(dir, envelope.WhyName(name), []byte(w.String()))
}

// poisonWhy returns the why of a file in poison/.
func poisonWhy(reason error, o origin) why {
	word := Refused
	if errors.Is(reason, envelope.ErrInvalid) {
		word = Invalid
	}
	return why{notDelivered + envelope.Plain(reason.Error()) + `

A valid envelope is one JSON object, alone in a file whose name ends in .json:

{"from":"agent0","text":"hi","ts":"2026-11-20T12:00:00Z"}

from   agent0, agent1 to agent9999, agentinfinity or owner
text   valid UTF-8 without channel tags, and not empty
ts     a time as in RFC 3339

It may also have: id, to, kind, in_reply_to, thread, hops, idempotency_key,
requires_ack, expires, attachments. No key occurs twice.

Once this file is a valid envelope, netsky moves it back where it was found.`, word, o}
}

// poison moves a file to poison/, byte for byte, with its reason beside it.
func (b *Bus) poison(from int, name string, to int, reason error, o origin) (newName string, err error) {
	newName, err = move(from, name, to)
	if err != nil {
		return "", err
	}
	return newName, b.explain(to, newName, poisonWhy(reason, o))
}

// An origin is where a file in poison/ was found, and as what. It is the last line of the
// file's .why; those written by earlier versions lack it.
type origin struct {
	place Place     // Inbox or Outbox; "" if unknown
	mark  disk.Mark // what was judged, without the device
}

type originLine struct {
	Place Place  `json:"place"`
	Inode uint64 `json:"inode"`
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime_ns"`
}

func (o origin) line() string {
	data, err := json.Marshal(originLine{o.place, o.mark.Ino, o.mark.Size, o.mark.MTime})
	if err != nil {
		panic(err) // strings and numbers
	}
	return originWord + string(data)
}

func parseOrigin(line string) (o origin, ok bool) {
	data, ok := strings.CutPrefix(line, originWord)
	var l originLine
	if !ok || json.Unmarshal([]byte(data), &l) != nil || l.Place != Inbox && l.Place != Outbox {
		return origin{}, false
	}
	return origin{l.Place, disk.Mark{Ino: l.Inode, Size: l.Size, MTime: l.Mtime}}, true
}
