// This file lays out what an agent has changed as tables, one for each file, with the remarks on
// it at their lines.
//
// All that it returns is text that is safe to show: what could hide, reorder or imitate is written as
// an escape, as envelope.Plain does. The layout is bounded: files beyond the bound have no rows, and
// say so. It keeps no state, so a crash leaves nothing.

package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netsky/bus/envelope"
	"netsky/work/diff"
	"netsky/work/record"
)

// A Place is a line of a file, as it is now or as it was.
type Place struct {
	File string
	Line int
	Old  bool
}

// ParsePlace parses FILE:LINE, or FILE:-LINE for the line as it was.
func ParsePlace(s string) (p Place, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 1 {
		return p, false
	}
	number, old := strings.CutPrefix(s[i+1:], "-")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || number[0] == '+' {
		return p, false
	}
	return Place{s[:i], n, old}, true
}

// String is the inverse of ParsePlace.
func (p Place) String() string { return p.File + ":" + p.Side() }

// Side is the line's number, with a minus for the line as it was.
func (p Place) Side() string {
	if p.Old {
		return "-" + strconv.Itoa(p.Line)
	}
	return strconv.Itoa(p.Line)
}

// placeOf returns where a remark is.
func placeOf(k record.Comment) Place { return Place{k.File, k.Line, k.Old} }

// A File is one file's changes.
type File struct {
	diff.File
	Anchor string   // the id of its part of the page
	Facts  []string // what has changed beside lines, and what is not shown
	Rows   []Row
	Out    bool             // its lines are left out
	Loose  []record.Comment // remarks on lines that are not shown
}

// Asks reports whether a row of the file has the form for a comment.
func (f File) Asks() bool {
	return slices.ContainsFunc(f.Rows, func(r Row) bool { return r.Ask != nil })
}

// Anchor is the id of a file's part of the page.
func Anchor(path string) string {
	sum := sha256.Sum256([]byte(path))
	return "f-" + hex.EncodeToString(sum[:6])
}

// A Row is one line of the table: the head of a hunk, or a line of a file.
type Row struct {
	Head    bool
	Section string // what the hunk is in, if the row is its head
	Kind    string // " ", "+" or "-"
	Old     int
	New     int
	Spans   []Span
	NoEnd   bool // no line break follows
	Remarks []record.Comment
	Ask     *Place // a remark is being written here
}

// A Span is a part of a line; Class is that of its color, "" for none.
type Span struct{ Class, Text string }

// Bounds of a page.
const (
	MaxRows = 4000 // of all files
	maxFile = 1500 // of one, if there are others
)

// Elsewhere returns the remarks that are on none of the files.
func Elsewhere(files []File, remarks []record.Comment) (list []record.Comment) {
	for _, k := range remarks {
		if !slices.ContainsFunc(files, func(f File) bool { return f.holds(placeOf(k)) }) {
			list = append(list, k)
		}
	}
	return list
}

// Lay lays out the files. at is where a remark is being written, if it is anywhere.
func Lay(files []diff.File, remarks []record.Comment, at *Place) []File {
	left := MaxRows
	list := make([]File, len(files))
	for i, d := range files {
		f := File{File: d, Anchor: Anchor(d.Path), Facts: facts(d)}
		n := 0
		for _, h := range d.Hunks {
			n += 1 + len(h.Lines)
		}
		asked := at != nil && f.holds(*at)
		if f.Out = len(files) > 1 && !asked && (n > left || n > maxFile); !f.Out {
			left -= n
			f.lay(remarks, at)
		}
		for _, k := range remarks {
			if f.holds(placeOf(k)) && !f.shows(k.ID) {
				f.Loose = append(f.Loose, k)
			}
		}
		list[i] = f
	}
	return list
}

// holds reports whether a place is in the file.
func (f *File) holds(p Place) bool {
	return !p.Old && p.File == f.Path || p.Old && p.File == f.Before()
}

// shows reports whether a row shows the remark.
func (f *File) shows(id string) bool {
	return slices.ContainsFunc(f.Rows, func(r Row) bool {
		return slices.ContainsFunc(r.Remarks, func(k record.Comment) bool { return k.ID == id })
	})
}

