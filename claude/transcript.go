package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"netsky/agent"
)

// A Turn is what a conversation's file holds of its last turn.
type Turn struct {
	Text  string // the last text of the model
	Usage agent.Usage
}

// maxTurn is how much of a conversation's file, from its end, is read for a turn, in
// bytes. For a longer turn the usage covers its later part.
const maxTurn = 64 << 20

// ReadTurn reads the last turn from the end of a conversation's file. The turn's number,
// as in hooks, separates turns; "" takes everything since the last prompt.
func ReadTurn(transcript, number string) (Turn, error) {
	w := turnWalk{number: number, counted: make(map[string]bool)}
	if err := backwards(transcript, maxTurn, w.line); err != nil {
		return Turn{}, err
	}
	w.commit()
	return w.turn, nil
}

// endsWith reports whether the file holds the turn to its end, which is this text.
func (t Turn) endsWith(text string) bool {
	return t.Usage.Requests > 0 && t.Text != "" && strings.HasSuffix(squash(text), squash(t.Text))
}

// Holds reports whether the model has been given the envelope: its rendering is in the
// conversation's file. What was only queued does not count.
func Holds(transcript, envelopeID string) bool {
	if envelopeID == "" {
		return false
	}
	found := false
	err := backwards(transcript, 1<<40, func(line []byte) bool {
		if shows(line, envelopeID) {
			var e struct{ Type string }
			found = json.Unmarshal(line, &e) == nil && (e.Type == "user" || e.Type == "attachment")
		}
		return !found
	})
	return err == nil && found
}

// shows reports whether a line contains the rendering of an envelope, which says so if the
// envelope has waited for long.
func shows(line []byte, envelopeID string) bool {
	mark := []byte(` id=\"` + envelopeID + `\"`)
	for {
		_, rest, found := bytes.Cut(line, mark)
		if !found || bytes.HasPrefix(rest, []byte(">")) || bytes.HasPrefix(rest, []byte(` waited=\"`)) {
			return found
		}
		line = rest
	}
}

// An entry is a line of a conversation's file, reduced to what is used.
type entry struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	Number    string `json:"promptId"`
	Sidechain bool   `json:"isSidechain"`
	Summary   bool   `json:"isCompactSummary"`
	Repeat    bool   `json:"repeatsCompactSummary"`
	Failure   bool   `json:"isApiErrorMessage"`
	Origin    *struct {
		Kind string `json:"kind"`
	} `json:"origin"`
	Meta bool `json:"isMeta"`
	FaultRecord
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Stop    string          `json:"stop_reason"`
		Content json.RawMessage `json:"content"`
		Usage   *struct {
			Input      int64 `json:"input_tokens"`
			CacheRead  int64 `json:"cache_read_input_tokens"`
			CacheWrite int64 `json:"cache_creation_input_tokens"`
			Output     int64 `json:"output_tokens"`
		} `json:"usage"`
	} `json:"message"`
}

// A turnWalk goes back through a conversation. What the model said counts once a prompt of
// the turn is found before it.
type turnWalk struct {
	number  string
	turn    Turn
	pending agent.Usage
	text    string // of pending
	counted map[string]bool
	own     bool // a prompt of the turn was found
}

var (
	assistantMark  = []byte(`"type":"assistant"`)
	userMark       = []byte(`"type":"user"`)
	systemMark     = []byte(`"type":"system"`)
	toolResultMark = []byte(`"type":"tool_result"`)
)

// line takes the line before the last one; false ends the walk.
func (w *turnWalk) line(data []byte) bool {
	assistant := bytes.Contains(data, assistantMark)
	user := bytes.Contains(data, userMark) && !bytes.Contains(data, toolResultMark)
	if !assistant && !user {
		return true
	}
	var e entry
	if json.Unmarshal(data, &e) != nil || e.Sidechain {
		return true
	}
	switch {
	case e.Type == "assistant":
		w.said(e)
	case e.Type == "user" && e.prompts():
		if w.number != "" && e.Number == w.number {
			w.commit()
			w.own = true
			return true
		}
		if !w.own { // a file without numbers, or prompts taken together
			w.commit()
		}
		w.pending, w.text = agent.Usage{}, ""
		return false
	}
	return true
}

// said counts the usage of one request. It is in a line for each of its blocks, under one
// id.
func (w *turnWalk) said(e entry) {
	if text := Text(e.Message.Content); text != "" && w.text == "" {
		w.text = text
	}
	u := e.Message.Usage
	if u == nil || e.Failure || w.counted[e.Message.ID] {
		return
	}
	w.counted[e.Message.ID] = true
	p := &w.pending
	if p.Requests == 0 {
		p.ContextNow = u.Input + u.CacheRead + u.CacheWrite + u.Output
	}
	p.Requests++
	p.Input += u.Input
	p.CacheRead += u.CacheRead
	p.CacheWrite += u.CacheWrite
	p.Output += u.Output
}

// commit counts what is pending.
func (w *turnWalk) commit() {
	t, p := &w.turn.Usage, w.pending
	if t.Requests == 0 {
		t.ContextNow = p.ContextNow
	}
	t.Requests += p.Requests
	t.Input += p.Input
	t.CacheRead += p.CacheRead
	t.CacheWrite += p.CacheWrite
	t.Output += p.Output
	if w.turn.Text == "" {
		w.turn.Text = w.text
	}
	w.pending, w.text = agent.Usage{}, ""
}

// prompts reports whether a user's entry gave the model something to do: typed, or another
// session's message. Claude Code also records what it did itself.
func (e entry) prompts() bool {
	if e.Summary || e.Repeat || e.Meta && e.Origin == nil {
		return false
	}
	text := Text(e.Message.Content)
	for _, own := range []string{"<local-command-", "<command-name>", "[Request interrupted"} {
		if strings.HasPrefix(text, own) {
			return false
		}
	}
	return true
}

const (
	chunk   = 256 << 10
	maxLine = 32 << 20 // longer lines are skipped
)

// backwards calls fn with the whole lines of a file, last first, until fn returns false or
// limit bytes have been read. The slice is only valid during the call.
func backwards(file string, limit int64, fn func(line []byte) bool) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	first := max(at-limit, 0)
	var parts [][]byte // of the line whose beginning is still unread, the last part first
	size := 0
	flush := func(head []byte) bool {
		whole := head
		if len(parts) > 0 {
			whole = make([]byte, 0, len(head)+size)
			whole = append(whole, head...)
			for i := len(parts) - 1; i >= 0; i-- {
				whole = append(whole, parts[i]...)
			}
		}
		skip := size > maxLine
		parts, size = nil, 0
		return skip || len(bytes.TrimSpace(whole)) == 0 || fn(whole)
	}
	for at > first {
		n := min(chunk, at-first)
		at -= n
		buf := make([]byte, n)
		if _, err := f.ReadAt(buf, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for {
			i := bytes.LastIndexByte(buf, '\n')
			if i < 0 {
				break
			}
			if !flush(buf[i+1:]) {
				return nil
			}
			buf = buf[:i]
		}
		if size += len(buf); size <= maxLine {
			parts = append(parts, buf)
		} else {
			parts = nil
		}
	}
	if first == 0 {
		flush(nil)
	}
	return nil
}
