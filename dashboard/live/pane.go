package live

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"netsky/agent"
)

// A frame is a value: one capture of a pane.
type frame struct {
	number int // counts the frames of one watched pane
	head   paneHead
	lines  []*Line

	onceDelta, onceFull sync.Once
	delta               []byte // from the frame before; nil if the whole frame is better
	full                []byte
}

// failure is the frame that shows an error.
func failure(id agent.ID, err error) *frame {
	return &frame{head: paneHead{Agent: id, CursorY: -1, Error: err.Error()}}
}

// follow numbers the frame, and reports whether it differs from the last.
func (f *frame) follow(last *frame) bool {
	if last == nil {
		return true
	}
	f.number = last.number + 1
	return f.head != last.head || !slices.Equal(f.lines, last.lines)
}

// A paneHead is a pane's event without its rows: all of them as "rows", or how they
// differ from the event before: "moved" has [to, from, how many] for rows that were
// elsewhere then, and "changed" has the new ones, by their number. With an error there
// are none.
type paneHead struct {
	Agent   agent.ID `json:"agent"`
	Width   int      `json:"width"`
	Height  int      `json:"height"`
	CursorX int      `json:"cursor_x"`
	CursorY int      `json:"cursor_y"`
	Error   string   `json:"error,omitempty"`
}

func (f *frame) base() value     { return f }
func (f *frame) version() string { return "" }

// encode encodes the frame once for all browsers that have had no frame, and once for
// those that have had the one before.
func (f *frame) encode(had value) []byte {
	base, _ := had.(*frame)
	var delta []byte
	switch {
	case base == nil:
	case base.number == f.number-1:
		f.onceDelta.Do(func() { f.delta = f.changes(base) })
		delta = f.delta
	default:
		delta = f.changes(base)
	}
	if delta != nil {
		return delta
	}
	f.onceFull.Do(func() { f.full = f.whole() })
	return f.full
}

func (f *frame) begin(field string) *bytes.Buffer {
	head, _ := json.Marshal(f.head) // words and numbers
	var b bytes.Buffer
	b.Write(head[:len(head)-1])
	b.WriteString(`,"` + field + `":`)
	return &b
}

func (f *frame) whole() []byte {
	b := f.begin("rows")
	for i, l := range f.lines {
		b.WriteByte("[,"[min(i, 1)])
		b.Write(l.JSON)
	}
	if len(f.lines) == 0 {
		b.WriteByte('[')
	}
	b.WriteString("]}")
	return b.Bytes()
}

// changes returns the rows that differ from base, or nil if the whole frame is better.
func (f *frame) changes(base *frame) []byte {
	if len(f.lines) != len(base.lines) || f.head.Width != base.head.Width || f.head.Height != base.head.Height ||
		f.head.Error != base.head.Error {
		return nil
	}
	moved := f.moved(base)
	b := f.begin("changed")
	if len(moved) > 0 {
		b = f.begin("moved")
		list, _ := json.Marshal(moved)
		b.Write(list)
		b.WriteString(`,"changed":`)
	}
	b.WriteByte('{')
	for i, l := range f.lines {
		if l == base.lines[i] {
			continue
		}
		if len(moved) > 0 && moved[0][0] == i {
			moved[0][0]++
			if moved[0][2]--; moved[0][2] == 0 {
				moved = moved[1:]
			}
			continue
		}
		if b.Bytes()[b.Len()-1] != '{' {
			b.WriteByte(',')
		}
		b.WriteString(`"` + strconv.Itoa(i) + `":`)
		b.Write(l.JSON)
	}
	b.WriteString("}}")
	return b.Bytes()
}

// moved returns the rows that base has elsewhere, as [to, from, how many].
func (f *frame) moved(base *frame) (list [][3]int) {
	var from map[*Line]int
	looked := 0
	for i, l := range f.lines {
		if l == base.lines[i] {
			continue
		}
		var j int
		var ok bool
		if looked++; looked <= 8 { // usually few have changed, and those are new
			j = slices.Index(base.lines, l)
			ok = j >= 0
		} else {
			if from == nil {
				from = make(map[*Line]int, len(base.lines))
				for j, l := range base.lines {
					from[l] = j
				}
			}
			j, ok = from[l]
		}
		if n := len(list) - 1; ok && n >= 0 && list[n][0]+list[n][2] == i && list[n][1]+list[n][2] == j {
			list[n][2]++
		} else if ok {
			list = append(list, [3]int{i, j, 1})
		}
	}
	return list
}

// A watched pane is a pane that at least one browser watches.
type watched struct {
	id     agent.ID
	key    string
	end    context.CancelFunc
	failed chan error // room for one: why it could not be captured

	eyes    int  // browsers
	stirred bool // it may have changed since its latest frame

	r *Renderer // used by the rounds only
}
