package bridge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"time"

	"netsky/agent"
	"netsky/config"
	"netsky/home"
	"netsky/internal/execx"
	"netsky/phone"
	"netsky/phone/access"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// checkWithin is how long the transport may take to examine itself.
const checkWithin = 30 * time.Second

// Check finds out what works between netsky and the owner's phone. Without a phone in
// netsky.toml it examines Messages.app on this machine.
func (p Phone) Check(ctx context.Context) ([]chat.Fact, error) {
	enabled := p.On()
	list := append([]chat.Fact{p.enabled()}, p.Glance()...)
	if !p.On() {
		p.Config.IMessage.Enabled, p.Config.IMessage.Through = true, config.ThroughMessages
	}
	t, err := p.Transport()
	if err != nil {
		return append(list, chat.Fact{Name: "transport", State: chat.Bad, Detail: err.Error()}), nil
	}
	defer t.Close()
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	if enabled {
		p.seen(ctx, t, &list[1])
	}
	facts := t.Check(ctx)
	p.recall(ctx, t.Name(), facts)
	return append(list, facts...), nil
}

// recall settles by the records what the transport cannot look at.
func (p Phone) recall(ctx context.Context, line string, facts []chat.Fact) {
	db, err := store.OpenRead(ctx, p.Home)
	if err != nil {
		return
	}
	defer db.Close()
	r := record.Records{DB: db}
	last := func(f *chat.Fact, words string, at store.Time) {
		f.State, f.Next, f.Detail = chat.OK, "", words+agent.Clock(at.Time(), time.Now())
	}
	for i := range facts {
		f := &facts[i]
		if f.State != chat.Unchecked {
			continue
		}
		switch f.Name {
		case "first message":
			if h, ok, err := r.LastHeard(ctx, line, phone.VerdictOrder); err == nil && ok {
				last(f, "the bot knows you: you wrote to it ", h.Time)
			}
		case "sending":
			if at, err := r.LastSent(ctx, line); err == nil && at > 0 {
				last(f, "the last text that was seen to go out was sent ", at)
			}
		}
	}
}

// Glance finds out what is known without asking the transport: who may speak, and what the
// bridge reports.
func (p Phone) Glance() []chat.Fact {
	list := []chat.Fact{p.speakers(), p.bridge()}
	if f, ok := p.pairing(); ok {
		list = append(list, f)
	}
	if f, ok := p.unheard(); ok {
		list = append(list, f)
	}
	return list
}

// transportName returns the name of the configured transport.
func (p Phone) transportName() string {
	if p.Config.Telegram.Enabled {
		return "telegram"
	}
	return p.Config.IMessage.Through
}

func (p Phone) enabled() chat.Fact {
	f := chat.Fact{Name: "netsky.toml", State: chat.OK}
	switch {
	case p.Config.Telegram.Enabled:
		f.Detail = "the phone is reached by a Telegram bot"
	case p.Config.IMessage.Enabled && p.Config.IMessage.Through == config.ThroughBlueBubbles:
		f.Detail = "the phone is reached by iMessage, through BlueBubbles at " + host(p.Config.IMessage.URL)
	case p.Config.IMessage.Enabled && execx.Find(execx.Value(p.Env, "PATH"), "osascript") == "":
		f.State, f.Detail = chat.Bad, "the phone is to be reached by iMessage, through Messages.app on this machine, which has no osascript"
		f.Next = "on a Mac, put /usr/bin on PATH; elsewhere, set through = \"bluebubbles\" or use [telegram]: docs/imessage.md"
	case p.Config.IMessage.Enabled:
		f.Detail = "the phone is reached by iMessage, through Messages.app on this machine"
	default:
		f.State, f.Detail, f.Next = chat.Unchecked, "no phone is enabled; this examines Messages.app on this machine", "set enabled = true under [imessage] or [telegram] in "+p.Home.Path(home.ConfigFile)+"; docs/imessage.md shows how"
	}
	return f
}

// host returns the host of an address, in which somebody may have put the password.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that is none"
	}
	return u.Host
}

func (p Phone) speakers() chat.Fact {
	f := chat.Fact{Name: "who may speak", State: chat.OK}
	list, err := gate{p}.list()
	switch handles := allowed(list); {
	case err != nil:
		f.State, f.Detail = chat.Bad, err.Error()
		var d *chat.Degraded
		if errors.As(err, &d) {
			f.Next = d.Next
		}
	case len(handles) == 0 && !p.On():
		f.State, f.Detail = chat.Unchecked, "nobody yet; that matters once a phone is enabled"
	case len(handles) == 0:
		f.State, f.Detail, f.Next = chat.Bad, "nobody", "add your handle to [owner] in netsky.toml, or run `netsky imessage access pair`"
	default:
		f.Detail = strings.Join(handles, ", ")
		for _, h := range handles {
			if why := Silent(h, p.Config.Telegram.Enabled); why != "" && p.On() {
				f.State, f.Detail = chat.Bad, f.Detail+"; no text comes from "+h+": "+why
				f.Next = "correct it in [owner] in netsky.toml; one that was allowed at the terminal: `netsky imessage access deny HANDLE`, then allow the right one"
			}
		}
	}
	return f
}

