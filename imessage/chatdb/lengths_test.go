package chatdb_test

import (
	"bytes"
	"strings"
	"testing"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
)

// lengths are those at which the form of an integer changes, or at which a reader was wrong.
var lengths = []int{
	0, 1, 126, 127, 128, 129, 144, 145, 146, 147, 255, 256, 257, 292, 512, 2304, 2359,
	32767, 32768, 32769, 65535, 65536, 65537, 1 << 20,
}

// texts returns a text of n bytes in one alphabet, where its characters allow that.
func texts(n int) map[string]string {
	all := map[string]string{"ascii": strings.Repeat("x", n)}
	for name, c := range map[string]string{"two bytes": "é", "three": "日", "four": "👋", "NUL": "\x00"} {
		all[name] = strings.Repeat(c, n/len(c)) + strings.Repeat(".", n%len(c))
	}
	return all
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for _, n := range lengths {
		for alphabet, text := range texts(n) {
			for _, b := range []body{
				{Text: text},
				{Text: text, Mutable: true, Runs: []run{{Units: messagesim.Units(text), Attributes: part(0)}}},
				{Text: text, Plain: true},
			} {
				if got, err := chatdb.Text(b.Encode()); err != nil || got != text {
					t.Errorf("Text(%d bytes, %s) has %d bytes, %v", n, alphabet, len(got), err)
				}
			}
		}
	}
}

// The form of a length does not matter where it says what the text has: 0x81 is unsigned, and a
// byte above 0x91 is a number.
func TestWidths(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width messagesim.Width
		n     int
		ok    bool
	}{
		{messagesim.OneByte, 127, true},
		{messagesim.OneByte, 128, false}, // 0x80 to 0x91 are no numbers
		{messagesim.OneByte, 145, false},
		{messagesim.OneByte, 146, true},
		{messagesim.OneByte, 255, true},
		{messagesim.TwoBytes, 0, true},
		{messagesim.TwoBytes, 5, true},
		{messagesim.TwoBytes, 32768, true},
		{messagesim.TwoBytes, 65535, true},
		{messagesim.FourBytes, 5, true},
		{messagesim.FourBytes, 70000, true},
		{messagesim.EightBytes, 5, false},
	} {
		text := strings.Repeat("w", tt.n)
		got, err := chatdb.Text(body{Text: text, Width: tt.width}.Encode())
		if tt.ok != (err == nil) || tt.ok && got != text {
			t.Errorf("Text(%d bytes, width %d) has %d bytes, %v", tt.n, tt.width, len(got), err)
		}
	}
}

// A byte in the place of a length that no length may begin with is an error.
func TestLengthHeads(t *testing.T) {
	t.Parallel()
	blob := body{Text: "12345", Width: messagesim.FourBytes}.Encode()
	at := bytes.Index(blob, []byte("\x82\x05\x00\x00\x00"))
	for head := 0x80; head <= 0x91; head++ {
		if head == 0x82 {
			continue
		}
		blob[at] = byte(head)
		if got, err := chatdb.Text(blob); err == nil {
			t.Errorf("Text(length 0x%02x) = %q", head, got)
		}
	}
}

// What other readers got wrong, each with the text that they lost or spoiled.
func TestWrongReadings(t *testing.T) {
	t.Parallel()
	long := attrs{{Key: "attribute", Value: strings.Repeat("longer than the text ", 20)}}
	for _, tt := range []struct{ name, text string }{
		{"a length of 0x81 taken for one byte", strings.Repeat("m", 129)},
		{"a length of 0x81 taken for two bytes without the second", strings.Repeat("v", 2359)},
		{"a multiple of 256 taken for nothing", strings.Repeat("z", 512)},
		{"a signed length", strings.Repeat("s", 40000)},
		{"the end looked for in the text", "left \u2184 right"}, // its bytes are e2 86 84
		{"the beginning looked for in the text", "1 \x01+\x03abc 2"},
		{"a marker of the class", "NSString NSMutableString NSDictionary __kIM"},
		{"a leading newline or blank cut off", "\n  text  \n"},
		{"a leading NUL cut off", "\x00\x00text"},
		{"control characters removed", "a\x1b\x07\u202eb\u200b"},
		{"the longest piece taken", "short"},
		{"a letter taken for a length", "+hello"},
	} {
		b := body{Text: tt.text, Runs: []run{{Units: messagesim.Units(tt.text), Attributes: long}}}
		if got, err := chatdb.Text(b.Encode()); err != nil || got != tt.text {
			t.Errorf("%s: Text has %d bytes of %d: %.40q, %v", tt.name, len(got), len(tt.text), got, err)
		}
	}
}
