package bluebubbles

import (
	"context"
	"errors"
	"fmt"

	"netsky/phone/chat"
)

// Check implements imessage.Transport.
func (t *Transport) Check(ctx context.Context) []chat.Fact {
	var pong string
	if _, err := t.call(ctx, t.opts.Timeout, request{method: "GET", path: "ping"}, &pong); err != nil {
		return []chat.Fact{t.bad("BlueBubbles server", err)}
	}
	facts := []chat.Fact{{Name: "BlueBubbles server", State: chat.OK, Detail: t.base.Host + " answers and takes the password"}}
	if t.base.Scheme == "http" {
		facts[0].Detail += "; by plain http, within a private network"
	}
	i, err := t.who(ctx)
	if err != nil {
		facts = append(facts, t.bad("the Mac", err))
	} else {
		facts = append(facts, about(i)...)
	}
	if top, err := t.newest(ctx); err != nil {
		facts = append(facts, t.bad("messages", err))
	} else {
		facts = append(facts, chat.Fact{Name: "messages", State: chat.OK, Detail: fmt.Sprintf("can be read; the newest is number %d", top.ID)})
	}
	facts = append(facts, t.checkSocket(ctx), chat.Fact{
		Name: "sending", State: chat.Unchecked,
		Detail: "nothing was sent; whether the server may control Messages shows at the first message",
	})
	return facts
}

// about returns the facts that the server tells about its Mac.
func about(i info) []chat.Fact {
	facts := []chat.Fact{{Name: "the Mac", State: chat.OK, Detail: fmt.Sprintf("macOS %s, BlueBubbles %s", clip(i.System), clip(i.Version))}}
	private := chat.Fact{Name: "private API", State: chat.OK, Detail: "off; netsky does not need it"}
	switch {
	case i.modern() && i.Private && i.Helper:
		private.Detail = "on, its helper is connected; netsky sends by it, as macOS 26 needs"
	case i.modern():
		private.State, private.Detail = chat.Unchecked, "off, or its helper is not connected: on macOS 26 what is sent without it may not arrive"
		private.Next = "turn it on in BlueBubbles' settings, which say how; reading works without it"
	case i.Private:
		private.Detail = "on, its helper is connected; netsky does not use it"
		if !i.Helper {
			private.Detail = "on, but its helper is not connected; netsky does not use it"
		}
	}
	account := chat.Fact{Name: "iMessage account", State: chat.Unchecked, Detail: "the server does not name one"}
	if s := value(i.Account); s != "" {
		account = chat.Fact{Name: "iMessage account", State: chat.OK, Detail: clip(s)}
	}
	return append(facts, private, account)
}

func (t *Transport) checkSocket(ctx context.Context) chat.Fact {
	f := chat.Fact{Name: "event socket", State: chat.OK, Detail: "connects"}
	conn, _, err := t.dialSocket(ctx)
	if err != nil {
		f.State = chat.Bad
		f.Detail = fmt.Sprintf("%s; messages are looked for every %s instead", t.redact(err.Error()), t.opts.Poll)
		f.Next = "allow WebSockets in what is between, if messages should come sooner"
		return f
	}
	conn.Close()
	return f
}

// bad returns what could not be found out, and what the owner can do.
func (t *Transport) bad(name string, err error) chat.Fact {
	f := chat.Fact{Name: name, State: chat.Bad, Detail: t.redact(err.Error())}
	if d := (*chat.Degraded)(nil); errors.As(t.degraded(err), &d) {
		f.Detail, f.Next = d.Reason, d.Next
	}
	return f
}
