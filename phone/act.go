package phone

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/internal/proc"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

const (
	actPoll  = 2 * time.Second  // while something is to be tried again
	actIdle  = 20 * time.Second // else: what arrives wakes it
	mostActs = 4                // errands at a time; messages are sent on one by one, in their order
	patience = 2 * time.Second  // how long a message, with files that come slowly, keeps back the errands behind it
	// A message that can't be acted on is tried again for a while, and so often; then the owner
	// is told.
	leastTries = 8
	tryFor     = 10 * time.Minute
)

// orders are what the owner's messages ask for.
type orders struct {
	loop
	mu     sync.Mutex     // guards the field below
	acting map[int64]bool // by Seq, what act works on
}

// act lets what was taken take effect.
func (b *orders) act(ctx context.Context) error {
	var errands sync.WaitGroup
	defer errands.Wait()
	slots, letter := make(chan struct{}, mostActs), make(chan struct{}, 1)
	wait := actPoll
	for {
		list, err := b.rec.NewHeard(ctx, b.line.Name)
		if wait = min(2*wait, retryMost); err == nil {
			if wait = actPoll; len(list) == 0 {
				wait = actIdle
			}
		} else if ctx.Err() == nil {
			b.o.Log.Warn("act", "error", err)
		}
		held := false // messages are sent on in their order
		for _, h := range list {
			if h.Verdict == VerdictOrder && h.Kind == string(chat.Text) && parse(h.Text).what == askMessage {
				if left, err := b.incomplete(ctx, h); held || left > 0 || err != nil {
					if !held && err == nil {
						wait = min(wait, left)
					}
					held = true
					continue
				}
				b.sendOn(ctx, h, letter, &errands)
				continue
			}
			if !b.begin(h.Seq) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			errands.Go(func() {
				defer func() { <-slots }()
				b.do(ctx, h)
			})
		}
		if err := proc.SleepUntil(ctx, wait, b.unacted); err != nil {
			return err
		}
	}
}

// sendOn sends a message on, unless an earlier one holds the turn: then it follows that one. It
// returns when that is done, or after a while, so that `stop` does not wait for a file.
func (b *orders) sendOn(ctx context.Context, h record.Heard, turn chan struct{}, all *sync.WaitGroup) {
	select {
	case turn <- struct{}{}:
	default:
		return
	}
	done := make(chan struct{})
	all.Go(func() {
		defer close(done)
		defer func() { <-turn }()
		if b.begin(h.Seq) {
			b.do(ctx, h)
		}
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		all.Go(func() {
			<-done
			wake(b.unacted) // for those that followed
		})
	}
}

func (b *orders) begin(seq int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.acting[seq] {
		return false
	}
	b.acting[seq] = true
	return true
}

// do lets one message take effect, and records that. If that fails, it is done again later.
func (b *orders) do(ctx context.Context, h record.Heard) {
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.acting, h.Seq)
	}()
	who, err := b.o.Gate.Speakers()
	if err != nil {
		return // nobody may speak: it waits
	}
	var ok bool
	if h.Tries, ok, err = b.rec.Try(ctx, h); err != nil || !ok {
		return // it cannot be counted, or was done since it was listed
	}
	b.o.Step("tried")
	var say []record.Said
	if !who.OwnerChat(chatOf(h.Chat)) || !h.FromMe && !who.May(h.Handle) {
		h.Note, h.Message = "denied meanwhile", ""
	} else if h.Tries >= leastTries && b.o.Now().Sub(h.Time.Time()) > tryFor {
		h.Note = "given up" // also one that ends the program each time
		say = b.reply(h, "Your message could not be acted on; `netsky log` and the daemon's log say why. It was: "+envelope.Line(h.Text, 100))
	} else if say, err = b.effect(ctx, &h); err != nil {
		b.o.Log.Warn("act", "guid", h.GUID, "tries", h.Tries+1, "error", err)
		return
	}
	b.o.Step("acted")
	if err := b.rec.Did(context.WithoutCancel(ctx), h, say...); err != nil {
		b.o.Log.Warn("act", "guid", h.GUID, "error", err)
		return
	}
	wake(b.unsent)
}

