package land_test

import (
	"strings"
	"testing"

	"netsky/work/land"
)

// FuzzParse gives what reads git's answer about a merge, which holds names and text of an agent's, any
// text.
func FuzzParse(f *testing.F) {
	const ours, theirs = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	f.Add("a.txt\x00b\x00\x001\x00a.txt\x00CONFLICT (contents)\x00CONFLICT (content): in a.txt\n\x002\x00b\x00c\x00x\x00CONFLICT (rename): b\n\x00")
	f.Add("a\x00\x0099999999999999999999\x00a\x00")
	f.Add("a\x00\x00-1\x00a\x00")
	f.Add("x\n<<<<<<< " + ours + "\n1\n=======\n2\n>>>>>>> " + theirs + "\n<<<<<<< " + ours + "\n=======\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range land.ParseConflicts(text) {
			if k.File == "" || !strings.Contains(text, k.File) || k.Said != "" && !strings.HasPrefix(k.Said, "CONFLICT") {
				t.Errorf("%+v", k)
			}
			_ = k.String()
		}
		last, lines := 0, strings.Count(text, "\n")+2
		for _, h := range land.Hunks(text, ours, theirs) {
			if h.Line <= 0 || h.Line < last || h.Lines < 0 || h.Line+h.Lines > lines {
				t.Errorf("%+v after line %d of %d", h, last, lines)
			}
			last = h.Line + h.Lines
		}
	})
}
