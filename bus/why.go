package bus

import (
	"errors"

	"netsky/bus/disk"
	"netsky/bus/envelope"
	"netsky/bus/why"
)

// readWhy reads the .why beside a file; it is empty if there is none.
func readWhy(dir int, name string) why.Why {
	data, _, err := disk.ReadFile(dir, envelope.WhyName(name), 64<<10)
	if err != nil {
		return why.Why{}
	}
	return why.Parse(data)
}

// explain writes the .why of a file. If that fails, the message is still where it belongs.
func (b *Bus) explain(dir int, name string, w why.Why) error {
	return b.files.Replace(dir, envelope.WhyName(name), []byte(w.String()))
}

// poisonWhy returns the why of a file in poison/.
func poisonWhy(reason error, o why.Origin) why.Why {
	word := why.Refused
	if errors.Is(reason, envelope.ErrInvalid) {
		word = why.Invalid
	}
	return why.Why{Text: why.NotDelivered + envelope.Plain(reason.Error()) + `

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

// poison moves a file to poison/, byte for byte, with its reason beside it.
func (b *Bus) poison(from int, name string, to int, reason error, o why.Origin) (newName string, err error) {
	newName, err = move(from, name, to)
	if err != nil {
		return "", err
	}
	return newName, b.explain(to, newName, poisonWhy(reason, o))
}