// effect does what a message asks for, and returns what is to be said about it. An error says
// that it is to be tried again.
func (b *orders) effect(ctx context.Context, h *record.Heard) ([]record.Said, error) {
	switch h.Verdict {
	case VerdictUnreadable:
		return b.reply(*h, "A message could not be read ("+h.Note+"). If you wrote it, please write it again."), nil
	case VerdictBrake:
		return b.brake(ctx, *h), nil
	case VerdictReaction:
		return b.react(ctx, h)
	}
	if err := b.join(ctx, h); err != nil {
		return nil, err
	}
	a := parse(h.Text)
	b.o.Log.Info("act", "what", a.what, "agent", a.agent, "guid", h.GUID)
	switch a.what {
	case askAnswer:
		h.Note = "answer " + a.code
		return b.answer(ctx, *h, a.code, a.allow, nil)
	case askStatus:
		text, err := b.o.Desk.Status(ctx)
		return b.reply(*h, text), err
	case askNeeds:
		return b.list(ctx, *h, a.code)
	case askMessage:
		if code, s, err := b.replyTo(ctx, h); err != nil {
			return nil, err
		} else if code != "" {
			h.Note, h.Message = "answer "+code, ""
			return b.answer(ctx, *h, code, strings.ContainsAny(strings.TrimSpace(h.Text)[:1], "yYaA"), s)
		}
	case askHelp:
		return b.reply(*h, help), nil
	case askWhom:
		return b.reply(*h, "Which agent? For example: "+a.text+" agent1"), nil
	case askPeek:
		text, err := b.o.Desk.Peek(ctx, a.agent, a.lines)
		if err != nil {
			text = err.Error()
		} else if strings.TrimSpace(text) == "" {
			text = string(a.agent) + ": its screen is empty"
		}
		return b.reply(*h, text), nil
	case askStop:
		text, err := b.o.Desk.Stop(ctx, a.agent)
		if err != nil {
			text = err.Error()
		}
		return b.reply(*h, text), nil
	}
	return b.message(ctx, h, a)
}

const help = "status: how everything is\nneeds: what needs you; needs CODE: all of one\nyes CODE, no CODE, or thumbs up or down on its text: answers it\nstop agent2: ends its turn, not the agent\n" +
	"peek agent1, peek agent1 50: the end of its screen\nagent2: TEXT, or a reply to its text: a message to agent2\nAnything else is a message to agent0."

// reply returns our answer to a message of the owner's.
func (b *orders) reply(h record.Heard, text string) []record.Said {
	return b.compose(letter{id: "a-" + short(h.GUID), chat: chatOf(h.Chat), kind: kindAnswer, about: h.GUID, name: us, text: text, rest: "the rest is on the computer"})
}

// brake tells the owner, here and by mail, that the chat rests. When it rests longer, as it was too
// full again, they have been told.
func (b *orders) brake(ctx context.Context, h record.Heard) []record.Said {
	rest := restOf(h)
	b.status.rests(h.Time.Time().Add(rest))
	if rest > brakeRest {
		return nil
	}
	text := fmt.Sprintf("Too many messages arrived here within a minute. Your last one was not acted on, nor is what you send in the next %d minutes, except stop AGENT and no CODE."+
		" If as many come again soon after, it rests twice as long each time, up to %d hours; you are not told again.", int(brakeRest.Minutes()), int(mostRest.Hours()))
	b.mail(ctx, "phone-brake-"+short(h.GUID), "phone: "+text+" If you did not send them, two programs may be answering each other.")
	return b.reply(h, text)
}

// reaches reports whether a message can be sent to the agent, here or on another host.
func (b *orders) reaches(id agent.ID) bool {
	if id.Host() == "" {
		return b.o.Bus.Exists(id)
	}
	hosts, err := b.o.Bus.Linked()
	return err == nil && slices.Contains(hosts, id.Host())
}

