package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
)

// mail is an agent's messages with the others and the owner.
type mail struct {
	self agent.ID
	home home.Dir
	bus  *bus.Bus
	box  Mail // nil: another process holds the mailbox

	answering sync.Mutex // makes looking for an answer and giving one a single step
}

// tools are those of an agent's mail.
func (m *mail) tools() []tool {
	return []tool{
		{
			name: "send",
			description: "Send a message to another agent or, if you are allowed to, to the owner. When it says sent, the message is stored in the recipient's mailbox; " +
				"an answer arrives later as a message, so do not wait for it. To answer a message use reply.",
			schema: sendSchema,
			run:    with("send", m.send),
		},
		{
			name: "reply",
			description: "Answer a message that you received. The answer goes to its sender, also if that is the owner. " +
				"Answer each message that wants an answer once, when you have the result; a second reply to the same message, with another text, is sent as a further message.",
			schema: replySchema,
			run:    with("reply", m.reply),
		},
		{
			name: "inbox",
			description: "Return the messages that wait for you. Call it when you are told that messages wait; " +
				"otherwise they are delivered to you and this returns none.",
			schema: `{"type": "object", "properties": {}, "additionalProperties": false}`,
			raw:    true,
			run:    with("inbox", m.inbox),
		},
	}
}

const sendSchema = `{
	"type": "object",
	"properties": {
		"to": {"type": "string", "description": "the recipient: agent0, agent1, …, agentinfinity or owner; \"3\" is agent3; agent3@build1 is on another host of the team"},
		"text": {"type": "string", "description": "the complete message: the recipient sees nothing else from you"},
		"kind": {"type": "string", "enum": ["message", "brief"], "description": "brief assigns work and is always answered; message (the default) is anything else"},
		"requires_ack": {"type": "boolean", "description": "you want an answer to this message"}
	},
	"required": ["to", "text"],
	"additionalProperties": false
}`

type sendArgs struct {
	To          string `json:"to"`
	Text        string `json:"text"`
	Kind        string `json:"kind"`
	RequiresAck bool   `json:"requires_ack"`
}

func (m *mail) send(ctx context.Context, in sendArgs) (string, error) {
	to, err := address("send: to", in.To)
	if err != nil {
		return "", err
	}
	if to == m.self {
		return "", argumentf("send: to: %s is you; to remember something use note", to)
	}
	if strings.TrimSpace(in.Text) == "" {
		return "", argumentf("not sent: text: empty")
	}
	e := envelope.Envelope{From: m.self, To: to, Text: in.Text, RequiresAck: in.RequiresAck, Via: "mcp"}
	switch in.Kind {
	case "", "message":
	case "brief":
		e.Kind = envelope.KindBrief
	default:
		return "", argumentf("send: kind: %q: must be message or brief", in.Kind)
	}
	id, err := m.publish(ctx, e)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("sent to %s, id %s%s", to, id, m.absence(to)), nil
}

// address parses an address as a model writes it.
func address(what, arg string) (agent.ID, error) {
	arg = strings.TrimSpace(arg)
	if arg == "" {
		return "", argumentf("%s: missing", what)
	}
	id, err := agent.ParseArgAddress(arg)
	if err != nil {
		return "", argumentf("%s: %v", what, err)
	}
	return id, nil
}

// publish sends an envelope; its error says whether it was sent.
func (m *mail) publish(ctx context.Context, e envelope.Envelope) (id string, err error) {
	r, err := m.bus.Send(ctx, e)
	if err == nil {
		return r.ID, nil
	}
	for _, refusal := range []error{envelope.ErrInvalid, bus.ErrNotAllowed, bus.ErrNoMailbox, bus.ErrBrake} {
		if errors.Is(err, refusal) {
			return "", sendError{fmt.Errorf("not sent: %w", err), e}
		}
	}
	return "", sendError{fmt.Errorf("probably not sent: %w", err), e}
}

// A sendError is a failed send.
type sendError struct {
	error
	envelope envelope.Envelope
}

func (e sendError) Unwrap() error { return e.error }

// absence returns what to add to a result about a recipient that does not run now.
func (m *mail) absence(to agent.ID) string {
	if to == agent.Owner {
		return "; it is in the owner's inbox"
	}
	if host := to.Host(); host != "" {
		return "; it goes to " + host + " as soon as both are connected"
	}
	k, err := m.home.LoadKeeper(to)
	if err == nil && k.EndedMS == 0 && k.Alive() {
		return ""
	}
	return fmt.Sprintf("; %s is not running now and gets it when it is started", to)
}

