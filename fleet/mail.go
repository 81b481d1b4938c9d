package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/words"
	"netsky/spawn"
	"netsky/store"
	"netsky/watch/backoff"
)

// A Mail is the deeds of messages.
type Mail struct{ *Fleet }

// A SendRequest asks for a message to be sent.
type SendRequest struct {
	To          string        `json:"to"` // an agent, or the owner
	Text        string        `json:"text"`
	Kind        string        `json:"kind,omitempty"`        // "": a plain message
	InReplyTo   string        `json:"in_reply_to,omitempty"` // the ID of a message from there, or its beginning
	Thread      string        `json:"thread,omitempty"`      // "": that of the message it answers
	ID          string        `json:"id,omitempty"`          // sending the same again under it has no effect
	RequiresAck bool          `json:"requires_ack,omitempty"`
	Expires     time.Duration `json:"expires,omitzero"` // if it has not been taken by then, it is filed unread
}

// A SendResult is a message that is stored in its mailbox.
type SendResult struct {
	ID    string `json:"id"`
	To    string `json:"to"`
	File  string `json:"file"`
	Again bool   `json:"again,omitempty"` // it was sent before, under this ID

	sent time.Time
}

// Send sends a message. A crash leaves it stored whole, or not at all.
func (m Mail) Send(ctx context.Context, r SendRequest) (v SendResult, err error) {
	kind := envelope.Kind(r.Kind)
	to, err := agent.ParseArgAddress(r.To)
	if err != nil {
		return v, err
	}
	switch {
	case r.InReplyTo == "" && (kind == envelope.KindReply || kind == envelope.KindError):
		return v, usagef("send: kind %q: needs the ID of what it answers", kind)
	case words.Blank(r.Text) && !kind.Control():
		return v, usagef("send: the text is empty")
	case kind.Control() && m.Actor != agent.Owner:
		return v, usagef("send: kind %q: agents can't send it", kind)
	}
	if err := m.Make(); err != nil {
		return v, err
	}
	b := m.Launcher.Bus
	e := envelope.Envelope{
		ID: r.ID, From: m.Actor, To: to, Kind: kind, Text: r.Text, Via: "cli", Time: time.Now(),
		InReplyTo: r.InReplyTo, Thread: r.Thread, RequiresAck: r.RequiresAck,
	}
	if r.Expires > 0 {
		e.Expires = e.Time.Add(r.Expires)
	}
	if e.InReplyTo != "" {
		q, err := bus.FindOne(ctx, b, m.Actor, e.InReplyTo, to)
		switch {
		case err == nil:
			e.InReplyTo, e.Hops, e.Thread = q.ID, q.Hops+1, cmp.Or(e.Thread, q.Thread)
		case errors.Is(err, bus.ErrNoMessage): // another address may have received it
			m.warn("--in-reply-to %s: no message with this id from %s is in the mailbox of %s; sending it anyway", e.InReplyTo, to, m.Actor)
		default:
			return v, fmt.Errorf("not sent: --in-reply-to: %w", err)
		}
	}
	if !e.Kind.Known() {
		m.warn("--kind %s: not a kind netsky knows; the agent gets it as a plain message", e.Kind)
	}
	sent, again, err := b.SendOnce(ctx, e)
	switch {
	case errors.Is(err, bus.ErrUsed):
		return v, usagef("%w", err)
	case err != nil:
		return v, fmt.Errorf("not sent: %w", err)
	}
	v = SendResult{sent.ID, string(to), sent.File, again, e.Time}
	switch d, err := home.Desired(m.Home).Load(string(to)); {
	case again:
		m.warn("%s was used already: %s has that message; nothing was sent again", v.ID, to)
		v.sent = time.Time{} // its answer may be older
	case err == nil && !d.Up && m.Actor == agent.Owner && to.IsAgent(): // nobody reads its mail
		m.warn("%s is down: the message waits in its inbox until `netsky up %[1]s`", to)
	}
	return v, nil
}

// A ReplyRequest answers a message.
type ReplyRequest struct {
	Message string `json:"message"` // its ID, or the beginning, or an agent: the last one from it
	Text    string `json:"text"`
	Error   bool   `json:"error,omitempty"` // what was asked for could not be done
}

