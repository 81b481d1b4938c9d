package chatdb_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netsky/imessage/chatdb"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
)

var update = flag.Bool("update", false, "write testdata/imessage/attributed")

const samplesDir = "imessage/attributed"

// A sample is one file of testdata: a blob, and its text or a part of the error.
type sample struct {
	name  string
	blob  []byte
	text  string
	fault string
}

type (
	body  = messagesim.Body
	run   = messagesim.Run
	attrs = messagesim.Attributes
)

// part is the attributes that every run of a message has.
func part(n int) attrs { return attrs{{Key: messagesim.Part, Value: n}} }

// bodies are the samples that are whole.
func bodies() map[string]body {
	see := messagesim.Placeholder + "see @Sam https://example.test/x"
	many := body{Text: strings.Repeat("a𝄞", 60), ShareKeys: true}
	for n := range 60 {
		many.Runs = append(many.Runs, run{Units: 3, Attributes: part(n % 7)})
	}
	one := func(text string) []run { return []run{{Units: messagesim.Units(text), Attributes: part(0)}} }
	of := func(text string) body { return body{Text: text, Runs: one(text)} }
	return map[string]body{
		"plain":          of("hi"),
		"bare":           {Text: "no attributes"},
		"empty":          {},
		"string":         {Text: "a string alone", Plain: true},
		"mutable-string": {Text: "a mutable string alone", Plain: true, Mutable: true},
		"length-127":     of(strings.Repeat("o", 127)),
		"length-128":     of(strings.Repeat("e", 128)),
		"length-256":     of(strings.Repeat("256 ", 64)),
		"emoji":          of("👩🏽\u200d💻 e\u0301 日本語 العربية"),
		"controls":       of("\x00begins with NUL\n\tand has \x1b[31m, \u0086\u0084\u202e"),
		"marker":         of("left \u2184 right \x01+\x02 NSString"),
		"mutable":        {Text: "mutable hello", Mutable: true, Runs: one("mutable hello")},
		"many-runs":      many,
		"attachment": {Text: messagesim.Placeholder, Runs: []run{{Units: 1, Attributes: attrs{
			{Key: messagesim.Attachment, Value: "at_0_00000000-0000-4000-8000-000000000001"},
			{Key: messagesim.Direction, Value: int64(-1)},
			{Key: messagesim.Part, Value: 0},
		}}}},
		"link": {Text: see, Mutable: true, Runs: []run{
			{Units: 1, Attributes: append(attrs{{Key: messagesim.Attachment, Value: "at_0_SAMPLE"}}, part(0)...)},
			{Units: 4, Attributes: part(1)},
			{Units: 4, Attributes: append(attrs{{Key: messagesim.Mention, Value: "+15550100"}}, part(1)...)},
			{Units: 1, Attributes: part(1)},
			{Units: 22, Attributes: attrs{
				{Key: messagesim.Link, Value: messagesim.URL("https://example.test/x")},
				{Key: messagesim.RichLink, Value: true},
				{Key: messagesim.Detected, Value: messagesim.Data("\x84\x01+\x04text\x86")},
				{Key: messagesim.Part, Value: 1},
			}},
		}},
	}
}