// lay makes the file's rows.
func (f *File) lay(remarks []record.Comment, at *Place) {
	was, now := For(f.Old), For(f.Path)
	if f.Old == "" {
		was = For(f.Path)
	}
	ends := crlf(f.Hunks)
	for _, h := range f.Hunks {
		if h.Old > 1 || h.New > 1 {
			f.Rows = append(f.Rows, Row{Head: true, Section: envelope.Plain(h.Section), Old: h.Old, New: h.New})
		}
		for _, l := range h.Lines {
			if ends {
				l.Text = strings.TrimSuffix(l.Text, "\r")
			}
			r := Row{Kind: l.Kind, Old: l.Old, New: l.New, NoEnd: l.NoEnd}
			switch l.Kind {
			case "-":
				r.Spans = spans(was.Line(l.Text))
			case "+":
				r.Spans = spans(now.Line(l.Text))
			default:
				was.Line(l.Text)
				r.Spans = spans(now.Line(l.Text))
			}
			for _, p := range f.places(l) {
				for _, k := range remarks {
					if placeOf(k) == p && about(k, l.Text) {
						r.Remarks = append(r.Remarks, k)
					}
				}
				if at != nil && *at == p {
					r.Ask = at
				}
			}
			f.Rows = append(f.Rows, r)
		}
	}
}

// places are those of a line: as it was, and as it is now.
func (f *File) places(l diff.Line) (list []Place) {
	if l.Old > 0 {
		list = append(list, Place{f.Before(), l.Old, true})
	}
	if l.New > 0 {
		list = append(list, Place{f.Path, l.New, false})
	}
	return list
}

// Before is the path that the file had.
func (f File) Before() string {
	if f.Old != "" {
		return f.Old
	}
	return f.Path
}

// about reports whether the line is still the one that the remark was made on, by the last line of its
// excerpt.
func about(k record.Comment, line string) bool {
	last := k.Excerpt[strings.LastIndexByte(k.Excerpt, '\n')+1:]
	was, ok := strings.CutPrefix(last, strconv.Itoa(k.Line)+": ")
	return k.Excerpt == "" || ok && was == strings.TrimSuffix(line, "\r")
}

// crlf reports whether all lines end with a carriage return: then none shows it.
func crlf(hunks []diff.Hunk) bool {
	for _, h := range hunks {
		for _, l := range h.Lines {
			if !strings.HasSuffix(l.Text, "\r") && !l.NoEnd {
				return false
			}
		}
	}
	return true
}

var classes = map[Kind]string{Comment: "sc", String: "ss", Number: "sn", Keyword: "sk"}

func spans(list []Colored) []Span {
	out := make([]Span, len(list))
	for i, s := range list {
		out[i] = Span{classes[s.Kind], envelope.Plain(s.Text)}
	}
	return out
}

// facts are what has changed beside lines.
func facts(d diff.File) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if d.Old != "" {
		add("%s from %s", d.Status, envelope.Plain(d.Old))
	}
	was, now := mode(d.OldMode), mode(d.NewMode)
	switch {
	case d.OldMode == none && now != "file":
		add("a new %s", now)
	case d.NewMode == none && was != "file":
		add("the %s is gone", was)
	case was == "file" && now == program:
		add("now executable")
	case was == program && now == "file":
		add("no longer executable")
	case d.OldMode != none && d.NewMode != none && d.OldMode != d.NewMode:
		add("was a %s, is a %s", was, now)
	}
	switch {
	case d.Binary:
		add("binary: not shown")
	case d.Cut:
		add("not all of it is shown")
	case len(d.Hunks) == 0 && (d.Status == "added" || d.Status == "deleted"):
		add("empty")
	}
	return list
}

const (
	none    = "000000"
	program = "program"
)

func mode(m string) string {
	switch m {
	case "100644":
		return "file"
	case "100755":
		return program
	case "120000":
		return "link"
	case "160000":
		return "submodule"
	}
	return "file of mode " + m
}
