package codex

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
)

// A transcript is what the pane of an agent without a TUI shows. All of it is made safe
// with envelope.Plain. While it is muted, the TUI has the pane.
type transcript struct {
	id   agent.ID
	mute atomic.Bool

	mu sync.Mutex // guards w
	w  io.Writer
}

// maxShown limits one text, in bytes; `netsky show` has the rest.
const maxShown = 4000

func (t *transcript) say(text string) { t.heading("netsky", text) }

func (t *transcript) message(e envelope.Envelope) {
	from := "from " + string(e.From)
	if e.Kind != envelope.KindMessage {
		from += ", " + string(e.Kind)
	}
	t.heading(from, e.Text)
}

// heading prints a line with the speaker and the text; further lines are indented.
func (t *transcript) heading(who, text string) {
	if t.mute.Load() {
		return
	}
	if short := envelope.Cut(text, maxShown); short != text {
		text = short + "…"
	}
	text = strings.ReplaceAll(strings.TrimRight(envelope.Plain(text), "\n"), "\n", "\n    ")
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.w, "%s %s: %s\n", time.Now().Format("15:04:05"), envelope.Plain(who), text)
}