// samples returns all samples: the whole ones, and damaged forms of them.
func samples() []sample {
	var all []sample
	blobs := map[string][]byte{}
	for name, b := range bodies() {
		blobs[name] = b.Encode()
		all = append(all, sample{name: name, blob: blobs[name], text: b.Text})
	}
	bad := func(name, fault string, blob []byte) {
		all = append(all, sample{name: "bad-" + name, blob: blob, fault: fault})
	}
	swap := func(of, old, new string) []byte {
		return bytes.Replace(blobs[of], []byte(old), []byte(new), 1)
	}
	bad("cut-in-text", "bytes were announced", blobs["length-128"][:120])
	bad("cut-after-text", "ends early", blobs["plain"][:76])
	bad("cut-last-byte", "ends early", blobs["link"][:len(blobs["link"])-1])
	bad("trailing", "1 bytes after the end", append(slices.Clone(blobs["plain"]), 0x86))
	bad("text-removed", "not UTF-8", swap("length-256", "256 256 256 ", ""))
	bad("length-less", "was to end", swap("bare", "\x0dno attr", "\x0cno attr"))
	bad("length-more", "not UTF-8", swap("bare", "\x0dno attr", "\x0eno attr"))
	bad("length-float", "0x83 where an integer", swap("length-128", "\x81\x80\x00", "\x83\x80\x00"))
	bad("not-utf8", "not UTF-8", swap("bare", "no attr", "no\xffattr"))
	bad("runs-less", "over 12 of the text's 13", swap("bare", "iI\x01\x0d", "iI\x01\x0c"))
	bad("runs-more", "run of 14 units", swap("bare", "iI\x01\x0d", "iI\x01\x0e"))
	bad("reference", "reference to entry", swap("plain", "\x84\x99\x99\x00", "\x84\xa9\x99\x00"))
	bad("root", `class "NSAttributedStrinG"`, swap("plain", "NSAttributedString", "NSAttributedStrinG"))
	bad("keyed-archive", "no header", []byte("bplist00\xd4\x01\x02\x03\x04\x05\x06\x07\x0c"))
	all = append(all, sample{name: "utf-16", blob: []byte("\xff\xfeh\x00i\x00 \x00\x3d\xd8\x4b\xdc"), text: "hi 👋"})
	bad("utf-16-odd", "odd number", []byte("\xff\xfeh\x00i"))
	bad("utf-16-half", "half a surrogate", []byte("\xff\xfeh\x00\x3d\xd8i\x00"))
	slices.SortFunc(all, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return all
}

// dump returns a blob as the file has it: hexadecimal, 32 bytes in a line.
func dump(blob []byte) string {
	var b strings.Builder
	for line := range slices.Chunk(blob, 32) {
		b.WriteString(hex.EncodeToString(line) + "\n")
	}
	return b.String()
}

// TestSamplesCurrent compares testdata with what the encoder writes now.
func TestSamplesCurrent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "testdata", filepath.FromSlash(samplesDir))
	if *update {
		for _, s := range samples() {
			testworld.Must(t, os.WriteFile(filepath.Join(dir, s.name+".hex"), []byte(dump(s.blob)), 0o600))
		}
	}
	files := testworld.Files(t, samplesDir)
	for _, s := range samples() {
		testworld.Equal(t, files[s.name+".hex"], dump(s.blob), "%s.hex is not what the encoder writes; -update writes it", s.name)
		delete(files, s.name+".hex")
	}
	for name := range files {
		t.Errorf("%s: no sample of this name", name)
	}
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		got, err := chatdb.Text(s.blob)
		if s.fault == "" && (err != nil || got != s.text) {
			t.Errorf("Text(%s) = %q, %v, want %q", s.name, got, err, s.text)
		}
		if s.fault != "" && (!errors.Is(err, chatdb.ErrMalformed) || !strings.Contains(err.Error(), s.fault) || got != "") {
			t.Errorf("Text(%s) = %q, %v, want an error with %q", s.name, got, err, s.fault)
		}
	}
}

// A message in which one byte is lost, anywhere, or which ends early is an error or has its
// whole text: never a shorter one, and never one with what follows it.
func TestLostBytes(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		if s.fault != "" || s.name == "utf-16" {
			continue
		}
		for i := range s.blob {
			if got, err := chatdb.Text(s.blob[:i]); err == nil {
				t.Errorf("Text(%s, its first %d bytes) = %q", s.name, i, got)
			}
			lost := slices.Delete(slices.Clone(s.blob), i, i+1)
			if got, err := chatdb.Text(lost); err == nil && got != s.text {
				t.Errorf("Text(%s without byte %d) = %q, want an error", s.name, i, got)
			}
		}
	}
}