// Reply answers a message that the actor has received.
func (m Mail) Reply(ctx context.Context, r ReplyRequest) (v SendResult, err error) {
	if words.Blank(r.Text) {
		return v, usagef("reply: the text is empty")
	}
	b := m.Launcher.Bus
	q, err := bus.FindOne(ctx, b, m.Actor, r.Message, "")
	if from, unnamed := agent.ParseArgAddress(r.Message); unnamed == nil && errors.Is(err, bus.ErrNoMessage) {
		if q, err = bus.FindLast(ctx, b, m.Actor, from); err == nil {
			m.warn("answering %s: %s", q.ID, envelope.Line(q.Text, 80))
		}
	}
	if err != nil {
		return v, err
	}
	e := envelope.Envelope{
		From: m.Actor, To: q.From, Kind: envelope.KindReply, Text: r.Text, InReplyTo: q.ID, Thread: q.Thread,
		Hops: q.Hops + 1, Via: "cli", Time: time.Now(),
	}
	switch {
	case r.Error:
		e.Kind = envelope.KindError
	case m.Actor == agent.Owner && !q.Kind.Answerable(): // the next message of the thread: agents don't answer replies
		e.Kind, e.Hops = envelope.KindMessage, 0
	}
	sent, err := b.Send(ctx, e)
	if err != nil {
		return v, fmt.Errorf("not sent: %w", err)
	}
	return SendResult{ID: sent.ID, To: string(q.From), File: sent.File, sent: e.Time}, nil
}

// An AskRequest asks an agent something.
type AskRequest struct {
	Agent agent.ID      `json:"agent"`
	Text  string        `json:"text"`
	Wait  time.Duration `json:"wait,omitzero"`   // for the answer; 0: 10 minutes
	Queue bool          `json:"queue,omitempty"` // also if the agent is not up
}

// An AskResult is the answer.
type AskResult struct {
	Answer envelope.Envelope `json:"answer"`
	Entry  bus.Entry         `json:"-"` // in the mailbox of whoever asked, where it is new
}

// Ask sends an agent a message and waits for its answer. The error matches [ErrUnanswered] if there is
// none in time; the message stays sent.
func (m Mail) Ask(ctx context.Context, r AskRequest) (v AskResult, err error) {
	switch {
	case words.Blank(r.Text):
		return v, usagef("ask: the text is empty")
	case m.Actor == r.Agent:
		return v, usagef("ask: %s can't ask itself", m.Actor)
	case !r.Agent.IsAgent():
		return v, usagef("ask: %q is no agent", r.Agent)
	}
	if err := m.Make(); err != nil {
		return v, err
	}
	l := m.Launcher
	var st spawn.Status
	if r.Agent.Host() == "" {
		list, err := l.Inspect(ctx)
		if err != nil {
			m.UI.Warn(err)
		}
		st = list.Find(r.Agent)
	}
	returns := st.State == agent.Dead && backoff.Soon(l.Home, r.Agent, st.Start)
	if !st.Alive() && !r.Queue && !returns && r.Agent.Host() == "" {
		what := "not sent"
		if l.Bus.Exists(r.Agent) {
			what += " (--queue sends it anyway)"
		}
		return v, spawn.NeedsUp(st, what)
	}
	q := question{Mail: m, AskRequest: r, up: st.Alive(), returns: returns, start: st.Start}
	q.Wait = cmp.Or(r.Wait, 10*time.Minute)
	v.Entry, err = q.put(ctx)
	v.Answer = v.Entry.Envelope
	if errors.Is(err, ErrUnanswered) {
		err = partly(err)
	}
	return v, err
}

// An AwaitRequest waits for what becomes of a message that was sent.
type AwaitRequest struct {
	SendResult
	Until   string        `json:"until"` // "delivered": the agent has it; or "answered"
	Timeout time.Duration `json:"timeout,omitzero"`
}

// An AwaitResult says what became of it.
type AwaitResult struct {
	Text string `json:"text"`
}

// Await waits until a message is delivered, or answered.
func (m Mail) Await(ctx context.Context, r AwaitRequest) (v AwaitResult, err error) {
	b := m.Launcher.Bus
	to, err := agent.ParseArgAddress(r.To)
	if err != nil {
		return v, err
	}
	spots, arrived := bus.Spots(to), func() (string, error) { return m.delivered(to, r.SendResult) }
	switch {
	case r.Until == "answered":
		spots, arrived = bus.Spots(m.Actor), func() (string, error) {
			e, ok, err := b.FindAnswer(ctx, to, m.Actor, r.ID, r.sent)
			if !ok {
				return "", err
			}
			return fmt.Sprintf("answered by %s: %s", e.Envelope.From, e.Envelope.ID), err
		}
	case r.Until != "delivered":
		return v, usagef("await: %q: must be delivered or answered", r.Until)
	case to.Host() != "":
		spots = append(spots, bus.Spot{Dir: path.Dir(home.Mailbox(to))}) // what its host reports
		arrived = func() (string, error) { return m.deliveredThere(to, r.SendResult) }
	case r.Again:
		return AwaitResult{"delivered"}, nil
	}
	limit := cmp.Or(r.Timeout, 10*time.Minute)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	w, err := b.Watch(ctx, spots...)
	if err != nil {
		return v, err
	}
	defer w.Close()
	for {
		select {
		case <-ctx.Done():
			return v, partly(fmt.Errorf("%s: sent, but not %s within %v%s", r.ID, r.Until, limit, m.whereabouts(to, r.SendResult)))
		case <-w.C:
		}
		if v.Text, err = arrived(); v.Text != "" || err != nil && ctx.Err() == nil {
			return v, err
		}
	}
}

