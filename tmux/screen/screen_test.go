package screen_test

import (
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"netsky/internal/testworld"
	"netsky/tmux/screen"
)

func TestLines(t *testing.T) {
	const faint, curly = screen.Faint, screen.Underline
	for _, tt := range []struct {
		name, in string
		want     [][]screen.Span
	}{
		{"empty", "", [][]screen.Span{nil}},
		{"plain", "a b  \nc", [][]screen.Span{{{Text: "a b  "}}, {{Text: "c"}}}},
		{"curly underline leaves faint", "\x1b[2ma\x1b[4:3mb\x1b[4:0mc", [][]screen.Span{{
			{Text: "a", Style: screen.Style{Attr: faint}},
			{Text: "b", Style: screen.Style{Attr: faint | curly}},
			{Text: "c", Style: screen.Style{Attr: faint}},
		}}},
		{"colours are no attributes", "\x1b[2;38;5;7;48:2::0:7:0;58;2;0;22;0mx", [][]screen.Span{{
			{Text: "x", Style: screen.Style{FG: 1<<24 | 7, BG: 2<<24 | 7<<8, Attr: faint}},
		}}},
		{"over lines", "\x1b[7ma\nb\x1b[27mc", [][]screen.Span{
			{{Text: "a", Style: screen.Style{Attr: screen.Reverse}}},
			{{Text: "b", Style: screen.Style{Attr: screen.Reverse}}, {Text: "c"}},
		}},
		{"cells", "a漢✻", [][]screen.Span{{{Text: "a"}, {Text: "漢", Cells: screen.Two}, {Text: "✻", Cells: screen.One}}}},
		{"link as written", "\x1b]8;;javascript:x\ay", [][]screen.Span{{{Text: "y", Style: screen.Style{Link: "javascript:x"}}}}},
	} {
		if got := screen.Lines(tt.in); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: Lines(%q) = %+v, want %+v", tt.name, tt.in, got, tt.want)
		}
	}
}

// cells is how many cells a line takes.
func cells(line []screen.Span) (n int) {
	for _, s := range line {
		switch s.Cells {
		case screen.One:
			n++
		case screen.Two:
			n += 2
		case screen.ASCII, screen.Ones:
			n += utf8.RuneCountInString(s.Text)
		case screen.Twos:
			n += 2 * utf8.RuneCountInString(s.Text)
		}
	}
	return n
}

// Each character has as many cells as tmux 3.3a was seen to give it.
func TestCells(t *testing.T) {
	for text, want := range map[string]int{
		"✻": 1, "⏺": 1, "⎿": 1, "⠋": 1, "·": 1, "…": 1, "①": 1, "★": 1, "ﾊ": 1, "☑": 1, "✅": 2, "😀": 2, "㊙": 2, "🅰": 1, "漢": 2, "\u3000": 2,
		"👨\u200d👩\u200d👧": 2, "👩\u200d🌾": 2, "🏳\ufe0f\u200d🌈": 1, "👍🏽": 4, "🫱🏻\u200d🫲🏿": 6, "🇩🇪": 2, "❤": 1, "❤\ufe0f": 1, "⚠\ufe0f": 1,
		"▶\ufe0f": 1, "⏺\ufe0e": 1, "1\ufe0f\u20e3": 1, "a\u0301\u0302": 1, "a\ufe0f": 1, "a\u200cb": 2, "\ue0b0": 1, "\uf8ff": 1, "\U000f0001": 1,
		"\u00ad": 1, "\u00a0": 1, "\u1112\u1161\u11ab": 2, "กำ": 2, "क्षि": 3, "لا": 2, "─│╭╮": 4, "█▌░": 3, "\u200d": 0, "\u200b": 0,
	} {
		line := screen.Lines(text + "|")[0]
		if got := cells(line) - 1; got != want {
			t.Errorf("%q has %d cells, want %d: %+v", text, got, want, line)
		}
	}
}

// Nothing that a terminal would obey is left, and what is read twice is the same.
func check(tb testing.TB, in string) {
	tb.Helper()
	lines := screen.Lines(in)
	if len(lines) != strings.Count(in, "\n")+1 || !reflect.DeepEqual(lines, screen.Lines(in)) {
		tb.Fatalf("%q: %d lines, or others the second time", in, len(lines))
	}
	for _, line := range lines {
		if n := cells(line); n > 1001 {
			tb.Fatalf("a line of %d cells", n)
		}
		for _, s := range line {
			if s.Text == "" || !utf8.ValidString(s.Text) {
				tb.Fatalf("%q: span %q", in, s.Text)
			}
			for _, r := range s.Text {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
					tb.Fatalf("%q: %q in %q", in, r, s.Text)
				}
			}
		}
	}
}

func TestEscapes(t *testing.T) {
	for _, dir := range []string{"escapes", "web", "screens/claude", "screens/codex"} {
		for name, in := range testworld.Files(t, dir) {
			t.Run(dir+"/"+name, func(t *testing.T) { check(t, in) })
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, in := range testworld.Files(f, "escapes") {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) { check(t, in) })
}
