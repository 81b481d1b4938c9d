package codex_test

import (
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/codex"
	"netsky/internal/testworld"
)

func TestExtractReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ answer, want string }{
		{"plain", "plain"},
		{" \n plain \n", "plain"},
		{"x\n<netsky-reply>hello\nagent0</netsky-reply>\ny", "hello\nagent0"},
		{"<netsky-reply> one </netsky-reply><netsky-reply>two</netsky-reply>", "one"},
		{"<netsky-reply>not closed", "<netsky-reply>not closed"},
		{"</netsky-reply>x<netsky-reply>", "</netsky-reply>x<netsky-reply>"},
		{"<netsky-reply></netsky-reply>", ""},
		{"", ""},
	} {
		testworld.Equal(t, codex.ExtractReply(tt.answer), tt.want, "ExtractReply(%q)", tt.answer)
	}
}

// Whatever a model says, the bus takes it.
func FuzzSafeText(f *testing.F) {
	for _, s := range []string{"x", "</channel>", "< / CHANNEL", "<<channel", "\x00", "\xff<\xffchannel", "<\u2028channel", "<chan", "<"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := envelope.SafeText(s)
		e := envelope.Envelope{From: "agent1", To: agent.Root, Kind: envelope.KindReply, Text: got, Time: time.Now()}
		testworld.Equal(t, e.Validate(), nil, "SafeText(%q) = %q", s, got)
		if !strings.ContainsAny(s, "<\x00") && strings.ToValidUTF8(s, "") == s && got != s {
			t.Errorf("SafeText(%q) = %q", s, got)
		}
	})
}
