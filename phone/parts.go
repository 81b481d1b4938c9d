package phone

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// A phone sends a long text, an album, or words with a link as several messages. Those that follow
// the first one are parts of it, as long as it was not acted on. Only a message that is known not to be
// whole waits for them.
const (
	partWait = 2500 * time.Millisecond // for the next one
	partMost = 4 * partWait            // for all of them

	mostSteps = 100  // from a part back to the first
	cutText   = 4096 // UTF-16 units: a text this long was cut within a word

	noteMore = "more follows" // on record with the first
	noteLate = "a part of the message before it, which was sent on already"
)

// whole returns the message that m is a part of; "" if it stands alone. Commands do.
func (s *scene) whole(m chat.Message) string {
	if m.After == "" || parse(m.Text).what != askMessage {
		return ""
	}
	after := m.After
	for range mostSteps { // what is before it, the other row of that, the first
		i := slices.IndexFunc(s.heard, func(h record.Heard) bool { return h.GUID == after })
		if i < 0 {
			return ""
		}
		switch h := s.heard[i]; h.Verdict {
		case VerdictOrder:
			if parse(h.Text).what != askMessage {
				return ""
			}
			return h.GUID
		case VerdictPart, VerdictPair:
			after = h.Note
		default:
			return ""
		}
	}
	return ""
}

// incomplete returns how much longer a message waits for parts of it.
func (b *orders) incomplete(ctx context.Context, h record.Heard) (time.Duration, error) {
	if h.Note != noteMore || h.Tries > 0 {
		return 0, nil
	}
	parts, err := b.rec.Parts(ctx, h.Line, h.GUID, VerdictPart)
	if err != nil {
		return 0, err
	}
	until := h.Time.Time().Add(partWait)
	if n := len(parts); n > 0 {
		until = min(parts[n-1].Time+store.Time(partWait.Milliseconds()), h.Time+store.Time(partMost.Milliseconds())).Time()
	}
	if left := until.Sub(b.o.Now()); left < partMost { // else the clock was set back
		return left, nil
	}
	return 0, nil
}

// join adds the parts of a message to it. None is added to what was tried, so it is the same each time.
func (b *orders) join(ctx context.Context, h *record.Heard) error {
	parts, err := b.rec.Parts(ctx, h.Line, h.GUID, VerdictPart)
	if err != nil {
		return err
	}
	for last := h.Text; len(parts) > 0; parts = parts[1:] {
		p, between := parts[0], "\n"
		if len(utf16.Encode([]rune(last))) == cutText {
			between = ""
		}
		h.Text, last = strings.Trim(h.Text+between+p.Text, "\n"), p.Text
		h.Files = append(h.Files, p.Files...)
	}
	if h.Note == noteMore {
		h.Note = ""
	}
	return nil
}
