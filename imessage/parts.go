package imessage

import (
	"context"
	"slices"
	"strings"
	"time"

	"netsky/imessage/chat"
	"netsky/store"
	"netsky/store/phone"
)

// A phone sends a long text, an album, or words with a link as several messages. Those that follow
// the first one are parts of it, as long as it was not acted on; it waits for them a little.
const (
	partWithin = 5 * time.Second         // between two parts, as they were written
	partWait   = 2500 * time.Millisecond // for the next one
	partMost   = 4 * partWait            // for all of them
	noteMore   = "more may follow"       // on record with the first
)

// whole returns the message that m is a part of; "" if it stands alone. Commands do.
func (s *scene) whole(m chat.Message) string {
	if m.After == "" {
		return ""
	}
	if a := parse(m.Text); a.what != askMessage || a.named || bareForm().MatchString(strings.TrimSpace(m.Text)) {
		return ""
	}
	after := m.After
	for range 3 { // what is before it, the other row of that, the first
		i := slices.IndexFunc(s.heard, func(h phone.Heard) bool { return h.GUID == after })
		if i < 0 || after == m.After && s.when(m).Sub(s.heard[i].At.Time()).Abs() > partWithin {
			return ""
		}
		switch h := s.heard[i]; h.Verdict {
		case VerdictOrder:
			if h.Note == noteMore && h.About == m.About {
				return h.GUID
			}
			return ""
		case VerdictPart, VerdictPair:
			after = h.Note
		default:
			return ""
		}
	}
	return ""
}

// incomplete returns how much longer a message waits for parts of it.
func (b *Bridge) incomplete(ctx context.Context, rec phone.Records, h phone.Heard) (time.Duration, error) {
	if h.Note != noteMore || h.Tries > 0 {
		return 0, nil
	}
	parts, err := rec.Parts(ctx, h.Line, h.GUID, VerdictPart)
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
func (b *Bridge) join(ctx context.Context, rec phone.Records, h *phone.Heard) error {
	if h.Note != noteMore {
		return nil
	}
	parts, err := rec.Parts(ctx, h.Line, h.GUID, VerdictPart)
	if err != nil {
		return err
	}
	for _, p := range parts {
		h.Text = strings.Trim(h.Text+"\n"+p.Text, "\n")
		h.Files = append(h.Files, p.Files...)
	}
	h.Note = ""
	return nil
}
