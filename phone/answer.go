package phone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/phone/chat"
	"netsky/phone/record"
)

// settled returns what to say about an item that needs the owner no more. The error says that
// the bridge ends, so that it was not found out.
func (b *orders) settled(ctx context.Context, h record.Heard, code string) ([]record.Said, error) {
	how := b.o.Desk.How(ctx, code)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case how != "":
		return b.reply(h, fmt.Sprintf("%s is settled: %s.", code, how)), nil
	case h.Tries > 0: // a crash may have come between its effect and this
		return b.reply(h, fmt.Sprintf("%s does not need you any more. Your answer may be what settled it.", code)), nil
	}
	text := fmt.Sprintf("Nothing was done: no item %s needs you; it may have been settled or withdrawn.", code)
	if h.Kind == string(chat.Text) { // "no sorry" looks like an answer, too
		text += fmt.Sprintf(" No agent got your message; if it was for one, write: %s: %s", agent.Root, envelope.Line(h.Text, 60))
	}
	return b.reply(h, text), nil
}

// errSending is returned for a reaction to what may be a text that is on record as being sent
// only: a crash came before its guid was known.
var errSending = errors.New("it refers to a message that is not known yet")

// react takes a tapback, or a button, as the answer to the item that the message shows.
func (b *orders) react(ctx context.Context, h *record.Heard) ([]record.Said, error) {
	s, ok, err := b.rec.SaidAs(ctx, h.Line, h.About)
	if err != nil {
		return nil, err
	}
	if !ok {
		if is, err := b.rec.Sending(ctx, h.Line, h.Chat.Key); err != nil || is {
			return nil, cmp.Or(err, errSending)
		}
	}
	if ok && s.Kind == kindPast {
		h.Note = "answer " + s.About
		return b.settled(ctx, *h, s.About)
	}
	if !ok || s.Kind != kindNeed {
		h.Note = "on a message that asks nothing"
		return nil, nil
	}
	allow := h.Text == chat.Like
	if h.Kind == string(chat.Press) {
		a := parse(h.Text)
		if a.what != askAnswer || a.code != s.About {
			h.Note = "a button that is none of this message's"
			return nil, nil
		}
		allow = a.allow
	} else if h.Text != chat.Like && h.Text != chat.Dislike {
		h.Note = "a reaction that is no answer"
		return nil, nil
	}
	h.Note = "answer " + s.About
	return b.answer(ctx, *h, s.About, allow, &s)
}

// validFor is how long an item that was shown can be answered without showing it again.
const validFor = 24 * time.Hour

// answer gives the owner's answer to an item, if it still says what this chat was shown: in that
// very message, if the answer refers to one. Doing it again after a crash finds it settled, which is said
// in the same words.
func (b *orders) answer(ctx context.Context, h record.Heard, code string, allow bool, on *record.Said) ([]record.Said, error) {
	list, err := b.o.Desk.Needs(ctx)
	n, ok := attention.Find(list, code)
	if !ok {
		n, ok = elsewhere(list, code)
	}
	if ok {
		code = n.Code
	} else {
		if err != nil && len(list) == 0 {
			return nil, err
		}
		return b.settled(ctx, h, code)
	}
	if n.Kind == attention.Question && n.Host == "" {
		return b.reply(h, fmt.Sprintf("%s is a question, which takes words: reply to the text that shows it (needs %[1]s sends it again), or write: %s: …", code, n.Agents[0])), nil
	}
	if len(n.Options) == 0 {
		return b.reply(h, fmt.Sprintf("%s cannot be answered by text. On the computer: %s.", code, n.Next())), nil
	}
	shown, err := b.rec.Asked(ctx, h.Line, h.Chat.Key, code)
	if err != nil {
		return nil, err
	}
	if on != nil && (on.Digest != n.Digest || b.stale(*on) || began(n, on.Created)) || !b.current(shown, n, h) {
		return b.askAgain(n, h), nil
	}
	text, err := b.o.Desk.Answer(context.WithoutCancel(ctx), n, allow)
	if err != nil {
		text = err.Error()
	}
	return b.reply(h, text), nil
}

