package phone_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"netsky/imessage"
	"netsky/imessage/chat"
)

const me = "+15550100"

var mine, _ = chat.KeyOf("iMessage;-;" + me)

// A gate admits the owner.
type gate struct{}

func (gate) Speakers() (imessage.Speakers, error)      { return gate{}, nil }
func (gate) OwnerChat(c chat.Chat) bool                { return c.Direct && c.Identifier == me }
func (gate) May(handle string) bool                    { return handle == me }
func (gate) Offer(context.Context, chat.Message) error { return nil }

// A wire is a phone in memory, which outlives the bridges.
type wire struct {
	mu   sync.Mutex // guards the fields below
	rows []chat.Message
	out  []chat.Outgoing
	sent map[string]string // guid by what was sent
}

func newWire() *wire { return &wire{sent: map[string]string{}} }

func (w *wire) put(m chat.Message) (guid string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m.GUID, m.Service, m.Chat, m.Handle, m.At = fmt.Sprintf("in-%d", len(w.rows)+1), chat.ServiceIMessage, mine, me, time.Now()
	w.rows = append(w.rows, m)
	return m.GUID
}

// guidOf returns the guid of the text with this in it, "" if there is none yet.
func (w *wire) guidOf(part string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.out, func(o chat.Outgoing) bool { return strings.Contains(o.Text, part) })
	if i < 0 {
		return ""
	}
	return w.sent[w.out[i].ID]
}

func (w *wire) texts() (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.out {
		list = append(list, o.Text)
	}
	return list
}

func (w *wire) Name() string { return "test" }

func (w *wire) Next(ctx context.Context, cursor string) (chat.Batch, error) {
	from := 0
	fmt.Sscan(cursor, &from)
	for {
		w.mu.Lock()
		rows := slices.Clone(w.rows[min(from, len(w.rows)):])
		w.mu.Unlock()
		if len(rows) > 0 {
			return chat.Batch{Messages: rows, Cursor: fmt.Sprint(from + len(rows))}, nil
		}
		select {
		case <-ctx.Done():
			return chat.Batch{}, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (w *wire) Mark(context.Context) (string, error) { return "", nil }

func (w *wire) Send(_ context.Context, o chat.Outgoing) (chat.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out = append(w.out, o)
	guid := fmt.Sprintf("out-%d", len(w.out))
	w.sent[o.ID] = guid
	return chat.Receipt{State: chat.Sent, GUID: guid}, nil
}

func (w *wire) Find(_ context.Context, o chat.Outgoing) (chat.Receipt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if guid := w.sent[o.ID]; guid != "" {
		return chat.Receipt{State: chat.Sent, GUID: guid}, nil
	}
	return chat.Receipt{State: chat.Failed}, nil
}

func (w *wire) History(context.Context, chat.Chat, int) ([]chat.Message, error) {
	return nil, chat.ErrNoHistory
}
func (w *wire) Open(context.Context, chat.Attachment, int64) (io.ReadCloser, error) {
	return nil, chat.ErrNoHistory
}
func (w *wire) Check(context.Context) []chat.Fact { return nil }
func (w *wire) Close() error                      { return nil }
