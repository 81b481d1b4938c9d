package live_test

import (
	"encoding/json"
	"fmt"
	"html"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"netsky/dashboard/live"
	"netsky/internal/testworld"
)

// render is a captured screen as rows.
func render(text string) []live.Row { return rows(new(live.Renderer), text) }

func rows(r *live.Renderer, text string) []live.Row {
	list := []live.Row{}
	for _, l := range r.Render(text) {
		list = append(list, l.Row)
	}
	return list
}

func plain(r live.Row) string {
	var b strings.Builder
	for _, run := range r {
		b.WriteString(run.Text)
	}
	return b.String()
}

func TestRender(t *testing.T) {
	type run = live.Run
	row := func(runs ...run) live.Row { return append(live.Row{}, runs...) }
	for _, tt := range []struct {
		name, in string
		want     live.Row
	}{
		{"plain", "hello", row(run{Text: "hello"})},
		{"empty", "", row()},
		{"blanks at the end", "a  ", row(run{Text: "a"})},
		{"nothing but blanks", "   ", row()},
		{"coloured blanks at the end", "\x1b[41m  ", row(run{Text: "  ", Class: "g1"})},
		{"16 colours", "\x1b[31;42ma\x1b[97;100mb\x1b[39;49mc", row(run{Text: "a", Class: "f1 g2"}, run{Text: "b", Class: "f15 g8"}, run{Text: "c"})},
		{"256 colours", "\x1b[38;5;196;48;5;17ma", row(run{Text: "a", Class: "f196 g17"})},
		{"24 bits", "\x1b[38;2;255;136;0ma", row(run{Text: "a", Class: "f208", FG: "#ff8800"})},
		{"24 bits, ground", "\x1b[48;2;1;2;3ma", row(run{Text: "a", Class: "g16", BG: "#010203"})},
		{"24 bits of the palette", "\x1b[38;2;255;135;0ma", row(run{Text: "a", Class: "f208"})},
		{"24 bits, grey", "\x1b[38;2;8;8;8ma", row(run{Text: "a", Class: "f232"})},
		{"colons", "\x1b[38:2::255:136:0;48:5:17ma", row(run{Text: "a", Class: "f208 g17", FG: "#ff8800"})},
		{"colons without a space", "\x1b[38:2:255:136:0ma", row(run{Text: "a", Class: "f208", FG: "#ff8800"})},
		{"underline's colour", "\x1b[4;58;5;1;1ma", row(run{Text: "a", Class: "b u"})},
		{"styles", "\x1b[1;2;3;4;8;9;53ma", row(run{Text: "a", Class: "b d i u h s o"})},
		{"styles off", "\x1b[1;2;3;4;8;9;53;22;23;24;28;29;55ma", row(run{Text: "a"})},
		{"curly", "\x1b[4:3ma\x1b[4:2mb\x1b[4:0mc", row(run{Text: "a", Class: "u"}, run{Text: "b", Class: "uu"}, run{Text: "c"})},
		{"reset", "\x1b[1;31ma\x1b[mb", row(run{Text: "a", Class: "b f1"}, run{Text: "b"})},
		{"empty parameters", "\x1b[1;ma", row(run{Text: "a"})},
		{"reverse", "\x1b[7ma", row(run{Text: "a", Class: "fx gx"})},
		{"reverse of a colour", "\x1b[7;31ma", row(run{Text: "a", Class: "fx g1"})},
		{"reverse of two", "\x1b[7;31;48;2;255;136;0ma", row(run{Text: "a", Class: "f208 g1", FG: "#ff8800"})},
		{"wide", "a漢字b", row(run{Text: "a"}, run{Text: "漢字", Class: "ws"}, run{Text: "b"})},
		{"wide in colour", "\x1b[31m漢", row(run{Text: "漢", Class: "f1 w"})},
		{"joined", "👨‍👩‍👧", row(run{Text: "👨‍👩‍👧", Class: "w"})},
		{"accents", "e\u0301x", row(run{Text: "e\u0301", Class: "c"}, run{Text: "x"})},
		{"line drawing", "\x0elqk\x0fq", row(run{Text: "┌─┐", Class: "cs"}, run{Text: "q"})},
		{"one in colour", "\x1b[31m⏺\x1b[39m x", row(run{Text: "⏺", Class: "f1 c"}, run{Text: " x"})},
		{"private use", "a\ue0b0\uf121b", row(run{Text: "a"}, run{Text: "\ue0b0\uf121", Class: "cs"}, run{Text: "b"})},
		{"tab", "a\tb", row(run{Text: "a       b"})},
		{"link", "\x1b]8;;https://a.example/x?y=1&z\x1b\\here\x1b]8;;\x1b\\!", row(run{Text: "here", Link: "https://a.example/x?y=1&z"}, run{Text: "!"})},
		{"link with an id, by BEL", "\x1b]8;id=1;http://a.example\ahere", row(run{Text: "here", Link: "http://a.example"})},
		{"script link", "\x1b]8;;javascript:alert(1)\x1b\\x", row(run{Text: "x"})},
		{"script link in capitals", "\x1b]8;;JaVaScRiPt:alert(1)\x1b\\x", row(run{Text: "x"})},
		{"data link", "\x1b]8;;data:text/html,<b>\x1b\\x", row(run{Text: "x"})},
		{"file link", "\x1b]8;;file:///etc/passwd\x1b\\x", row(run{Text: "x"})},
		{"relative link", "\x1b]8;;//evil.example\x1b\\x", row(run{Text: "x"})},
		{"link that looks like another", "\x1b]8;;https://good.example@evil.example\x1b\\x", row(run{Text: "x"})},
		{"link with quotes", "\x1b]8;;https://a.example/\"onclick=\x1b\\x", row(run{Text: "x", Link: "https://a.example/%22onclick="})},
		{"title", "\x1b]0;evil\ax", row(run{Text: "x"})},
		{"clipboard", "\x1b]52;c;ZXZpbA==\x1b\\x", row(run{Text: "x"})},
		{"string without an end", "a\x1bPevil", row(run{Text: "a"})},
		{"cursor, screen, keys", "\x1b[2J\x1b[1;1H\x1b[?1049h\x1b[>4;1m\x1b[6nx", row(run{Text: "x"})},
		{"half a sequence", "x\x1b[31", row(run{Text: "x"})},
		{"broken sequence", "x\x1b[3\x011m", row(run{Text: "x1m"})},
		{"ESC at the end", "x\x1b", row(run{Text: "x"})},
		{"character set", "\x1b(0x", row(run{Text: "x"})},
		{"controls", "a\x00\x07\x08\r\x7fb", row(run{Text: "ab"})},
		{"C1", "a\u009b31mb\u0085", row(run{Text: "a31mb"})},
		{"bidi", "a\u202eb\u2066c", row(run{Text: "a"}, run{Text: "\ufffd", Class: "z"}, run{Text: "b"}, run{Text: "\ufffd", Class: "z"}, run{Text: "c"})},
		{"line separators", "a\u2028b", row(run{Text: "a"}, run{Text: "\ufffd", Class: "z"}, run{Text: "b"})},
		{"invisible", "a\u200b\u2060\ufeff\U000e0041b", row(run{Text: "ab"})},
		{"broken UTF-8", "a\xffb\xc3", row(run{Text: "a"}, run{Text: "\ufffd", Class: "c"}, run{Text: "b"}, run{Text: "\ufffd", Class: "c"})},
		{"numbers without sense", "\x1b[38;5;256;38;2;1;2;300;999;99999999999mx", row(run{Text: "x"})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := render(tt.in); len(got) != 1 || !reflect.DeepEqual(got[0], tt.want) {
				t.Errorf("Render(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// The style goes on from line to line, as tmux writes it, also where a line was
// there before.
func TestRenderCarriesOn(t *testing.T) {
	var r live.Renderer
	for _, tt := range []struct{ in, want string }{
		{"\x1b[31ma\nb\n\x1b[0mc", "[[a f1] [b f1] [c ]]"},
		{"a\nb\n\x1b[0mc", "[[a ] [b ] [c ]]"},
		{"\x1b[32mz\n\x1b[31ma\nb\n\x1b[0mc", "[[z f2] [a f1] [b f1] [c ]]"},
	} {
		var got [][]string
		for _, row := range rows(&r, tt.in) {
			got = append(got, []string{row[0].Text, row[0].Class})
		}
		testworld.Equal(t, fmt.Sprint(got), tt.want, "Render(%q)", tt.in)
	}
}

// However much a pane holds, a row has an end, and so has their number.
func TestRenderBounds(t *testing.T) {
	for name, in := range map[string]string{
		"columns":     strings.Repeat("x", 1<<20),
		"wide":        strings.Repeat("漢", 1<<18),
		"rows":        strings.Repeat("\n", 1<<20),
		"marks":       "e" + strings.Repeat("\u0301", 1<<18),
		"joiners":     strings.Repeat("👨\u200d", 1<<16),
		"sequences":   strings.Repeat("\x1b[1;31m", 1<<17) + "x",
		"styles":      strings.Repeat("\x1b[31ma\x1b[32mb", 1<<16),
		"parameters":  "\x1b[" + strings.Repeat("1;", 1<<18) + "mx",
		"links":       strings.Repeat("\x1b]8;;https://a.example/"+strings.Repeat("x", 1900)+"\x1b\\y", 2000),
		"long link":   "\x1b]8;;https://a.example/" + strings.Repeat("x", 1<<20) + "\x1b\\y",
		"no end":      "\x1b]8;;" + strings.Repeat("x", 1<<20),
		"wide styles": strings.Repeat("\x1b[31m漢", 1<<16),
	} {
		rows := render(in)
		size := len(html1(rows))
		if len(rows) > 6000 || size > 4<<20 {
			t.Errorf("%s: %d bytes became %d rows with %d bytes", name, len(in), len(rows), size)
		}
	}
}

func html1(rows []live.Row) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(string(r.HTML()) + "\n")
	}
	return b.String()
}

// tag is all that a row's HTML may hold beside text.
var tag = regexp.MustCompile(`^<(?:/span|/a|(?:span|a)(?: (?:class="[a-z0-9 ]+"|data-[fb]g="#[0-9a-f]{6}"|href="https?://[^"<>]+"|target="_blank"|rel="noopener noreferrer nofollow"))*)>`)

// checkMarkup says what in a row's HTML is more than text and our own tags.
func checkMarkup(s string) error {
	for i := strings.IndexAny(s, "<>\"'"); i >= 0; i = strings.IndexAny(s, "<>\"'") {
		m := tag.FindString(s[i:])
		if m == "" {
			return fmt.Errorf("%.80q", s[i:])
		}
		s = s[i+len(m):]
	}
	return nil
}

// Row 34: what a pane shows is text in a page too.
func TestRow34Panes(t *testing.T) {
	for _, evil := range testworld.Files(t, "web") {
		for _, in := range []string{
			evil, "\x1b[31m" + evil, "\x1b]8;;" + evil + "\x1b\\x", "\x1b]8;;https://a.example/" + evil + "\x1b\\" + evil,
			"\x1b]8;" + evil + ";https://a.example\x1b\\x", "\x1b[" + evil + "mx", "\x1b]0;" + evil + "\ax", "漢" + evil + "漢",
		} {
			for _, row := range render(in) {
				testworld.Equal(t, checkMarkup(string(row.HTML())), nil, "Render(%q)", in)
			}
		}
		var want strings.Builder
		for _, row := range render(evil) {
			want.WriteString(plain(row))
			text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(row.HTML()), "")
			if html.UnescapeString(text) != plain(row) {
				t.Errorf("%q is shown as %q", plain(row), text)
			}
		}
	}
}

// Whatever a pane has shown, its row is our own markup.
func TestRenderCorpora(t *testing.T) {
	for _, dir := range []string{"escapes", "screens/claude", "screens/codex"} {
		for name, in := range testworld.Files(t, dir) {
			for _, row := range render(in) {
				testworld.Equal(t, checkMarkup(string(row.HTML())), nil, "%s/%s", dir, name)
			}
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, evil := range testworld.Files(f, "web") {
		f.Add(evil)
		f.Add("\x1b]8;;https://a.example/" + evil + "\x1b\\" + evil)
	}
	for _, in := range testworld.Files(f, "escapes") {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var r live.Renderer
		got := rows(&r, in)
		if again := rows(&r, in); !reflect.DeepEqual(got, again) {
			t.Fatalf("twice: %q, %q", got, again)
		}
		for _, row := range got {
			testworld.Must(t, checkMarkup(string(row.HTML())))
			data, err := json.Marshal(row)
			if err != nil || strings.ContainsAny(string(data), "<>&") {
				t.Fatalf("%s, %v", data, err)
			}
			for _, run := range row {
				for _, c := range run.Text {
					if c < ' ' || c >= 0x7f && c < 0xa0 || c == 0x202e {
						t.Fatalf("%q in %q", c, run.Text)
					}
				}
			}
			if len(data) > 64*(len(in)+64) {
				t.Fatalf("%d bytes became %d", len(in), len(data))
			}
		}
	})
}
