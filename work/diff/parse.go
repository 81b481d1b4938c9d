package diff

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// A File is what has changed in one file.
type File struct {
	Path   string `json:"path"`
	Old    string `json:"old,omitempty"` // its path before, if it was another
	Status string `json:"status"`        // added, deleted, modified, renamed, copied, type
	// OldMode and NewMode are as git writes them: 100644, 100755, 120000 for a link, 160000 for a
	// submodule, 000000 for none.
	OldMode string `json:"old_mode"`
	NewMode string `json:"new_mode"`
	Binary  bool   `json:"binary,omitempty"`
	Added   int    `json:"added"` // lines, of those in Hunks
	Removed int    `json:"removed"`
	Hunks   []Hunk `json:"hunks"`
	Cut     bool   `json:"cut,omitempty"` // there is more than Hunks has
}

// A Hunk is lines that belong together.
type Hunk struct {
	Old     int    `json:"old"` // its first line, before and now
	New     int    `json:"new"`
	Section string `json:"section,omitempty"` // what git says it is in
	Lines   []Line `json:"lines"`
}

// A Line is one line of a hunk.
type Line struct {
	Kind  string `json:"kind"`          // " ", "+" or "-"
	Old   int    `json:"old,omitempty"` // its number, before and now; 0 if it is not there
	New   int    `json:"new,omitempty"`
	Text  string `json:"text"`
	NoEnd bool   `json:"no_end,omitempty"` // no line break follows
}

// Bounds of what is read.
const (
	maxRead  = 16 << 20
	maxFiles = 2000
	maxLines = 5000 // of one file
)

// Files reads the change. more reports that there are more files than were read.
func (c *Change) Files(ctx context.Context, paths ...string) (list []File, more bool, err error) {
	args := append([]string{
		"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--submodule=short", "--ignore-submodules=none", "--src-prefix=a/", "--dst-prefix=b/",
		"--unified=3", "--inter-hunk-context=0", "--find-renames", "--diff-algorithm=histogram", "--full-index", "--output-indicator-new=+", "--output-indicator-old=-",
		"--output-indicator-context= ", "--patch-with-raw", "-z", c.Base, c.Tree, "--",
	}, paths...)
	most := cmp.Or(c.Most, maxRead)
	out, err := c.git().Run(ctx, most, args...)
	if err != nil {
		return nil, false, fmt.Errorf("git diff: %w", err)
	}
	list, more = Parse(out)
	return list, more || len(out) >= most, nil
}

var words = map[byte]string{'A': "added", 'D': "deleted", 'M': "modified", 'R': "renamed", 'C': "copied", 'T': "type"}

// Parse reads what `git diff --patch-with-raw -z` prints: an entry for each file, each part ended by a NUL, an empty one, and then the
// patches in the same order.
func Parse(out string) (list []File, more bool) {
	list = []File{}
	for strings.HasPrefix(out, ":") {
		var info, path string
		var ok bool
		if info, out, ok = strings.Cut(out, "\x00"); !ok {
			return list, true
		}
		parts := strings.Fields(info)
		if path, out, ok = strings.Cut(out, "\x00"); !ok || len(parts) < 5 || parts[4] == "" {
			return list, true
		}
		f := File{Path: valid(path), Status: words[parts[4][0]], OldMode: strings.TrimPrefix(parts[0], ":"), NewMode: parts[1], Hunks: []Hunk{}}
		if f.Status == "renamed" || f.Status == "copied" {
			f.Old = f.Path
			if path, out, ok = strings.Cut(out, "\x00"); !ok {
				return list, true
			}
			f.Path = valid(path)
		}
		if more = len(list) == maxFiles; !more {
			list = append(list, f)
		}
	}
	p := patch{rest: strings.TrimPrefix(out, "\x00")}
	for i := range list {
		patches := 1
		if list[i].Status == "type" { // git removes it and adds it again
			patches = 2
		}
		for range patches {
			p.file(&list[i])
		}
	}
	return list, more
}

func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// A patch is what is left of the text that git prints.
type patch struct{ rest string }

func (p *patch) line() (line string, ok bool) {
	if p.rest == "" {
		return "", false
	}
	line, p.rest, _ = strings.Cut(p.rest, "\n")
	return line, true
}

const fileStart = "diff --git "

// file reads the patch of one file into it.
func (p *patch) file(f *File) {
	if !strings.HasPrefix(p.rest, fileStart) {
		f.Cut = f.Cut || p.rest == "" // else the file has no patch
		return
	}
	p.line()
	lines := 0
	for _, h := range f.Hunks {
		lines += len(h.Lines)
	}
	for p.rest != "" && !strings.HasPrefix(p.rest, fileStart) {
		line, _ := p.line()
		switch {
		case strings.HasPrefix(line, "@@ "):
			p.hunk(f, line, &lines)
		case strings.HasPrefix(line, "Binary files "):
			f.Binary = true
		}
	}
}

// hunk reads one hunk. It counts lines, as their text may be anything.
func (p *patch) hunk(f *File, head string, lines *int) {
	var h Hunk
	olds, news, ok := h.head(head)
	if !ok {
		f.Cut = true
		return
	}
	h.Lines = []Line{}
	o, n := h.Old, h.New
	for olds > 0 || news > 0 {
		text, ok := p.line()
		if !ok {
			f.Cut = true
			break
		}
		if text == "" { // git can be told to write an empty line of both sides so
			text = " "
		}
		l := Line{Kind: text[:1], Text: cut(text[1:])}
		switch l.Kind {
		case " ":
			l.Old, l.New, olds, news = o, n, olds-1, news-1
			o, n = o+1, n+1
		case "-":
			l.Old, olds = o, olds-1
			f.Removed++
			o++
		case "+":
			l.New, news = n, news-1
			f.Added++
			n++
		case "\\":
			h.noEnd()
			continue
		default:
			f.Cut = true
			return
		}
		if *lines++; *lines > maxLines {
			f.Cut = true
			continue
		}
		h.Lines = append(h.Lines, l)
	}
	if strings.HasPrefix(p.rest, "\\") {
		p.line()
		h.noEnd()
	}
	if len(h.Lines) > 0 {
		f.Hunks = append(f.Hunks, h)
	}
}

func (h *Hunk) noEnd() {
	if n := len(h.Lines); n > 0 {
		h.Lines[n-1].NoEnd = true
	}
}

// head reads "@@ -1,2 +3,4 @@ section".
func (h *Hunk) head(line string) (olds, news int, ok bool) {
	body, section, ok := strings.Cut(strings.TrimPrefix(line, "@@ "), " @@")
	a, b, both := strings.Cut(body, " ")
	if !ok || !both {
		return 0, 0, false
	}
	h.Section = cut(strings.TrimPrefix(section, " "))
	var ok1, ok2 bool
	h.Old, olds, ok1 = span(a, "-")
	h.New, news, ok2 = span(b, "+")
	return olds, news, ok1 && ok2
}

// span reads "-1,2", or "-1" for one line.
func span(s, sign string) (first, n int, ok bool) {
	a, b, more := strings.Cut(strings.TrimPrefix(s, sign), ",")
	first, err := strconv.Atoi(a)
	n = 1
	if err == nil && more {
		n, err = strconv.Atoi(b)
	}
	return first, n, err == nil && strings.HasPrefix(s, sign) && first >= 0 && n >= 0
}
