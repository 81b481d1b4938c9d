// Package bridge sets the phone bridge up as netsky.toml says: which transport, who may speak,
// what does what the owner asks for by text. It holds no state; a crash leaves nothing of its
// own.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/config"
	"netsky/home"
	"netsky/imessage"
	"netsky/imessage/bluebubbles"
	"netsky/imessage/chatdb"
	"netsky/internal/advice"
	"netsky/phone"
	"netsky/phone/access"
	"netsky/phone/chat"
	"netsky/phone/telegram"
	"netsky/store"
)

// A Phone is what netsky.toml says about the owner's phone.
type Phone struct {
	Config   config.Config
	Home     home.Dir
	UserHome string
	Env      []string
}

// ErrOff is returned if netsky.toml enables no phone.
var ErrOff = advice.With(errors.New("no phone is set up: netsky.toml enables neither [imessage] nor [telegram]"),
	"docs/imessage.md shows how to set one up")

// On reports whether a phone is enabled.
func (p Phone) On() bool { return p.Config.IMessage.Enabled || p.Config.Telegram.Enabled }

// Transport returns the configured transport. The caller closes it.
func (p Phone) Transport() (phone.Transport, error) {
	m, t := p.Config.IMessage, p.Config.Telegram
	switch {
	case t.Enabled:
		file, err := config.Path(p.Home, p.UserHome, t.TokenFile)
		if err != nil {
			return nil, err
		}
		return telegram.New(telegram.Options{TokenFile: file, API: t.API, Refuse: p.refuse})
	case !m.Enabled:
		return nil, ErrOff
	case m.Through == config.ThroughBlueBubbles:
		file, err := config.Path(p.Home, p.UserHome, m.PasswordFile)
		if err != nil {
			return nil, err
		}
		return bluebubbles.Open(bluebubbles.Options{URL: m.URL, PasswordFile: file, Refuse: p.refuse})
	}
	db, err := config.Path(p.Home, p.UserHome, m.DB)
	if err != nil {
		return nil, err
	}
	return imessage.New(imessage.Options{DB: chatdb.New(chatdb.Options{Path: db}), Env: p.Env, Refuse: p.refuse}), nil
}

// refuse keeps netsky's own files from being sent, but for those that agents have put into the
// owner's mailbox to be sent.
func (p Phone) refuse(path string) error { return Sendable(p.Home, path, p.Secrets()...) }

// Secrets returns the files that hold the token and the password that netsky.toml names.
func (p Phone) Secrets() (files []string) {
	for _, name := range []string{p.Config.Telegram.TokenFile, p.Config.IMessage.PasswordFile} {
		if file, err := config.Path(p.Home, p.UserHome, name); err == nil && name != "" {
			files = append(files, file)
		}
	}
	return files
}

// Owner returns the owner's handles of the transport that is enabled.
func (p Phone) Owner() []string {
	if p.Config.Telegram.Enabled {
		return p.Config.Owner.Telegram
	}
	return p.Config.Owner.IMessage
}

// Via is what envelopes say about how they were sent.
func (p Phone) Via() string {
	if p.Config.Telegram.Enabled {
		return "telegram"
	}
	return "imessage"
}

// Gate returns who may speak. The owner's handles are those of netsky.toml as it is now.
func (p Phone) Gate() phone.Gate { return gate{p} }

type gate struct{ Phone }

