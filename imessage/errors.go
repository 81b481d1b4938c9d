package imessage

import (
	"fmt"
	"strings"

	"netsky/phone/chat"
)

// A meaning is what an error's number means.
type meaning struct {
	fact string
	next string
	// other says that Messages knows no such target: another one may do.
	other bool
	// again says that nothing was sent and that the same may work later.
	again bool
	// unknown says that the message may have been taken.
	unknown bool
}

const adviceAutomation = "allow it in System Settings, Privacy & Security, Automation: the program that netsky is started by, Messages. " +
	"If it is not listed, start netsky from a terminal on the Mac itself once; a grant asked for over ssh goes to sshd"

// meanings are the errors that are known to come.
var meanings = map[int]meaning{
	// The owner can still allow these two: what was refused is sent then.
	-1743:  {fact: "macOS does not let netsky control Messages", again: true, next: adviceAutomation},
	-10004: {fact: "macOS does not let netsky do this with Messages", again: true, next: adviceAutomation},
	-1728:  {fact: "Messages knows no such chat or person", other: true, next: "send a message in this chat by hand once, so that Messages loads it"},
	-1719:  {fact: "Messages has no iMessage account", other: true, next: "sign in to iMessage in Messages' settings"},
	-1700:  {fact: "Messages can't use this kind of address", other: true},
	-600:   {fact: "Messages is not running", again: true, next: "open Messages, and add it to the login items"},
	-1712:  {fact: "Messages did not answer in time", unknown: true, next: "look whether a dialog is open in Messages"},
	-43:    {fact: "Messages can't find the file"},
}

// fact is what an ending says, in one line.
func (e ending) fact() string {
	switch {
	case e.timedOut:
		return "osascript did not end in time and was ended"
	case e.number != 0:
		m, ok := meanings[e.number]
		if !ok {
			m.fact = "Messages or osascript failed: " + lastLine(e.errors)
			return m.fact
		}
		return fmt.Sprintf("%s (%d)", m.fact, e.number)
	case e.ok:
		return "osascript ended well"
	}
	s := "osascript: " + e.status
	if line := lastLine(e.errors); line != "" {
		s += ": " + line
	}
	return s
}

// meaning returns what is known about an ending that is not ok.
func (e ending) meaning() meaning {
	if e.timedOut {
		return meaning{unknown: true, next: "look at the Mac's screen: macOS or Messages may be asking something"}
	}
	if m, ok := meanings[e.number]; ok {
		return m
	}
	return meaning{unknown: true}
}

// failed is the receipt of an ending by which nothing was sent.
func (e ending) failed() chat.Receipt {
	m := e.meaning()
	return chat.Receipt{State: chat.Failed, Fact: e.fact(), Next: m.next, Again: m.again}
}

// lastLine returns the last line of an output, made safe for a log.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	s = s[strings.LastIndexByte(s, '\n')+1:]
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
