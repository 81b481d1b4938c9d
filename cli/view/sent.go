package view

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/words"
	"netsky/store"
)

// A Sent is a message that the owner sent, with its deliveries.
type Sent struct {
	store.Message
	Deliveries []store.Delivery `json:"deliveries"`

	became string
}

// SentMessages returns a page of the messages that the owner sent, newest first, and the
// cursor of the next; h has what agents hold of them. Control messages are left out: `netsky
// log` has them.
func SentMessages(ctx context.Context, db *store.DB, h home.Dir, page store.Page) (sent []Sent, cursor string, err error) {
	list, err := db.Messages(ctx, store.MessageFilter{From: agent.Owner, Page: page})
	if err != nil {
		return nil, "", err
	}
	sent = make([]Sent, 0, len(list.Items))
	for _, m := range list.Items {
		if envelope.Kind(m.Kind).Control() || m.Via == "code" { // the watchdog speaks to agentinfinity in the owner's name
			continue
		}
		d, err := db.Deliveries(ctx, store.DeliveryFilter{Message: m.ID, From: agent.Owner})
		if err != nil {
			return nil, "", err
		}
		v := Sent{Message: m, Deliveries: d.Items, became: becameOf(d.Items)}
		if len(d.Items) > 0 && (d.Items[0].State == store.Claimed || d.Items[0].State == store.Delivered) {
			if in, _ := courier.ReadLedger(h, m.To).Find(m.ID); in.State == courier.StateHeld { // its turn failed of that
				v.became = courier.HeldWords(in.Held.Fault.Until()) + ": " + in.Held.Fault.Reason.Text()
			}
		}
		if len(d.Items) > 0 && (d.Items[0].State == store.Queued || d.Items[0].State == store.Claimed) && v.became == becameOf(d.Items) {
			if r, err := h.LoadReport(m.To); err == nil && r.State == agent.Blocked && r.Fault.Reason != "" {
				r.Fault.Text = ""
				v.became = "waiting: " + r.Fault.String()
			} else if k, err := h.LoadKeeper(m.To); err == nil && k.EndedMS != 0 {
				v.became = fmt.Sprintf("waiting: %s is not running", m.To)
			}
		}
		if len(d.Items) > 0 && d.Items[0].State == store.Answered {
			answer, err := db.Message(ctx, d.Items[0].Answer)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, "", err
			}
			if envelope.Kind(answer.Kind) == envelope.KindError {
				v.became = "answered with an error: " + words.Brief(words.FirstLine(answer.Text), 100)
			}
		}
		sent = append(sent, v)
	}
	return sent, list.Cursor, nil
}

// Lines returns what became of the message, and its beginning.
func (s Sent) Lines() []string {
	return []string{
		Stamp(s.Time) + "  to " + string(s.To) + "  " + s.became + "  (" + s.ID + ")",
		"    " + words.Brief(strings.Join(strings.Fields(s.Text), " "), 160),
	}
}

// becameOf describes what became of a message.
func becameOf(list []store.Delivery) string {
	if len(list) == 0 {
		return "not delivered yet"
	}
	d := list[0]
	switch d.State {
	case store.Queued:
		if d.Target.Host() != "" {
			return "waiting for the link to " + d.Target.Host()
		}
		return "waiting in the inbox"
	case store.SentOn:
		return "on its way to " + d.Target.Host()
	case store.Arrived:
		return "waiting in the inbox on " + d.Target.Host()
	case store.Claimed:
		return "in progress"
	case store.Answered:
		return "answered by " + d.Answer
	}
	return string(d.State) + words.Note(words.FirstLine(d.Reason))
}
