package cli

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/cli/console"
	"netsky/cli/story"
	"netsky/store"
)

// maxSent is how many messages `inbox --sent` lists at once.
const maxSent = 40

// A sentView is a message that the owner sent, with its deliveries.
type sentView struct {
	store.Message
	Deliveries []store.Delivery `json:"deliveries"`
}

// inboxSent lists the newest messages that the owner sent, oldest first, with what became
// of each.
func (a *app) inboxSent(c *cli.Context) error {
	ctx := c.Context
	h, err := a.home()
	if err != nil {
		return err
	}
	db, err := a.freshRecords(ctx, h)
	if errors.Is(err, fs.ErrNotExist) {
		a.warn("no records yet: no agent was ever started here")
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	f := store.MessageFilter{From: agent.Owner, Page: store.Page{Limit: maxSent, Cursor: c.String("cursor")}}
	list, err := db.Messages(ctx, f)
	if err != nil {
		return err
	}
	views := make([]sentView, 0, len(list.Items))
	for _, m := range list.Items {
		if envelope.Kind(m.Kind).Control() {
			continue // an interrupt or a down; `netsky log` has it
		}
		d, err := db.Deliveries(ctx, store.DeliveryFilter{Message: m.ID, From: agent.Owner})
		if err != nil {
			return err
		}
		views = append(views, sentView{m, d.Items})
	}
	if c.Bool("json") {
		return a.writeJSON(map[string]any{"messages": views, "cursor": list.Cursor})
	}
	slices.Reverse(views)
	if list.Cursor != "" {
		a.warn("older ones are not listed; `netsky find WORD` finds them")
	}
	for _, v := range views {
		became := becameOf(v.Deliveries)
		if len(v.Deliveries) > 0 && v.Deliveries[0].State == store.Answered {
			m, err := db.Message(ctx, v.Deliveries[0].Answer)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if envelope.Kind(m.Kind) == envelope.KindError {
				became = "answered with an error: " + console.Brief(console.FirstLine(m.Text), 100)
			}
		}
		a.print("%s  to %s  %s  (%s)", story.Stamp(v.Time), v.To, became, v.ID)
		a.print("    %s", console.Brief(strings.Join(strings.Fields(v.Text), " "), 160))
	}
	if len(views) == 0 {
		a.print("you have sent nothing yet; `netsky ask AGENT TEXT` sends a message")
	}
	return nil
}

// becameOf describes what became of a message.
func becameOf(list []store.Delivery) string {
	if len(list) == 0 {
		return "not delivered yet"
	}
	d := list[0]
	switch d.State {
	case store.Queued:
		return "waiting in the inbox"
	case store.Claimed:
		return "taken"
	case store.Answered:
		return "answered by " + d.Answer
	}
	return string(d.State) + console.Note(console.FirstLine(d.Reason))
}
