package chat_test

import (
	"testing"

	"netsky/internal/testworld"
	"netsky/phone/chat"
)

func TestHandle(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"+1 (555) 010-0000": "+15550100000", "+1\u00a0555\u2011010": "+1555010", " Me@Example.ORG ": "me@example.org",
		"123456789": "123456789", "-1001234": "-1001234", "chat123": "chat123", "": "", "555+1": "555+1",
		// Look-alikes stay what they are: the Kelvin sign, an i with a dot, a Cyrillic letter, full width.
		"\u212aim@example.org": "\u212aim@example.org", "k\u0130m@example.org": "k\u0130m@example.org",
		"kim@ex\u0430mple.org": "kim@ex\u0430mple.org", "\uff2bim@example.org": "\uff2bim@example.org",
		"+\uff11555": "+\uff11555", "+1\u06600": "+1\u06600", "tel:+15550100": "tel:+15550100",
	} {
		testworld.Equal(t, chat.Handle(s), want, "Handle(%q)", s)
	}
}
