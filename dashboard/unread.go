package dashboard

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"netsky/agent"
	"netsky/dashboard/access"
	"netsky/home"
	"netsky/store"
)

// maxUnread is how many messages are opened; older ones are only counted.
const maxUnread = 100

// An unread reads messages for pages, with their states. It knows which of the owner's mail is not marked as
// read: `netsky inbox` marks what it has shown, a page only what it is told to.
type unread struct {
	home home.Dir
	bus  Bus
	log  *slog.Logger

	mu    sync.Mutex        // guards the fields below
	known map[string]letter // parsed files
}

// files lists the files not marked as read, the newest first.
func (u *unread) files() ([]string, error) {
	names, err := u.bus.Unread()
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(y, x) })
	return names, err
}

// mail returns how many messages are unread, and the sender and id of the newest.
func (u *unread) mail() (n int, newest []letter, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	files, err := u.files()
	if err != nil {
		return 0, nil, err
	}
	known := map[string]letter{}
	for i, f := range files {
		if i == maxUnread {
			n += len(files) - i
			break
		}
		l, ok := u.letter(f)
		if !ok {
			continue // it has just been moved, and is found at the next call
		}
		if known[f] = l; l.Unread {
			n++
			newest = append(newest, l)
		}
	}
	u.known = known
	return n, newest, nil
}

// letter parses a file. One that is not a message is not shown as one.
func (u *unread) letter(name string) (letter, bool) {
	if l, ok := u.known[name]; ok {
		return l, true
	}
	e, err := u.bus.Find(agent.Owner, name)
	if err != nil {
		return letter{}, false
	}
	return letter{
		Message: store.Message{ID: e.Envelope.ID, From: e.Envelope.From},
		Unread:  e.IsMessage(), File: name,
	}, true
}

// markRead marks the message with that id and sender as read, as `netsky inbox` does
// for what it has shown, or with upTo all files up to that one. It does nothing for a
// message that is marked already.
func (u *unread) markRead(id string, from agent.ID, upTo string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	files, err := u.files()
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		if upTo != "" && f <= upTo {
			names = append(names, f)
		} else if upTo == "" {
			if l, ok := u.letter(f); ok && l.ID == id && l.From == from {
				names = append(names, f)
			}
		}
	}
	return home.ShownMail(u.home).Mark(names...)
}

// list returns messages with their states.
func (u *unread) list(ctx context.Context, db Reader, f store.MessageFilter) ([]letter, error) {
	l, err := db.Messages(ctx, f)
	if err != nil {
		return nil, err
	}
	return u.letters(ctx, db, l.Items)
}

func (u *unread) letters(ctx context.Context, db Reader, list []store.Message) ([]letter, error) {
	sent := make([]store.Sent, len(list))
	for i, m := range list {
		sent[i] = store.Sent{ID: m.ID, From: m.From}
	}
	ends, err := db.Deliveries(ctx, store.DeliveryFilter{Of: sent, Page: store.Page{Limit: 1000}})
	if err != nil {
		return nil, err
	}
	last := make(map[store.Sent]store.Delivery, len(ends.Items))
	for _, d := range slices.Backward(ends.Items) { // the most recently changed is first
		last[store.Sent{ID: d.Message, From: d.From}] = d
	}
	all := make([]letter, len(list))
	for i, m := range list {
		d := last[sent[i]]
		all[i] = letter{Message: m, State: d.State, Why: d.Reason}
	}
	u.mark(all)
	return all, nil
}

// mark marks the messages that the owner has not been shown. If that is unknown,
// the page reports it.
func (u *unread) mark(list []letter) {
	if !slices.ContainsFunc(list, func(l letter) bool { return l.To == agent.Owner }) {
		return
	}
	_, newest, _ := u.mail()
	for i, l := range list {
		list[i].Unread = l.To == agent.Owner &&
			slices.ContainsFunc(newest, func(u letter) bool { return u.ID == l.ID && u.From == l.From })
	}
}

// A letter is a message and its state, "" if none is recorded.
type letter struct {
	store.Message
	State  store.DeliveryState
	Why    string
	Unread bool // not yet shown to the owner
	File   string
}

// form is POST /read: it marks the owner's mail as read, either one message by its
// id and sender, or with upto all that had arrived when the page was rendered. It
// redirects to the page that the form was on.
func (u *unread) form(w http.ResponseWriter, r *http.Request) {
	f, status, err := formOf(r, "id", "from", "upto")
	if err == nil {
		from := agent.ID(f["from"])
		if f["upto"] == "" && (f["id"] == "" || !from.IsAgent()) {
			access.Refuse(w, r, http.StatusBadRequest, "name a message by id and from, or several by upto")
			return
		}
		if err, status = u.markRead(f["id"], from, f["upto"]), http.StatusInternalServerError; err == nil {
			redirect(w, cameFrom(r))
			return
		}
		u.log.Warn("read", "error", err)
	}
	access.Refuse(w, r, status, "not marked as read: "+err.Error())
}
