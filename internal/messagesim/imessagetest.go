// This file is a phone for tests: a transport in memory, and a gate that admits its
// owner. It stands for no transport of its own; what real ones do is tested beside them.

package messagesim

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/phone"
	"netsky/phone/chat"
)

// Me is the owner's handle.
const Me = "+15550100"

// Mine is the owner's own chat.
var Mine, _ = chat.KeyOf("iMessage;-;" + Me)

// A Wire is a transport that a test drives: what it puts in arrives, in order, and what is sent
// is kept. Its memory outlives the bridges that use it, as a phone's does.
type Wire struct {
	Mu     sync.Mutex // guards the fields below
	Rows   []chat.Message
	Out    []chat.Outgoing
	Sent   map[string]string                // guid by what was sent
	OnSend func(chat.Outgoing) chat.Receipt // decides, if it returns a state
	Fail   error                            // of reading
	Blind  bool                             // it cannot find what it sent
	Bare   []string                         // guids of texts that lost their choices
	Stuck  chan struct{}                    // a file comes when it is closed; nil is at once
	wake   chan struct{}
}

// NewWire makes a wire on which nothing has been said.
func NewWire() *Wire { return &Wire{Sent: map[string]string{}, wake: make(chan struct{}, 1)} }

// Put lets messages arrive, and returns the guid of the last one. What a message leaves open is
// the owner's, now.
func (w *Wire) Put(rows ...chat.Message) (guid string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, m := range rows {
		if m.GUID == "" {
			m.GUID = fmt.Sprintf("in-%d", len(w.Rows)+1)
		}
		if m.Kind == "" {
			m.Kind = chat.Text
		}
		if m.Service == "" {
			m.Service = chat.ServiceIMessage
		}
		if m.Chat.Key == "" {
			m.Chat = Mine
		}
		if m.At.IsZero() {
			m.At = time.Now()
		}
		if m.Handle == "" && !m.FromMe {
			m.Handle = Me
		}
		w.Rows = append(w.Rows, m)
		guid = m.GUID
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return guid
}

// Text puts a text of the owner's and returns its guid.
func (w *Wire) Text(s string) string { return w.Put(chat.Message{Text: s}) }

// Texts returns what was sent.
func (w *Wire) Texts() (list []string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, o := range w.Out {
		list = append(list, o.Text)
	}
	return list
}

// GUIDOf returns the guid of the first sent text with this in it, "" if there is none yet.
func (w *Wire) GUIDOf(part string) string {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	i := slices.IndexFunc(w.Out, func(o chat.Outgoing) bool { return strings.Contains(o.Text, part) })
	if i < 0 {
		return ""
	}
	return w.Sent[w.Out[i].ID]
}

func (w *Wire) Name() string { return "test" }

func (w *Wire) Next(ctx context.Context, cursor string) (chat.Batch, error) {
	from := 0
	fmt.Sscan(cursor, &from)
	for {
		w.Mu.Lock()
		rows, err := slices.Clone(w.Rows[min(from, len(w.Rows)):]), w.Fail
		w.Mu.Unlock()
		switch {
		case err != nil:
			return chat.Batch{}, err
		case cursor == "":
			return chat.Batch{Cursor: fmt.Sprint(len(rows))}, nil
		case len(rows) > 0:
			return chat.Batch{Messages: rows, Cursor: fmt.Sprint(from + len(rows))}, nil
		}
		select {
		case <-ctx.Done():
			return chat.Batch{}, ctx.Err()
		case <-w.wake:
		case <-time.After(20 * time.Millisecond): // rows that a test has added by itself
		}
	}
}

func (w *Wire) Mark(context.Context) (string, error) { return "", nil }

func (w *Wire) Send(_ context.Context, o chat.Outgoing) (chat.Receipt, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.OnSend != nil {
		if r := w.OnSend(o); r.State != "" {
			return r, nil
		}
	}
	w.Out = append(w.Out, o)
	guid := fmt.Sprintf("out-%d", len(w.Out))
	w.Sent[o.ID] = guid
	return chat.Receipt{State: chat.Sent, GUID: guid}, nil
}

func (w *Wire) Find(_ context.Context, o chat.Outgoing) (chat.Receipt, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Blind {
		return chat.Receipt{}, chat.ErrCannotLook
	}
	if guid := w.Sent[o.ID]; guid != "" {
		return chat.Receipt{State: chat.Sent, GUID: guid}, nil
	}
	return chat.Receipt{State: chat.Failed}, nil
}

func (w *Wire) ClearChoices(_ context.Context, _ chat.Chat, guid string) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Bare = append(w.Bare, guid)
	return nil
}

func (w *Wire) History(context.Context, chat.Chat, int) ([]chat.Message, error) {
	return nil, chat.ErrNoHistory
}

func (w *Wire) Open(ctx context.Context, a chat.Attachment, _ int64) (io.ReadCloser, error) {
	w.Mu.Lock()
	stuck := w.Stuck
	w.Mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return io.NopCloser(strings.NewReader("content of " + a.Name)), nil
}

func (w *Wire) Check(context.Context) []chat.Fact { return nil }
func (w *Wire) Close() error                      { return nil }

// A Gate admits the owner.
type Gate struct {
	Also    string     // a second handle of theirs
	Mu      sync.Mutex // guards the fields below
	Err     error
	Offered []string // who else wrote, and what
}

func (g *Gate) Speakers() (phone.Speakers, error) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	return g, g.Err
}

func (g *Gate) OwnerChat(c chat.Chat) bool { return c.Direct && g.May(c.Identifier) }
func (g *Gate) May(handle string) bool     { return handle == Me || g.Also != "" && handle == g.Also }

func (g *Gate) Offer(_ context.Context, m chat.Message) error {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.Offered = append(g.Offered, m.Handle+" "+m.Text)
	return nil
}
