package phone

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

const (
	remindEvery = time.Second
	lookEach    = 10 // times between two looks at what is not an approval
	dwell       = 30 * time.Second
	dwellPasses = 2 * time.Minute // of what may pass by itself
	goneFor     = 5 * time.Minute // after which what comes again is another occurrence
	mostAtOnce  = 5               // items that are shown in full at once; of more, a list is
	mostAsked   = 12000           // characters of an item that a phone shows in full
	clearWithin = 5 * time.Second // for each text
)

// A reminder knows since when things need the owner, and since when others do no more. A
// restart forgets that, but not what was texted.
type reminder struct {
	loop
	since map[string]time.Time // by digest
	gone  map[string]time.Time // by code, of what was texted
}

// remind texts what needs the owner: approvals at once, the rest if it stays. Each is texted
// once for what it says, and again if it was over and has come again. An approval of another host
// that was texted and says something else now is texted again if that stays.
func (b *reminder) remind(ctx context.Context) error {
	var before home.Mark
	for n := 0; ; n++ {
		if asked := b.o.Home.Mark(home.ApprovalDir); !before.Same(asked) || n%lookEach == 0 {
			before = asked
			if err := b.remindOf(ctx); err != nil && ctx.Err() == nil {
				b.o.Log.Warn("needs", "error", err)
			}
		}
		if err := proc.Sleep(ctx, b.o.Look); err != nil {
			return err
		}
	}
}

func (b *reminder) remindOf(ctx context.Context) error {
	to, ok, err := b.room(ctx)
	if err != nil || !ok {
		return err
	}
	list, err := b.o.Desk.Needs(ctx) // what can't be read is looked at again
	items, ierr := b.rec.Items(ctx, b.line.Name)
	if ierr != nil {
		return ierr
	}
	if err == nil {
		if err := b.over(ctx, list, items); err != nil {
			return err
		}
	}
	due, derr := b.due(ctx, list, items)
	if derr != nil || len(due) == 0 {
		return errors.Join(err, derr)
	}
	if waits, werr := b.rec.Waits(ctx, b.line.Name); werr != nil || waits > mostAtOnce {
		return errors.Join(err, werr) // the next list has them all
	}
	defer wake(b.unsent)
	if len(due) > mostAtOnce {
		return b.digest(ctx, to, due)
	}
	for _, n := range due {
		if err := b.rec.Say(ctx, b.ask(n, to, b.first())...); err != nil {
			return err
		}
	}
	return err
}

// first returns what tells the first text about an item from those of other occurrences.
func (b *Bridge) first() string { return b.o.Now().Format(time.RFC3339Nano) }

// over records of what was texted that it needs the owner no more, if it is not listed for
// goneFor: what flaps is not texted each time.
func (b *reminder) over(ctx context.Context, list []attention.Need, items map[string]record.Item) error {
	codes, digests, now := make(map[string]bool, len(list)), make(map[string]bool, len(list)), b.o.Now()
	for _, n := range list {
		codes[n.Code], digests[n.Digest] = true, true
		delete(b.gone, n.Code)
	}
	for digest := range b.since {
		if !digests[digest] {
			delete(b.since, digest)
		}
	}
	texted := make(map[string]bool, len(items))
	for digest, i := range items {
		texted[i.Code] = true
		since, known := b.gone[i.Code]
		switch {
		case codes[i.Code]:
		case !known:
			b.gone[i.Code] = now
			b.clear(ctx, i.Code)
		case now.Sub(since) >= goneFor:
			if err := b.rec.Over(ctx, b.line.Name, i.Code); err != nil {
				return err
			}
			delete(items, digest)
		}
	}
	for code := range b.gone {
		if !texted[code] {
			delete(b.gone, code)
		}
	}
	return nil
}

// clear takes the buttons off the texts about an item that is settled. What a crash or a
// failure leaves there answers nothing: a press on it is told so.
func (b *reminder) clear(ctx context.Context, code string) {
	t, ok := b.o.Transport.(Clearer)
	if !ok {
		return
	}
	offers, err := b.rec.Offers(ctx, b.line.Name, code)
	for _, s := range offers {
		within, cancel := context.WithTimeout(ctx, clearWithin)
		err = errors.Join(err, t.ClearChoices(within, chatOf(s.Chat), s.GUID))
		cancel()
	}
	if err != nil {
		b.o.Log.Info("clear", "code", code, "error", err)
	}
}