const replySchema = `{
	"type": "object",
	"properties": {
		"id": {"type": "string", "description": "the id of the message you answer, or at least its first six characters"},
		"text": {"type": "string", "description": "the complete answer: the recipient sees nothing else from you"},
		"error": {"type": "boolean", "description": "true if what was asked for could not be done; say why in text"}
	},
	"required": ["id", "text"],
	"additionalProperties": false
}`

type replyArgs struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Error bool   `json:"error"`
}

func (m *mail) reply(ctx context.Context, in replyArgs) (string, error) {
	q, err := m.received(ctx, strings.TrimSpace(in.ID))
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(in.Text) == "" {
		return "", argumentf("reply: text: missing")
	}
	e := envelope.Envelope{
		From: m.self, To: q.From, Kind: envelope.KindReply, Text: in.Text, Via: "mcp",
		InReplyTo: q.ID, Thread: q.Thread, Hops: q.Hops + 1,
	}
	if in.Error {
		e.Kind = envelope.KindError
	}
	// Two simultaneous replies to one message would both count as the first.
	m.answering.Lock()
	defer m.answering.Unlock()
	before, again := m.answered(ctx, q)
	if again && before.Text == e.Text && before.Kind == e.Kind {
		// A server that was killed before it could say so has sent it.
		return fmt.Sprintf("answered %s of %s before, with this very text: id %s; nothing more was sent", q.ID, q.From, before.ID), nil
	}
	if !again {
		e.ID = envelope.AnswerID(m.self, q.ID, envelope.KindReply)
	}
	id, err := m.publish(ctx, e)
	if err != nil {
		return "", err
	}
	if m.box != nil {
		m.box.Answered(q.ID)
	}
	if again {
		return fmt.Sprintf("sent to %s as a further message, id %s: %s was already answered%s", q.From, id, q.ID, m.absence(q.From)), nil
	}
	return fmt.Sprintf("answered %s of %s, id %s%s", q.ID, q.From, id, m.absence(q.From)), nil
}

// answered returns this agent's newest answer to the message, in whatever way it was given. If
// unknown there is none: the answer's ID keeps it from counting twice.
func (m *mail) answered(ctx context.Context, q envelope.Envelope) (envelope.Envelope, bool) {
	e, ok, err := m.bus.AnswerTo(ctx, m.self, q)
	return e.Envelope, ok && err == nil
}

// received finds the message to this agent with that ID, or the only one whose ID
// begins with it.
func (m *mail) received(ctx context.Context, id string) (envelope.Envelope, error) {
	if id == "" {
		return envelope.Envelope{}, argumentf("reply: id: missing%s", m.owed())
	}
	e, err := bus.FindOne(ctx, m.bus, m.self, id, "")
	var many *bus.AmbiguousError
	switch {
	case errors.Is(err, bus.ErrNoMessage):
		return e, argumentf("reply: id: %q: you have received no message with that id%s", envelope.Line(id, 60), m.owed())
	case errors.As(err, &many) && len(many.Senders) > 0:
		return e, argumentf("reply: id: %q: %d agents sent you a message with that id; use send to answer one", envelope.Line(id, 60), len(many.Senders))
	case errors.As(err, &many):
		return e, argumentf("reply: id: %q: %d messages have ids that begin with this; give the whole id", envelope.Line(id, 60), many.Begin)
	}
	return e, err
}

// owed lists the messages that wait for an answer.
func (m *mail) owed() string {
	if m.box == nil {
		return ""
	}
	const most = 10
	ids := m.box.Owed()
	switch {
	case len(ids) == 0:
		return "; no message waits for an answer"
	case len(ids) > most:
		return fmt.Sprintf("; these wait for an answer: %s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
	}
	return "; these wait for an answer: " + strings.Join(ids, ", ")
}

func (m *mail) inbox(ctx context.Context, _ struct{}) (string, error) {
	if m.box == nil {
		return "messages are delivered to you as turns; there is nothing to fetch here", nil
	}
	texts, left, err := m.box.Waiting(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("inbox: %w", err)
	case texts == "" && left == 0:
		return "no messages are waiting", nil
	case texts == "":
		return fmt.Sprintf("%d messages are waiting and will be delivered to you; there is nothing to do", left), nil
	case left > 0:
		return fmt.Sprintf("%s\n%d more messages are waiting: handle these, then call inbox again", texts, left), nil
	}
	return texts, nil
}