func (m Mail) delivered(to agent.ID, r SendResult) (string, error) {
	e, err := m.Launcher.Bus.Find(to, r.File)
	switch {
	case err != nil:
		return "", err
	case e.Place == bus.Poison:
		return "", fmt.Errorf("%s: poisoned: %s", r.ID, e.Why)
	case e.Place == bus.Delivered && e.Why != "":
		return "", fmt.Errorf("%s: filed unread: %s", r.ID, e.Why)
	case e.Place == bus.Delivered:
		return "delivered", nil
	}
	return "", nil
}

// deliveredThere is delivered for an agent on another host.
func (m Mail) deliveredThere(to agent.ID, r SendResult) (string, error) {
	last, ok, err := m.Launcher.Bus.LastReport(to, m.Actor, r.ID)
	switch {
	case err != nil || !ok && r.Again:
		return "", err
	case !ok:
		_, err := m.delivered(to, r) // where it waits for the link
		return "", err
	}
	switch store.DeliveryState(last.State) {
	case store.Delivered:
		return "delivered", nil
	case store.Queued, store.Claimed:
		return "", nil
	}
	return "", fmt.Errorf("%s: %s on %s: %s", r.ID, last.State, to.Host(), last.Reason)
}

// whereabouts says, behind a comma, where a message to another host is; "" for one to this.
func (m Mail) whereabouts(to agent.ID, r SendResult) string {
	if to.Host() == "" {
		return ""
	}
	e, _ := m.Launcher.Bus.Find(to, r.File)
	last, _, _ := m.Launcher.Bus.LastReport(to, m.Actor, r.ID)
	return ", as it is " + elsewhere(to.Host(), e.Place, last)
}

// elsewhere says where a message is that was sent to another host.
func elsewhere(host string, here bus.Place, last bus.DeliveryReport) string {
	switch state := store.DeliveryState(last.State); {
	case state == store.Queued:
		return "in its inbox on " + host
	case state == store.Claimed:
		return "in progress on " + host
	case state != "":
		return last.State + " on " + host
	case here == bus.Delivered:
		return "on its way to " + host
	}
	return "waiting for the link to " + host + " (`netsky link` shows it)"
}

// wholeID returns the ID of the message that begins so, if the records have one; else the word itself:
// the mailboxes know whole IDs.
func (m Mail) wholeID(ctx context.Context, word string) (string, error) {
	db, err := FreshRecords(ctx, m.Home, m.bus, m.UI)
	if err != nil {
		return word, nil
	}
	defer db.Close()
	s, err := db.Resolve(ctx, word)
	switch {
	case errors.Is(err, store.ErrAmbiguous):
		return "", usagef("%w", err)
	case err != nil || s.Kind != store.SubjectMessage:
		return word, nil
	}
	return s.ID, nil
}

// A PoisonRequest is about a message that netsky could not read.
type PoisonRequest struct {
	Mailbox string `json:"mailbox"` // an agent, or the owner
	File    string `json:"file"`
}

// A PoisonResult says where it is.
type PoisonResult struct {
	Place string `json:"place,omitempty"` // "": it is deleted
}

func (r PoisonRequest) parse() (agent.ID, error) {
	id, err := agent.ParseArgAddress(r.Mailbox)
	if err == nil && (filepath.Base(r.File) != r.File || filepath.Ext(r.File) != ".json") {
		err = usagef("%q: needs a file name from `netsky channel poison ls`", r.File)
	}
	return id, err
}

// Requeue moves a message that is valid now back to where it was found.
func (m Mail) Requeue(_ context.Context, r PoisonRequest) (v PoisonResult, err error) {
	id, err := r.parse()
	if err != nil {
		return v, err
	}
	b := m.Launcher.Bus
	place, err := b.PoisonRetry(id, r.File)
	if !errors.Is(err, fs.ErrNotExist) {
		return PoisonResult{string(place)}, err
	}
	for _, p := range append(bus.Arrived(), bus.Outbox, bus.Sent) {
		if _, elsewhere := b.Read(id, p, r.File); elsewhere == nil {
			return v, fmt.Errorf("%w; a file of that name is in %s (a poisoned file moves back by itself once it is valid)", err, p)
		}
	}
	return v, err
}

// Drop deletes a message that netsky could not read.
func (m Mail) Drop(_ context.Context, r PoisonRequest) (v PoisonResult, err error) {
	id, err := r.parse()
	if err == nil {
		err = m.Launcher.Bus.PoisonDrop(id, r.File)
	}
	return v, err
}
