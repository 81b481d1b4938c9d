package chat_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
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

// However a server or a library writes a secret, whole, in part or escaped, none of it is left;
// what is around it stays.
func TestRedact(t *testing.T) {
	const secret = "123456789:AAh3k-9dKq_Zx7TtWw0vBn5RrYyLpQ2sMcE"
	escaped := func(format string, each bool) string {
		var b strings.Builder
		for _, r := range secret {
			if each || strings.ContainsRune(":-_", r) {
				fmt.Fprintf(&b, format, r)
			} else {
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	for name, form := range map[string]string{
		"as it is": secret, "lower": strings.ToLower(secret), "upper": strings.ToUpper(secret),
		"first half": secret[:24], "second half": secret[24:], "behind the colon": secret[10:], "eight": secret[20:28],
		"query": url.QueryEscape(secret), "every byte": escaped("%%%02X", true), "lower hex": escaped("%%%02x", false),
		"twice": url.QueryEscape(url.QueryEscape(secret)), "three times": url.QueryEscape(url.QueryEscape(url.QueryEscape(secret))),
		"half of it escaped": url.QueryEscape(secret)[:20], "from within": url.QueryEscape(secret)[14:],
		"JSON": escaped(`\u%04x`, true), "Go": escaped(`\x%02x`, true), "HTML": escaped("&#%d;", true), "HTML, hexadecimal": escaped("&#x%X;", false),
		"HTML by name": strings.ReplaceAll(secret, ":", "&colon;"), "JSON of an address": strings.ReplaceAll(url.QueryEscape(secret), "%", `\u0025`),
		"hexadecimal": hex.EncodeToString([]byte(secret)), "base64": base64.StdEncoding.EncodeToString([]byte(secret)),
		"base64 behind one": base64.StdEncoding.EncodeToString([]byte("/" + secret + "/getMe")), "base64 behind two": base64.URLEncoding.EncodeToString([]byte("a/" + secret)),
	} {
		got := chat.Redact("what is /bot"+form+"/getUpdates?", secret, "<token>")
		if !strings.HasPrefix(got, "what is /bot") || !strings.HasSuffix(got, "getUpdates?") || strings.Count(got, "<token>") != 1 || len(got) > len("what is /bot<token>/getUpdates?")+16 {
			t.Errorf("%s: %q", name, got)
		}
	}
	testworld.Equal(t, chat.Redact("guid=correct+horse+%26+battery", "correct horse & battery", "*"), "guid=*", "in a query")
	for _, text := range []string{"", "400 Bad Request: chat not found", "100% of bot 12345, \\u00e4 &amp; %zz %", strings.Repeat("é", 3000)[:4096]} {
		testworld.Equal(t, chat.Redact(text, secret, "<token>"), text, "became")
	}
	testworld.Equal(t, chat.Redact("it is hush, hus", "hush", "*"), "it is *, hus", "a short one")
	if got := chat.Redact(strings.Repeat("x", 4090)+secret, secret, "*"); strings.Contains(got, secret[:8]) {
		t.Errorf("where it is cut: %q", got[4080:])
	}
}