// A knower is a transport that can find out which handles its chats have seen.
type knower interface {
	Unknown(ctx context.Context, handles []string) ([]string, error)
}

// seen adds to the fact about who may speak those with whom no chat is known.
func (p Phone) seen(ctx context.Context, t phone.Transport, f *chat.Fact) {
	k, ok := t.(knower)
	list, err := gate{p}.list()
	if !ok || err != nil || f.State != chat.OK {
		return
	}
	if unknown, err := k.Unknown(ctx, allowed(list)); err == nil && len(unknown) > 0 {
		f.State, f.Detail = chat.Unchecked, f.Detail+"; no chat on this Mac has seen "+strings.Join(unknown, ", ")
		f.Next = "compare with Messages → Settings → iMessage; once a text from there has arrived, it is seen"
	}
}

// pairing returns how a pairing is that waits for its code.
func (p Phone) pairing() (f chat.Fact, ok bool) {
	w, ok, err := access.Look(p.Home, time.Now())
	f = chat.Fact{Name: "pairing", State: chat.OK, Detail: "waits for its code until " + w.Until.Local().Format("15:04")}
	switch {
	case err != nil:
		f.State, f.Detail, f.Next = chat.Bad, err.Error(), "`netsky imessage access pair` begins another one"
		ok = true
	case w.Wrong > 0:
		f.Detail += "; " + w.String()
	}
	return f, ok
}

// unheard returns what was counted only. Without it, an owner who writes from another handle than
// they think sees no sign of their texts anywhere.
func (p Phone) unheard() (f chat.Fact, ok bool) {
	s, err := phone.Load(p.Home)
	if err != nil || !p.On() || s.Transport != p.transportName() {
		return f, false
	}
	var counts []string
	for _, c := range []struct{ verdict, what string }{
		{phone.VerdictStranger, "from others"},
		{phone.VerdictGroup, "in groups"},
		{phone.VerdictService, "by SMS or RCS"},
	} {
		if n := s.Ignored[c.verdict]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, c.what))
		}
	}
	if len(counts) == 0 {
		return f, false
	}
	f = chat.Fact{Name: "not heard", State: chat.OK, Detail: "texts since the bridge began: " + strings.Join(counts, ", ")}
	if s.Ignored[phone.VerdictStranger] > 0 {
		f.Detail += "; if you wrote one, it came from a handle that may not speak: `netsky imessage access pair` finds out which"
	}
	return f, true
}

func (p Phone) bridge() chat.Fact {
	f := chat.Fact{Name: "bridge", State: chat.OK}
	s, err := phone.Load(p.Home)
	locked, _ := p.Home.Locked(home.PhoneLock)
	daemon, _ := p.Home.Locked(home.DaemonLock)
	since, silent := s.Silent(time.Now())
	switch {
	case !p.On():
		f.State, f.Detail = chat.Unchecked, "it runs once a phone is enabled"
	case !locked && !daemon:
		f.State, f.Detail, f.Next = chat.Unchecked, "it runs in the daemon, which does not run", "`netsky up` starts the daemon"
	case !locked:
		f.State, f.Detail, f.Next = chat.Bad, "it does not run", "`netsky daemon restart` if the daemon ran before it was enabled"
	case errors.Is(err, fs.ErrNotExist):
		f.State, f.Detail = chat.Unchecked, "it has just begun"
	case err != nil:
		f.State, f.Detail = chat.Bad, err.Error()
	case s.Seen == 0 && s.State == phone.StateOK:
		f.State, f.Detail = chat.Unchecked, "it has just begun"
	case s.Transport != p.transportName():
		f.State, f.Detail, f.Next = chat.Bad, "the daemon still runs it by "+s.Transport, "run `netsky daemon restart`"
	case s.State == phone.StateDegraded:
		f.State, f.Detail, f.Next = chat.Bad, "it can't read: "+s.Reason, s.Next
	case silent:
		f.State, f.Detail, f.Next = chat.Bad, "it "+SilentSince(since), "look whether the disk is full; `netsky daemon restart` starts it anew"
	default:
		f.Detail = fmt.Sprintf("it runs, and last looked at %s; %d texts wait, %d were not sent and %d not confirmed within a day",
			s.Seen.Time().Local().Format("15:04:05"), s.Waiting, s.Failed, s.Doubtful)
	}
	return f
}

// SilentSince says that a bridge has reported nothing for too long.
func SilentSince(t time.Time) string {
	return "has reported nothing since " + t.Local().Format("15:04") + ": it hangs, or the disk is full"
}