// message sends a message on to an agent.
func (b *orders) message(ctx context.Context, h *record.Heard, a ask) ([]record.Said, error) {
	e := envelope.Envelope{
		ID: messageID(h.Line, h.GUID), From: agent.Owner, To: a.agent, Text: envelope.SafeText(a.text), Via: b.o.Via, Time: min(h.At, store.At(b.o.Now())).Time(),
	}
	answers := ""
	switch {
	case !a.named && h.About != "":
		b.continues(ctx, *h, &e)
	case a.named:
		answers = b.answersQuestion(ctx, *h, &e)
	}
	h.Message = ""
	if !b.reaches(e.To) {
		return b.reply(*h, fmt.Sprintf("There is no %s: your message was not sent. `status` lists the agents.", e.To)), nil
	}
	if h.Note == noteLate {
		e.Text += "\n(This belongs to the owner's message before it.)"
	}
	files, lost, notes := b.files(ctx, *h, e.To, e.ID)
	e.Attachments = files
	if len(lost) > 0 {
		e.Text = strings.TrimSpace(e.Text + "\n(The owner also sent " + strings.Join(lost, "; ") + ".)")
	}
	if len(notes) > 0 {
		e.Text = strings.TrimSpace(e.Text + "\n(" + strings.Join(notes, "; ") + ".)")
	}
	if strings.TrimSpace(e.Text) == "" {
		if len(files) == 0 {
			return b.reply(*h, "There was nothing in your message to "+string(e.To)+"."), nil
		}
		e.Text = "(The owner sent this without words.)"
	}
	err := b.publish(ctx, e, h.Tries > 0)
	switch {
	case errors.Is(err, bus.ErrUsed), err == nil:
	case errors.Is(err, envelope.ErrInvalid), errors.Is(err, bus.ErrNotAllowed), errors.Is(err, bus.ErrBrake):
		h.Note = envelope.Line(err.Error(), 300)
		return b.reply(*h, "Your message was not sent: "+err.Error()), nil
	default:
		return nil, err
	}
	h.Target, h.Message = e.To, e.ID
	b.o.Step("on the bus")
	hints := b.hints(ctx, *h, e.To)
	if answers != "" {
		hints = append(hints, answers)
	}
	if len(lost) > 0 {
		hints = append(hints, "Not passed on: "+strings.Join(lost, "; ")+".")
	}
	for _, n := range notes {
		hints = append(hints, n+".")
	}
	if len(hints) == 0 {
		return nil, nil
	}
	return b.reply(*h, strings.Join(hints, "\n")), nil
}

// publish sends an envelope. Again says that it may have been sent before a crash: then it is
// looked for in the mailbox first.
func (b *orders) publish(ctx context.Context, e envelope.Envelope, again bool) error {
	if again {
		if list, err := b.o.Bus.Received(ctx, e.To, e.ID); err == nil && len(list) > 0 {
			return nil
		}
	}
	_, _, err := b.o.Bus.SendOnce(ctx, e)
	return err
}

// hints returns what the owner should know about a message that was sent on.
func (b *orders) hints(ctx context.Context, h record.Heard, to agent.ID) (hints []string) {
	if why := b.o.Desk.Waits(ctx, to); why != "" {
		hints = append(hints, why)
	}
	if h.About == "" && bareForm().MatchString(strings.TrimSpace(h.Text)) {
		if still := b.stillWaits(ctx); still != "" {
			hints = append(hints, fmt.Sprintf("That went to %s. %s", to, still))
		}
	}
	if code := b.unanswered(ctx, h); code != "" {
		hints = append(hints, fmt.Sprintf("That went to %s and answered nothing: %s still waits. Reply yes or no to its text, or write: yes %[2]s or no %[2]s.", to, code))
	}
	return hints
}

// list returns what needs the owner: a line each, or all of one.
func (b *orders) list(ctx context.Context, h record.Heard, code string) ([]record.Said, error) {
	list, err := b.o.Desk.Needs(ctx)
	if err != nil && len(list) == 0 {
		return nil, err
	}
	if code != "" {
		n, ok := attention.Find(list, code)
		if !ok {
			return b.settled(ctx, h, code)
		}
		return b.ask(n, chatOf(h.Chat), h.GUID), nil
	}
	if len(list) == 0 {
		return b.reply(h, "Nothing needs you."), nil
	}
	lines := []string{attention.Count(len(list)) + ":"}
	for _, n := range list {
		lines = append(lines, n.Code+" "+n.Line())
	}
	return b.reply(h, strings.Join(append(lines, "needs CODE shows all of one."), "\n")), nil
}
