package attention

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/store"
)

// Asked is mail from an agent that waits for the owner's answer.
type Asked struct {
	ID    string
	From  agent.ID
	Text  string
	Since store.Time
}

// maxMail is how many of the owner's messages are looked at, the newest.
const maxMail = 200

// A Mail finds the questions in the owner's mailbox. It opens each file once.
type Mail struct {
	bus Bus

	mu    sync.Mutex                    // guards the field below
	known map[string]*envelope.Envelope // by file name; nil: not a question, or answered
}

// Bus reads mailboxes. *bus.Bus implements it.
type Bus interface {
	Mail(id agent.ID, unread bool) ([]string, error)
	FindAll(id agent.ID, names []string) ([]bus.Entry, error)
	Answered(ctx context.Context, by agent.ID, q envelope.Envelope) (bool, error)
}

// NewMail returns the owner's mail.
func NewMail(b Bus) *Mail { return &Mail{bus: b} }

// asks reports whether the owner is asked: the sender waits for an answer, or says that it
// is a question, a brief or a request for approval. netsky's own mail about approvals and
// dialogs, here or on another host, has items of its own.
func asks(e envelope.Envelope) bool {
	switch {
	case !e.From.IsAgent() || !e.Kind.Answerable():
		return false
	case e.Kind == envelope.KindApproval:
		return !bus.ByCode(e.Via)
	}
	return e.RequiresAck || e.Kind == envelope.KindBrief || e.Kind == "question"
}

// Questions returns those among the newest messages that the owner has not answered, the
// oldest first.
func (m *Mail) Questions(ctx context.Context) (list []Asked, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	names, err := m.bus.Mail(agent.Owner, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, bus.ErrNoMailbox) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names = names[max(len(names)-maxMail, 0):]
	known, fresh := make(map[string]*envelope.Envelope), []string{}
	for _, name := range names {
		if e, ok := m.known[name]; ok {
			known[name] = e
		} else {
			fresh = append(fresh, name)
		}
	}
	entries, err := m.bus.FindAll(agent.Owner, fresh)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		known[e.Name] = nil
		if e.Err == nil && asks(e.Envelope) {
			known[e.Name] = &e.Envelope
		}
	}
	m.known = known
	for _, name := range names {
		e := known[name]
		if e == nil || slices.ContainsFunc(list, func(q Asked) bool { return q.From == e.From && q.ID == e.ID }) {
			continue
		}
		answered, err := m.bus.Answered(ctx, agent.Owner, *e)
		if err != nil {
			return list, err
		}
		if answered {
			known[name] = nil
			continue
		}
		list = append(list, Asked{ID: e.ID, From: e.From, Text: e.Text, Since: store.At(e.Time)})
	}
	return list, nil
}

func (q Asked) need() Need {
	return Need{
		Kind: Question, About: string(q.From), Agents: []agent.ID{q.From}, Title: phrases[Question].one, Text: strings.TrimSpace(q.Text), Since: q.Since, Message: q.ID,
		Otherwise: string(q.From) + " waits for it", id: []string{string(q.From), q.ID},
		Commands: []Command{{"Answer it", "netsky reply " + q.ID + ` "…"`}},
	}
}
