package imessage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/agent/home"
	"netsky/bus/envelope"
	"netsky/imessage/chat"
	"netsky/spawn/needs"
	"netsky/store/phone"
)

const (
	remindEvery = time.Second
	lookEach    = 10 // times between two looks at what is not an approval
	dwell       = 30 * time.Second
	mostAtOnce  = 5     // items that are shown in full at once; of more, a list is
	mostAsked   = 12000 // characters of an item that a phone shows in full
)

// remind texts what needs the owner: approvals at once, the rest if it stays. Each item is
// shown once for what it says.
func (b *Bridge) remind(ctx context.Context) error {
	rec, line, err := b.line(ctx)
	if err != nil {
		return err
	}
	since := map[string]time.Time{} // by digest, when it was first seen
	var before home.Mark
	for n := 0; ; n++ {
		if asked := b.o.Home.Mark(home.ApprovalDir); !before.Same(asked) || n%lookEach == 0 {
			before = asked
			if err := b.remindOf(ctx, rec, line, since); err != nil && ctx.Err() == nil {
				b.o.Log.Warn("needs", "error", err)
			}
		}
		if err := pause(ctx, remindEvery, nil); err != nil {
			return err
		}
	}
}

func (b *Bridge) remindOf(ctx context.Context, rec phone.Records, line phone.Line, since map[string]time.Time) error {
	to, ok, err := b.room(ctx, rec, line.Name)
	if err != nil || !ok {
		return err
	}
	list, err := b.o.Desk.Needs(ctx) // what can't be read is looked at again
	now, live := b.o.Now(), map[string]bool{}
	var due []needs.Need
	for _, n := range list {
		live[n.Digest] = true
		if _, ok := since[n.Digest]; !ok {
			since[n.Digest] = now
		}
		switch {
		case n.Kind.Passes(), n.Kind != needs.Approval && now.Sub(since[n.Digest]) < dwell:
			continue
		}
		has, herr := rec.Has(ctx, line.Name, needID(n, ""))
		if herr != nil {
			return herr
		}
		if !has {
			due = append(due, n)
		}
	}
	for digest := range since {
		if !live[digest] && err == nil {
			delete(since, digest)
		}
	}
	if len(due) == 0 {
		return err
	}
	if waits, werr := rec.Waits(ctx, line.Name); werr != nil || waits > mostAtOnce {
		return errors.Join(err, werr) // the next list has them all
	}
	defer wake(b.unsent)
	if len(due) > mostAtOnce {
		return b.digest(ctx, rec, to, due)
	}
	for _, n := range due {
		if err := rec.Say(ctx, b.ask(n, to, "")...); err != nil {
			return err
		}
	}
	return err
}

// digest texts a list of items instead of each of them. An answer needs the item in full:
// the list says how to see it.
func (b *Bridge) digest(ctx context.Context, rec phone.Records, to chat.Chat, due []needs.Need) error {
	lines := []string{needs.Count(len(due)) + ":"}
	ids := ""
	var say []phone.Said
	for _, n := range due {
		lines = append(lines, n.Code+" "+n.Line())
		ids += n.Digest
		// On record as not to be sent, so that it is not texted as well.
		for _, s := range b.ask(n, to, "") {
			s.State = phone.Dropped
			say = append(say, s)
		}
	}
	lines = append(lines, "needs CODE shows all of one, to answer it.")
	say = append(say, b.compose(letter{id: "list-" + short(ids), chat: to, kind: kindAlert, name: us, text: strings.Join(lines, "\n"), rest: "text `needs` for the rest"})...)
	return rec.Say(ctx, say...)
}

// needID returns the id of the text that shows an item: one for what it says, and one for each
// message that asks for it again.
func needID(n needs.Need, guid string) string { return "n-" + short(n.Code+n.Digest+guid) }

// ask returns the text that shows an item in full, with its code and what happens without an
// answer.
func (b *Bridge) ask(n needs.Need, to chat.Chat, guid string) []phone.Said {
	lines := []string{n.Who() + " " + n.Title}
	if n.Text != "" {
		lines[0] += ":"
		lines = append(lines, n.Text)
	}
	if n.Reason != "" {
		lines = append(lines, "Its reason: "+n.Reason)
	}
	if n.Dir != "" {
		lines = append(lines, "In "+n.Dir)
	}
	l := letter{id: needID(n, guid), chat: to, kind: kindNeed, about: n.Code, digest: n.Digest, name: us}
	text := strings.Join(lines, "\n")
	switch {
	case len(n.Options) == 0:
		text += "\n" + n.Next() + "."
	case len(text) > mostAsked:
		l.digest = "" // not shown in full, so no answer can refer to it
		text = envelope.Shorten(text, 1000) + "\nIt is too long to show, and to be answered, here: " + n.Next() + "."
	default:
		text += fmt.Sprintf("\nOtherwise: %s.\nyes %[2]s or no %[2]s", n.Otherwise, n.Code)
		l.choices = []string{"yes " + n.Code, "no " + n.Code}
	}
	l.text = text
	return b.compose(l)
}

// room returns the chat to write to: where the owner wrote last, else the first one that is
// configured.
func (b *Bridge) room(ctx context.Context, rec phone.Records, line string) (chat.Chat, bool, error) {
	who, err := b.o.Gate.Speakers()
	if err != nil {
		return chat.Chat{}, false, err
	}
	h, ok, err := rec.LastHeard(ctx, line, VerdictOrder)
	if err != nil {
		return chat.Chat{}, false, err
	}
	if ok && who.OwnerChat(h.Chat) {
		return h.Chat, true, nil
	}
	c, err := b.o.To()
	return c, err == nil && who.OwnerChat(c), err
}
