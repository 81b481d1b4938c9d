package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"netsky/internal/proc"
)

// An Approval is an agent's question whether it may do something.
type Approval struct {
	Code    string       `json:"code"` // five letters
	Agent   ID           `json:"agent"`
	Start   string       `json:"start"`
	Tool    string       `json:"tool"`
	Text    string       `json:"text"`              // what it is about, with its line breaks: the command, the path, the plan
	Subject string       `json:"subject,omitempty"` // the name of the argument that the text is, if it has one
	Fields  []Field      `json:"fields,omitempty"`  // the other arguments of the call
	Missing int          `json:"missing,omitempty"` // bytes of it that were too many to keep: it can't be allowed by netsky
	Only    string       `json:"only,omitempty"`    // why netsky can't answer it; "" if it can
	Reason  string       `json:"reason,omitempty"`  // the model's own words
	Dir     string       `json:"dir,omitempty"`     // where it would run
	AskedMS int64        `json:"asked_ms"`
	Asker   proc.Process `json:"asker"`             // the process waiting for the answer
	Message string       `json:"message,omitempty"` // id of the message in whose turn it is asked, if known
	Mail    string       `json:"mail,omitempty"`    // file name of the envelope that notified the owner, in the owner's mailbox
}

// MailID returns the id of the envelope that notifies the owner.
func (a Approval) MailID() string { return "approval-" + a.Code + "-" + a.Start }

// ErrAtPane is returned for an answer to a question that only its pane can take.
var ErrAtPane = errors.New("it can be answered only in its pane")

// ErrUntaken is returned for an answer that is recorded, and that the agent's program has
// not confirmed.
var ErrUntaken = errors.New("the answer is recorded, but its program has not confirmed it")

// An Answer is the owner's answer to an Approval, and where it was given.
type Answer struct {
	Allow bool   `json:"allow"`
	By    string `json:"by,omitempty"` // "netsky approve"
	ID    string `json:"id,omitempty"` // tells it from another of the same words
}

// An Outcome is how a question was settled, as its asker found out.
type Outcome struct {
	Agent  ID       `json:"agent"`
	Start  string   `json:"start"`
	How    string   `json:"how"`             // "allowed", "denied", "answered in the pane", …
	Answer Answer   `json:"answer,omitzero"` // the one that settled it, if one did
	Of     Approval `json:"of"`              // without its text
	MS     int64    `json:"ms"`
	// Proof is where the program itself records that it has taken the answer. Nil: the asker
	// has seen that already.
	Proof *Proof `json:"proof,omitempty"`
}

// A Proof is a line that a program adds to a file of its own.
type Proof struct {
	File  string   `json:"file"`
	Taken []string `json:"taken"` // a line that has all of these: it took the answer
	Past  []string `json:"past"`  // one that has all of these, and none before that: it did not
	// Asking is another file of its, which has these words while it still asks: once it does
	// not, and nothing else is known, the answer was taken. "" if that proves nothing.
	Asking string   `json:"asking,omitempty"`
	Asks   []string `json:"asks,omitempty"`
}

// maxProof is how much of the end of the file is searched, in bytes.
const maxProof = 4 << 20

// Find searches the file. known is false if it does not say yet. settled means that the
// program has had the time to note in Asking that it asks no more.
func (p Proof) Find(settled bool) (taken, known bool) {
	for line := range bytes.Lines(fileEnd(p.File)) {
		switch {
		case holds(line, p.Taken):
			return true, true
		case holds(line, p.Past):
			known = true
		}
	}
	if !known && settled && p.Asking != "" {
		asking := fileEnd(p.Asking)
		taken = len(asking) > 0 && !holds(asking, p.Asks)
		return taken, taken
	}
	return false, known
}

func holds(data []byte, all []string) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !bytes.Contains(data, []byte(s)) })
}

// fileEnd returns the end of a file, nothing if it can't be read.
func fileEnd(name string) []byte {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, _ := io.ReadAll(io.NewSectionReader(f, max(info.Size()-maxProof, 0), maxProof))
	return data
}

// ErrNoApproval is returned for an answer to a question that is not pending.
var ErrNoApproval = errors.New("no such approval is pending")

// A Field is one argument of a tool's call, or one file of a change.
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Fields returns the members of a JSON object in their order, nil of anything else. What is
// not a string is its JSON.
func Fields(object []byte) (list []Field) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil
		}
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return nil
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		list = append(list, Field{Name: name.(string), Text: text})
	}
	return list
}

const (
	maxWhole = 256 << 10 // bytes of a request that are kept
	maxName  = 4 << 10   // of a tool's name, or a directory's
)

// Bound cuts a request that is too long to keep, and counts what it lacks then. The names of its tool and its
// directory, which an agent may have chosen, become one line each: on no surface is a part of them another line.
func (a *Approval) Bound() {
	a.Tool, _ = Flat(a.Tool, maxName)
	a.Dir, _ = Flat(a.Dir, maxName)
	left := maxWhole
	keep := func(s string) string {
		n := len(s)
		if n > left {
			s = strings.ToValidUTF8(s[:left], "")
		}
		a.Missing += n - len(s)
		left -= len(s)
		return s
	}
	a.Text = keep(a.Text)
	fields := a.Fields
	a.Fields = nil
	for _, f := range fields {
		if left == 0 { // not even its name
			a.Missing += len(f.Name) + len(f.Text)
			continue
		}
		a.Fields = append(a.Fields, Field{keep(f.Name), keep(f.Text)})
	}
	left = maxWhole / 16
	missing := a.Missing
	a.Reason = keep(a.Reason) // it is not what would be allowed
	a.Missing = missing
}

// Brief is what the request is about, in one line of at most limit bytes in which line
// breaks are visible; cut means that it lacks something.
func (a Approval) Brief(limit int) (line string, cut bool) {
	whole := a.Whole()
	line, cut = Flat(whole, limit)
	return line, cut || a.Missing > 0 || strings.ContainsFunc(whole, isBreak)
}

// Whole is the whole request: what a person allows. Every line of the text and of a field
// is indented if there is more than the text, so that none can be taken for a field's name.
func (a Approval) Whole() string {
	if len(a.Fields) == 0 && a.Missing == 0 {
		return a.Text
	}
	var b strings.Builder
	indented := func(s string) {
		for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
			b.WriteString("  " + line + "\n")
		}
	}
	fields := a.Fields
	if a.Subject != "" {
		fields = slices.Concat([]Field{{a.Subject, a.Text}}, fields)
	} else if a.Text != "" {
		indented(a.Text)
	}
	for _, f := range fields {
		if name := strings.Join(strings.Fields(f.Name), " ") + ":"; strings.ContainsFunc(f.Text, isBreak) {
			b.WriteString(name + "\n")
			indented(f.Text)
		} else {
			b.WriteString(strings.TrimRight(name+" "+f.Text, " ") + "\n")
		}
	}
	if a.Missing > 0 {
		fmt.Fprintf(&b, "[%d bytes more, which only its own pane shows]\n", a.Missing)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Closed is why netsky takes no yes to the request, "" if it takes one.
func (a Approval) Closed() string {
	if a.Only == "" && a.Missing > 0 {
		return "it is too long to be shown whole"
	}
	return a.Only
}