// elsewhere returns the item of another host that has the code there, which is enough to type if no other has it.
func elsewhere(list []attention.Need, code string) (n attention.Need, ok bool) {
	for _, one := range list {
		if there, _, far := strings.Cut(one.Code, "@"); far && there == code {
			if ok {
				return n, false
			}
			n, ok = one, true
		}
	}
	return n, ok
}

// replyTo returns the code of the item that a bare yes or no is about, as it replies to the text
// that shows it; "" if it is about none. To a question it is the answer in words.
func (b *orders) replyTo(ctx context.Context, h *record.Heard) (code string, on *record.Said, err error) {
	if h.About == "" || !bareForm().MatchString(strings.TrimSpace(h.Text)) {
		return "", nil, nil
	}
	s, ok, err := b.rec.SaidAs(ctx, h.Line, h.About)
	if err != nil || !ok || s.Kind != kindNeed && s.Kind != kindPast {
		return "", nil, err
	}
	list, _ := b.o.Desk.Needs(ctx)
	if n, live := attention.Find(list, s.About); live && n.Kind == attention.Question {
		return "", nil, nil
	}
	return s.About, &s, nil
}

// unanswered returns the code of the item that takes a yes or no and is shown by the text to which a
// message replies without saying either; "" if there is none.
func (b *orders) unanswered(ctx context.Context, h record.Heard) string {
	if h.About == "" {
		return ""
	}
	s, ok, err := b.rec.SaidAs(ctx, h.Line, h.About)
	if err != nil || !ok || s.Kind != kindNeed {
		return ""
	}
	list, _ := b.o.Desk.Needs(ctx)
	if n, live := attention.Find(list, s.About); !live || n.Kind == attention.Question || len(n.Options) == 0 {
		return ""
	}
	return s.About
}

// stillWaits returns what to say of the items that wait for a yes or no after one without a code.
func (b *orders) stillWaits(ctx context.Context) string {
	list, _ := b.o.Desk.Needs(ctx)
	list = slices.DeleteFunc(list, func(n attention.Need) bool { return len(n.Options) == 0 })
	switch len(list) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s still waits for your answer (%s): yes %[1]s or no %[1]s.", list[0].Code, list[0].Line())
	}
	return fmt.Sprintf("%d items still wait for your yes or no: `needs` lists them with their codes.", len(list))
}

// askAgain returns the text that shows an item, as the answer to a yes or no that was to other
// words, or to none.
func (b *orders) askAgain(n attention.Need, h record.Heard) []record.Said {
	say := b.ask(n, chatOf(h.Chat), h.GUID)
	lead := "] Nothing was answered.\n"
	if len(say[len(say)-1].Choices) > 0 {
		lead = "] Nothing was answered: this is what it says now. Read it, then answer again.\n"
	}
	say[0].Text = strings.Replace(say[0].Text, "] ", lead, 1)
	return say
}

// stale reports whether a text was shown too long ago to be answered.
func (b *orders) stale(s record.Said) bool { return b.o.Now().Sub(s.Began.Time()) >= validFor }

// current reports whether the item was shown in the chat as it is now, before the answer was
// heard, not too long ago, and in full.
func (b *orders) current(shown []record.Said, n attention.Need, h record.Heard) bool {
	for _, s := range shown {
		out := s.State == record.Sent || s.State == record.Unconfirmed || s.State == record.Sending
		// Without choices it was not shown in full; what was shown before it began was another.
		if s.Digest == n.Digest && s.Part == s.Parts && len(s.Choices) > 0 && out && !began(n, s.Created) && !b.stale(s) && s.Began <= h.Time {
			return true
		}
	}
	return false
}