// due returns what is to be texted now.
func (b *reminder) due(ctx context.Context, list []attention.Need, items map[string]record.Item) (due []attention.Need, err error) {
	now, texted := b.o.Now(), make(map[string]bool, len(items))
	for _, i := range items {
		texted[i.Code] = true
	}
	for _, n := range list {
		since, known := b.since[n.Digest]
		if !known {
			since = now
			b.since[n.Digest] = now
		}
		wait := dwell
		switch {
		case n.Kind == attention.Approval && !(n.Host != "" && texted[n.Code]): // another host may change its words again and again
			wait = 0
		case n.Kind.Passes():
			wait = dwellPasses
		}
		if i, ok := items[n.Digest]; ok && !began(n, i.Created) || now.Sub(since) < wait {
			continue
		}
		if n.Kind == attention.Question { // it may have been texted as the message that it is
			if has, err := b.rec.Mailed(ctx, b.line.Name, n.Message); err != nil || has {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		due = append(due, n)
	}
	return due, nil
}

// began reports whether an item that was shown then has begun since: the same dialog, once
// more. Other kinds begin anew whenever an agent is tried again.
func began(n attention.Need, shown store.Time) bool {
	return n.Kind == attention.Dialog && n.Since > shown
}

// digest texts a list of items instead of each of them. An answer needs the item in full:
// the list says how to see it.
func (b *reminder) digest(ctx context.Context, to chat.Chat, due []attention.Need) error {
	lines := []string{attention.Count(len(due)) + ":"}
	codes := ""
	first := b.first()
	var say []record.Said
	for _, n := range due {
		lines = append(lines, n.Code+" "+n.Line())
		codes += n.Code + " "
		// On record as not to be sent, so that it is not texted as well.
		for _, s := range b.ask(n, to, first) {
			s.State = record.Dropped
			say = append(say, s)
		}
	}
	lines = append(lines, "needs CODE shows all of one, to answer it.")
	say = append(say, b.compose(letter{id: "list-" + short(codes+first), chat: to, kind: kindList, about: codes, name: us, text: strings.Join(lines, "\n"), rest: "text `needs` for the rest"})...)
	return b.rec.Say(ctx, say...)
}

// needID returns the id of a text that shows an item: one for what it says, and for what
// made us text it.
func needID(n attention.Need, why string) string { return "n-" + short(n.Code+n.Digest+why) }

// ask returns the text that shows an item in full, with its code and what happens without an
// answer. why tells it from other texts about the same.
func (b *Bridge) ask(n attention.Need, to chat.Chat, why string) []record.Said {
	lines := []string{n.Who() + " " + n.Title}
	if n.Text != "" {
		lines[0] += ":"
		lines = append(lines, quoted(n.Text))
	}
	if n.Reason != "" {
		lines = append(lines, "Its reason: "+quoted(n.Reason))
	}
	if n.Dir != "" {
		lines = append(lines, "In "+n.Dir)
	}
	l := letter{id: needID(n, why), chat: to, kind: kindNeed, about: n.Code, digest: n.Digest, name: us}
	text := strings.Join(lines, "\n")
	switch {
	case n.Kind == attention.Question && len(n.Agents) == 1 && n.Host == "":
		l.rest = "the rest: netsky needs " + n.Code
		text += "\n" + replyHint(n.Agents[0])
	case len(n.Options) == 0:
		text += "\nOn the computer: " + n.Next() + "."
	case len(text) > mostAsked, n.Kind == attention.Dialog && strings.HasSuffix(n.Text, "…"):
		// Without choices no answer can refer to it.
		text = envelope.Shorten(text, 1000) + "\nIt is too long to show, and to be answered, here. On the computer: " + n.Next() + "."
	default:
		text += fmt.Sprintf("\nOtherwise: %s.\nyes %[2]s or no %[2]s", n.Otherwise, n.Code)
		l.choices = []string{"yes " + n.Code, "no " + n.Code}
	}
	l.text = text
	return b.compose(l)
}

// quoted marks each line of words of more than one line, so that none of them can be taken for
// one of ours: a command may be made to end with "yes" and another item's code.
func quoted(text string) string {
	text = strings.TrimRight(text, "\n")
	if !strings.ContainsAny(text, lineBreaks) {
		return text
	}
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune(lineBreaks, r) {
			return '\n'
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// lineBreaks are all characters at which a phone may begin another line.
const lineBreaks = "\n\r\v\f\u0085\u2028\u2029"
