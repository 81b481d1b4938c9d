package chat_test

import (
	"testing"

	"netsky/imessage/chat"
)

func TestHandle(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"+1 (555) 010-0000": "+15550100000", "+1\u00a0555\u2011010": "+1555010", " Me@Example.ORG ": "me@example.org",
		"123456789": "123456789", "-1001234": "-1001234", "chat123": "chat123", "": "", "555+1": "555+1",
	} {
		if got := chat.Handle(s); got != want {
			t.Errorf("Handle(%q) = %q, want %q", s, got, want)
		}
	}
}
