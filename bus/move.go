package bus

import (
	"errors"
	"fmt"
	"time"

	"netsky/bus/envelope"

	"golang.org/x/sys/unix"
)

const whySuffix = ".why"

// move moves a file between two directories under its own name, or under one
// with ~2, ~3, … where that is taken. It never overwrites.
func move(from int, name string, to int) (newName string, err error) {
	newName = name
	for n := int64(2); ; n++ {
		err := sysMove(from, name, to, newName)
		if err == unix.EEXIST {
			if n > 100 { // a script drops the same name for ever
				n = time.Now().UnixNano()
			}
			newName = nextName(name, n)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("move %s: %w", name, err)
		}
		return newName, nil
	}
}

// whyName is the name of the file that says why a file lies where it lies.
func whyName(name string) string {
	return name[:min(len(name), maxName-len(whySuffix))] + whySuffix
}

// explain writes why a file lies where it lies. The file is a help for people:
// when it cannot be written, the message is still where it belongs.
func (b *Bus) explain(dir int, name, why string) error {
	name = whyName(name)
	err := sysUnlink(dir, name)
	if err != nil && err != unix.ENOENT {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fd, err := sysOpen(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err = b.ensureMode(fd); err == nil {
		err = sysWrite(fd, []byte(why))
	}
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// poisonText is the .why of a file in poison/.
func poisonText(reason string, o origin) string {
	return "not delivered: " + envelope.Plain(reason) + `

A valid envelope is one JSON object, alone in a file whose name ends in .json:

{"from":"agent0","text":"hi","ts":"2026-11-20T12:00:00Z"}

from   agent0, agent1 to agent9999, agentinfinity or owner
text   valid UTF-8 without channel tags, and not empty
ts     a time as in RFC 3339

It may also have: id, to, kind, in_reply_to, thread, hops, idempotency_key,
requires_ack, expires, attachments. No key occurs twice.

Once this file is a valid envelope, netsky moves it back where it was found.
` + o.line() + "\n"
}

// poison moves a file out of the way, byte for byte, with its reason beside it.
func (b *Bus) poison(from int, name string, to int, reason error, o origin) (newName string, err error) {
	newName, err = move(from, name, to)
	if err != nil {
		return "", err
	}
	return newName, b.explain(to, newName, poisonText(reason.Error(), o))
}

// gone reports whether the file had been taken away by someone else.
func gone(err error) bool { return errors.Is(err, unix.ENOENT) }
