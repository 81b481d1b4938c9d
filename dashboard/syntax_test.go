package dashboard_test

import (
	"strings"
	"testing"

	"netsky/dashboard"
	"netsky/internal/testworld"
)

// marked renders a line's spans, each that is colored in brackets with the first letter of its kind.
func marked(spans []dashboard.Colored) string {
	var b strings.Builder
	for _, s := range spans {
		if s.Kind == dashboard.Plain {
			b.WriteString(s.Text)
			continue
		}
		b.WriteString("[" + "pcsnk"[s.Kind:s.Kind+1] + ":" + s.Text + "]")
	}
	return b.String()
}

func TestLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file string
		text string
		want string
	}{
		{"a.go", `func a(x int) { return "y\"" + 0x1F } // z`, `[k:func] a(x int) { [k:return] [s:"y\""] + [n:0x1F] } [c:// z]`},
		{"a.go", "x := `a\n// b\\` + 1", "x := [s:`a]\n[s:// b\\`] + [n:1]"},
		{"A.GO", "/* a\nb */ if", "[c:/* a]\n[c:b */] [k:if]"},
		{"a.go", "a := \"open\nb := 1", "a := [s:\"open]\nb := [n:1]"},
		{"x/b.py", "def f(): # it's\n  '''a\n  b''' + 'c'", "[k:def] f(): [c:# it's]\n  [s:'''a]\n[s:  b'''] + [s:'c']"},
		{"b.sh", `echo $x# "it's" # end`, `echo $x# [s:"it's"] [c:# end]`},
		{"q.sql", "SELECT a FROM b -- x", "[k:SELECT] a [k:FROM] b [c:-- x]"},
		{"p.html", `<a href="x"><!-- y`, `<a href=[s:"x"]>[c:<!-- y]`},
		{"Makefile", "a: b # c", "a: b [c:# c]"},
		{"notes.txt", `if "a" // b`, `if "a" // b`},
		{"README", "", ""},
		{"l.rs", "let l: &'static str = 1.5;", "[k:let] l: &[s:'static str = 1.5;]"},
		{"é.go", "größe := nil", "größe := [k:nil]"},
	} {
		s := dashboard.For(tt.file)
		var got []string
		for line := range strings.SplitSeq(tt.text, "\n") {
			got = append(got, marked(s.Line(line)))
		}
		testworld.Equal(t, strings.Join(got, "\n"), tt.want, "%s", tt.file)
	}
	s := dashboard.For("a.go")
	if got := s.Line(strings.Repeat("1", 2001)); len(got) != 1 || got[0].Kind != dashboard.Plain {
		t.Errorf("a line of 2001 bytes has %d spans", len(got))
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a.go", "/* a\n\"b\" */ c")
	f.Add("b.py", "\"\"\"\xff\n\\")
	f.Add("c.html", "<!---->\"")
	f.Fuzz(func(t *testing.T, file, text string) {
		s := dashboard.For(file)
		for line := range strings.SplitSeq(text, "\n") {
			var b strings.Builder
			for _, span := range s.Line(line) {
				if span.Text == "" {
					t.Errorf("an empty span in %q", line)
				}
				b.WriteString(span.Text)
			}
			testworld.Equal(t, b.String(), line, "the spans of %q are", line)
		}
	})
}
