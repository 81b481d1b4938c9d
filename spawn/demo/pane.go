package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A pane is the transcript a person reads. Everything from a message is made safe with
// envelope.Plain, so no sender can move the cursor or draw a false prompt. Errors of
// the writer are ignored: a pane that is gone ends the program.
type pane struct {
	id       agent.ID
	terminal int // descriptor; -1 if the pane has none

	mu       sync.Mutex // guards the fields below, and writing
	w        io.Writer
	prompted bool // the last line is the prompt
}

func newPane(w io.Writer, id agent.ID) *pane {
	p := &pane{id: id, w: w, terminal: -1}
	if f, ok := w.(*os.File); ok && isTerminal(int(f.Fd())) {
		p.terminal = int(f.Fd())
	}
	return p
}

func (p *pane) banner() {
	p.write(fmt.Sprintf("%s, a demo agent of netsky: a small program without a model that costs nothing.", p.id), "")
	p.write("It answers its mail by itself. Type a message or a command to try it here; /help lists the commands, Ctrl-C ends it.", "")
}

// prompt shows the prompt, once, in the last line.
func (p *pane) prompt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.prompted && p.terminal >= 0 {
		fmt.Fprintf(p.w, "%s, a message or /help> ", p.id)
		p.prompted = true
	}
}

// entered records that a person has ended the prompt's line.
func (p *pane) entered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompted = false
}

func (p *pane) message(e envelope.Envelope) {
	p.write(fmt.Sprintf("%s from %s%s", clock(e.Time), e.From, kind(e)), e.Text)
}

func (p *pane) sent(e envelope.Envelope) {
	p.write(fmt.Sprintf("%s to %s%s", clock(time.Now()), e.To, kind(e)), e.Text)
}

func (p *pane) note(text string) { p.write(clock(time.Now())+" here", text) }

func (p *pane) question(text string) { p.write("Press y or n:", text+" [y/n]") }

func kind(e envelope.Envelope) string {
	if e.Kind == envelope.KindMessage {
		return ""
	}
	return ", " + string(e.Kind)
}

// clock writes a time for a person: with the date if it is not today's.
func clock(t time.Time) string {
	t = t.Local()
	if time.Since(t) > 12*time.Hour {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04:05")
}

const (
	maxShown = 4000 // characters of one text; `netsky show` has the rest
	indent   = "    "
)

// write prints a heading and below it a text, indented and wrapped.
func (p *pane) write(heading, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	if p.prompted {
		b.WriteString("\r\x1b[K") // the prompt is shown again below
	}
	p.prompted = false
	width := p.width()
	lines := wrap(envelope.Plain(heading), width)
	if text != "" {
		for _, l := range wrap(envelope.Plain(shorten(text, maxShown)), width-len(indent)) {
			lines = append(lines, strings.TrimRight(indent+l, " "))
		}
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	io.WriteString(p.w, b.String())
}

// width returns the current number of columns: a window can change.
func (p *pane) width() int {
	if p.terminal >= 0 {
		if size, err := unix.IoctlGetWinsize(p.terminal, unix.TIOCGWINSZ); err == nil && size.Col >= 20 {
			return int(size.Col)
		}
	}
	return 80
}

// wrap breaks a text into lines of at most width characters, at a blank if there is
// one. Lines that fit are unchanged.
func wrap(text string, width int) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\t", "    "), "\n") {
		for utf8.RuneCountInString(line) > width {
			cut := byteOf(line, width)
			if blank := strings.LastIndexByte(line[:cut+1], ' '); blank > 0 && strings.TrimSpace(line[:blank]) != "" {
				lines = append(lines, strings.TrimRight(line[:blank], " "))
				line = line[blank+1:]
				continue
			}
			lines = append(lines, line[:cut])
			line = line[cut:]
		}
		lines = append(lines, line)
	}
	return lines
}

// byteOf returns where character n begins; there are more than n.
func byteOf(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