// Speakers implements [phone.Gate].
func (g gate) Speakers() (phone.Speakers, error) {
	list, err := g.list()
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (g gate) list() (access.List, error) {
	now, harm, err := config.Load(g.Home)
	if err != nil && harm != config.Ignored {
		return access.List{}, &chat.Degraded{Reason: "who may speak is not certain while netsky.toml has a mistake", Next: "netsky doctor shows it", Err: err}
	}
	g.Config = now
	list, err := access.Load(g.Home, g.Owner())
	if err != nil {
		return access.List{}, &chat.Degraded{Reason: err.Error(), Next: advice.Of(err), Err: err}
	}
	return list, nil
}

// Offer implements [phone.Gate].
func (g gate) Offer(ctx context.Context, m chat.Message) error {
	_, err := access.Offer(ctx, g.Home, m, time.Now())
	return err
}

// To returns the chat with the first of the owner's handles that may speak.
func (p Phone) To() (chat.Chat, error) {
	g := gate{p}
	list, err := g.list()
	if err != nil {
		return chat.Chat{}, err
	}
	for _, handle := range slices.Concat(p.Owner(), allowed(list)) {
		if c, ok := p.chatWith(handle); ok && list.OwnerChat(c) {
			return c, nil
		}
	}
	return chat.Chat{}, advice.With(errors.New("nobody may speak by phone yet, so there is nobody to write to"),
		"add your handle to [owner] in netsky.toml, or run `netsky imessage access pair`")
}

// chatWith returns the direct chat with a handle.
func (p Phone) chatWith(handle string) (chat.Chat, bool) {
	c, ok := chat.KeyOf("-;" + handle)
	c.GUID = ""
	if ok && !p.Config.Telegram.Enabled {
		c.GUID = chat.ServiceIMessage + ";" + c.Key // nobody has written there yet; the transport tries its other names
	}
	return c, ok
}

// allowed returns the handles that may speak.
func allowed(l access.List) (handles []string) {
	for _, e := range l.Entries() {
		if !e.Denied {
			handles = append(handles, e.Handle)
		}
	}
	return handles
}

// Options returns the bridge's options, with the transport.
func (p Phone) Options(t phone.Transport, b *bus.Bus, records func() *store.DB, desk phone.Desk, log *slog.Logger) phone.Options {
	return phone.Options{
		Home: p.Home, Bus: b, Records: records, Transport: t, Gate: p.Gate(), Desk: desk, SelfChat: p.Config.IMessage.SelfChat && !p.Config.Telegram.Enabled,
		To: p.To, Via: p.Via(), Log: log, Convert: p.convert,
		Shown: func(ctx context.Context, message string) (bool, error) { return shown(ctx, p.Home, b, message) },
		Reached: func() {
			if _, err := attention.Clear(context.Background(), p.Home); err != nil { // which is bounded in time
				log.Warn("escalate", "error", err)
			}
		},
	}
}

// shown reports whether the owner's mail with that id was shown to them.
func shown(ctx context.Context, h home.Dir, b *bus.Bus, message string) (bool, error) {
	list, err := home.ShownMail(h).Names()
	if err != nil || len(list) == 0 {
		return false, err
	}
	entries, err := b.Received(ctx, agent.Owner, message)
	for _, e := range entries {
		if list[e.Name] {
			return true, nil
		}
	}
	return false, err
}

// Alert texts an alert to the owner, without the daemon if need be. It may be the last thing
// that works, so it needs neither agents nor records.
func (p Phone) Alert(ctx context.Context, a attention.Alert) error {
	text := "alert: " + a.Subject
	if a.Body != "" {
		text += "\n" + a.Body
	}
	_, got, err := p.text(ctx, phone.Direct{Text: text, Alert: true})
	switch {
	case errors.Is(err, phone.ErrWaits):
		return once{err}
	case err != nil:
		return err
	case got.State == chat.Sent:
		return nil
	case got.Again:
		return fmt.Errorf("%s: %s", got.State, got.Fact)
	}
	return once{fmt.Errorf("%s: %s", got.State, got.Fact)}
}

// once is an error after which the same alert must not be sent again: it may arrive.
type once struct{ error }

func (o once) Unwrap() error { return o.error }

func (once) Is(target error) bool { return target == attention.ErrOnce }

// Text sends one text to the owner, without the daemon if need be. It returns where it went.
func (p Phone) Text(ctx context.Context, text string) (chat.Chat, chat.Receipt, error) {
	return p.text(ctx, phone.Direct{Text: text})
}

// Welcome tells a handle that it may give orders now.
func (p Phone) Welcome(ctx context.Context, handle string) error {
	c, ok := p.chatWith(handle)
	if !ok {
		return fmt.Errorf("%q: not a handle", handle)
	}
	_, got, err := p.text(ctx, phone.Direct{To: &c, Text: "You may give orders from here now. Text help to see which."})
	if err == nil && got.State != chat.Sent {
		err = fmt.Errorf("%s: %s", got.State, got.Fact)
	}
	return err
}

func (p Phone) text(ctx context.Context, d phone.Direct) (to chat.Chat, got chat.Receipt, err error) {
	t, err := p.Transport()
	if err != nil {
		return to, got, err
	}
	defer t.Close()
	var db *store.DB
	within, cancel := context.WithTimeout(ctx, 2*time.Second)
	if db, err = store.Open(within, p.Home); err == nil {
		defer db.Close()
	}
	cancel()
	o := p.Options(t, nil, func() *store.DB { return db }, nil, slog.New(slog.DiscardHandler))
	return phone.Text(ctx, o, d)
}
