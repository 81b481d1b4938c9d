package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"netsky/dashboard"
	"netsky/internal/testworld"
	"netsky/work/diff"
	"netsky/work/record"
)

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want dashboard.Place
		ok   bool
	}{
		{"a.go:12", dashboard.Place{File: "a.go", Line: 12}, true},
		{"x:y/a.go:-3", dashboard.Place{File: "x:y/a.go", Line: 3, Old: true}, true},
		{"a.go", dashboard.Place{}, false},
		{"a.go:0", dashboard.Place{}, false},
		{"a.go:--1", dashboard.Place{}, false},
		{"a.go:-+1", dashboard.Place{}, false},
		{"a.go:", dashboard.Place{}, false},
		{":1", dashboard.Place{}, false},
		{"a.go:99999999999999999999", dashboard.Place{}, false},
	} {
		got, ok := dashboard.ParsePlace(tt.text)
		if got != tt.want || ok != tt.ok {
			t.Errorf("ParsePlace(%q) = %+v, %v", tt.text, got, ok)
		}
		if ok && got.String() != tt.text {
			t.Errorf("%q came back as %q", tt.text, got)
		}
	}
}

// file has one hunk of n lines that are added.
func file(path string, n int, text string) diff.File {
	f := diff.File{Path: path, Status: "added", OldMode: "000000", NewMode: "100644", Hunks: []diff.Hunk{{New: 1}}}
	for i := range n {
		f.Hunks[0].Lines = append(f.Hunks[0].Lines, diff.Line{Kind: "+", New: i + 1, Text: text})
	}
	return f
}

// rows are the lines of a table as text, with what is said at them.
func rows(f dashboard.File) string {
	var b strings.Builder
	for _, r := range f.Rows {
		if r.Head {
			fmt.Fprintf(&b, "@%s|", r.Section)
			continue
		}
		b.WriteString(r.Kind)
		for _, s := range r.Spans {
			b.WriteString(s.Text)
		}
		for _, k := range r.Remarks {
			b.WriteString("!" + k.ID)
		}
		if r.Ask != nil {
			b.WriteString("?")
		}
		b.WriteString("|")
	}
	for _, k := range f.Loose {
		b.WriteString("loose " + k.ID)
	}
	return b.String()
}

// A remark is at its line as long as that is the line it was made on, and never gets lost.
func TestRemarks(t *testing.T) {
	t.Parallel()
	f := diff.File{Path: "b.go", Old: "a.go", Status: "renamed", OldMode: "100644", NewMode: "100755", Hunks: []diff.Hunk{{Old: 4, New: 4, Section: "func\u202e x", Lines: []diff.Line{
		{Kind: " ", Old: 4, New: 4, Text: "one"}, {Kind: "-", Old: 5, Text: "two"}, {Kind: "+", New: 5, Text: "three\x1b"}, {Kind: "+", New: 6, Text: "four\r", NoEnd: true},
	}}}}
	at := dashboard.Place{File: "b.go", Line: 5}
	remarks := []record.Comment{
		{ID: "A", File: "a.go", Line: 5, Old: true, Excerpt: "4: one\n5: two"},
		{ID: "B", File: "b.go", Line: 6, Excerpt: "6: four"},
		{ID: "C", File: "b.go", Line: 5, Excerpt: "5: other"},
		{ID: "D", File: "b.go", Line: 99},
		{ID: "E", File: "c.go", Line: 1},
		{ID: "F", File: "a.go", Line: 4},
	}
	list := dashboard.Lay([]diff.File{f}, remarks, &at)
	const want = `@func\u202e x| one|-two!A|+three\x1b?|+four\x0d!B|loose Cloose D`
	testworld.Equal(t, rows(list[0]), want)
	testworld.Equal(t, strings.Join(list[0].Facts, ", "), "renamed from a.go, now executable", "facts")
	var others string
	for _, k := range dashboard.Elsewhere(list, remarks) {
		others += k.ID
	}
	testworld.Equal(t, others, "EF", "elsewhere")
}

// What would make the page too long is left out, unless it is asked for or is all there is.
func TestBounds(t *testing.T) {
	t.Parallel()
	files := []diff.File{file("a", 1400, "x"), file("b", 1600, "x"), file("c", 1400, "x"), file("d", 1400, "x"), file("e", 10, "x")}
	shown := func(list []dashboard.File) (s string) {
		for _, f := range list {
			if !f.Out {
				s += f.Path
			}
		}
		return s
	}
	testworld.Equal(t, shown(dashboard.Lay(files, nil, nil)), "ace", "shown")
	testworld.Contains(t, shown(dashboard.Lay(files, nil, &dashboard.Place{File: "b", Line: 3})), "b", "the one that is commented on")
	if got := dashboard.Lay(files[1:2], nil, nil)[0]; len(got.Rows) != 1600 {
		t.Errorf("alone: %d rows", len(got.Rows))
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f    diff.File
		want string
	}{
		{diff.File{Status: "added", OldMode: "000000", NewMode: "100644"}, "empty"},
		{diff.File{Status: "added", OldMode: "000000", NewMode: "120000", Hunks: file("", 1, "x").Hunks}, "a new link"},
		{diff.File{Status: "deleted", OldMode: "160000", NewMode: "000000", Hunks: file("", 1, "x").Hunks}, "the submodule is gone"},
		{diff.File{Status: "modified", OldMode: "100755", NewMode: "100644"}, "no longer executable"},
		{diff.File{Status: "type", OldMode: "100644", NewMode: "120000"}, "was a file, is a link"},
		{diff.File{Status: "modified", OldMode: "100644", NewMode: "100644", Binary: true}, "binary: not shown"},
		{diff.File{Status: "modified", OldMode: "100644", NewMode: "100644", Cut: true}, "not all of it is shown"},
		{diff.File{Status: "copied", Old: "x\u202ey", OldMode: "100644", NewMode: "100644"}, `copied from x\u202ey`},
	} {
		testworld.Equal(t, strings.Join(dashboard.Lay([]diff.File{tt.f}, nil, nil)[0].Facts, ", "), tt.want, "%+v", tt.f)
	}
}

func FuzzLay(f *testing.F) {
	f.Add("a.go", "/* x\n\x1b \u202e */", "b:-1")
	f.Fuzz(func(t *testing.T, path, text, at string) {
		var lines []diff.Line
		for i, line := range strings.Split(text, "\n") {
			lines = append(lines, diff.Line{Kind: "+", New: i + 1, Text: line})
		}
		var place *dashboard.Place
		if p, ok := dashboard.ParsePlace(at); ok {
			if again, _ := dashboard.ParsePlace(p.String()); again != p {
				t.Errorf("%+v came back as %+v", p, again)
			}
			place = &p
		}
		d := diff.File{Path: path, Status: "modified", Hunks: []diff.Hunk{{New: 1, Lines: lines}}}
		for _, r := range dashboard.Lay([]diff.File{d}, nil, place)[0].Rows {
			for _, s := range r.Spans {
				for _, c := range s.Text {
					if unicode.IsControl(c) && c != '\t' || unicode.Is(unicode.Bidi_Control, c) {
						t.Errorf("%q holds %U", s.Text, c)
					}
				}
			}
		}
	})
}
