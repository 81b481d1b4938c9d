package bluebubbles

import (
	"slices"
	"time"

	"netsky/phone/chat"
)

const (
	linkBalloon = "com.apple.messages.URLBalloonProvider" // the app that shows a link's preview
	linkWithin  = 90 * time.Second                        // between a link and a second row of it
	pairWithin  = 3 * time.Second                         // between words and a link that were sent together
	mostBefore  = 100                                     // rows among which either is looked for
)

func (r *row) link() bool { return value(r.Balloon) == linkBalloon }

// near reports whether two rows are of one writer, in one chat and at about one time.
func (r *row) near(other *row, within time.Duration) bool {
	who := func(r *row) (s string) {
		if r.Handle != nil && !r.FromMe {
			s = chat.Handle(r.Handle.Address)
		}
		return s
	}
	at := func(r *row) (t time.Time) {
		if r.Created != nil {
			t = time.UnixMilli(*r.Created)
		}
		return t
	}
	return r.unreadable == nil && other.unreadable == nil && r.FromMe == other.FromMe && who(r) == who(other) &&
		r.chat().Key == other.chat().Key && at(r).Sub(at(other)).Abs() <= within
}

// repeats reports whether a row is the preview of a link that an earlier row has.
func (r *row) repeats(before []*row) bool {
	return r.link() && r.words() != "" && slices.ContainsFunc(before, func(b *row) bool {
		return b.words() == r.words() && r.near(b, linkWithin)
	})
}

// follows reports whether a link was sent together with the words in another row.
func (r *row) follows(words *row) bool {
	return r.link() && value(words.Balloon) == "" && value(r.ReplyTo) == words.GUID && r.words() != words.words() && r.near(words, pairWithin)
}
