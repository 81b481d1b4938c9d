package bluebubbles

import (
	"slices"
	"strings"
	"time"

	"netsky/phone/chat"
)

// message returns what the bridge gets of a row.
func (r *row) message() chat.Message {
	m := chat.Message{
		GUID:    r.GUID,
		FromMe:  r.FromMe,
		Service: r.service(),
		Chat:    r.chat(),
		Text:    r.words(),
	}
	if r.Created != nil && *r.Created != 0 {
		m.At = time.UnixMilli(*r.Created)
	}
	if !r.FromMe && r.Handle != nil {
		m.Handle = chat.Handle(r.Handle.Address)
	}
	for _, f := range r.Files {
		if !f.Hidden && !(value(r.Balloon) != "" && strings.HasSuffix(value(f.Name), ".pluginPayloadAttachment")) { // a link's preview, and the like
			m.Attachments = append(m.Attachments, f.attachment())
		}
	}
	r.classify(&m)
	return m
}

// classify says what kind of row it is. Only an item of type 0 that belongs to no other message is
// words of a person; types 2 and 3 are the balloons of apps, which are.
func (r *row) classify(m *chat.Message) {
	m.Kind = chat.Event
	switch {
	case r.Item != 0, bool(r.Automatic):
	case r.Assoc == 0, r.Assoc == 2, r.Assoc == 3:
		if r.unsent() {
			return
		}
		m.Kind = chat.Text
		m.About = value(r.Thread)
		if r.Corrupt != nil && *r.Corrupt {
			m.Text, m.Unreadable = "", "Messages marks it as corrupt"
		}
	case r.Assoc >= 2000 && r.Assoc <= 2006, r.Assoc >= 3000 && r.Assoc <= 3006:
		m.Kind = chat.Reaction
		m.About = target(value(r.Target))
		m.Removed = r.Assoc >= 3000
		switch r.Assoc % 1000 {
		case 1:
			m.Reaction = chat.Like
		case 2:
			m.Reaction = chat.Dislike
		default:
			m.Reaction = chat.OtherReaction
		}
	}
}

// unsent reports whether its writer took the message back: it has a date of that, and no body.
func (r *row) unsent() bool {
	return r.Retracted != nil && *r.Retracted != 0 && r.empty()
}

// empty reports whether the row has neither text nor attachment (yet).
func (r *row) empty() bool {
	return strings.Trim(r.words(), " \t\r\n\ufffc") == "" && len(r.Files) == 0
}

// words returns the row's subject and text; of one in which every character was lost, nothing.
func (r *row) words() string {
	text := strings.TrimSpace(value(r.Subject) + "\n" + value(r.Text))
	if value(r.Subject) == "" {
		text = value(r.Text)
	}
	if strings.Contains(text, "\ufffd") && strings.Trim(text, " \t\r\n\ufffc\ufffd") == "" {
		return ""
	}
	return text
}

// late reports whether the row's body may follow.
func (r *row) late() bool {
	m := chat.Message{}
	r.classify(&m)
	return m.Kind == chat.Text && r.empty() && m.Unreadable == ""
}

// target returns the guid in a reference to a part of a message: "p:0/GUID", "bp:GUID".
func target(s string) string {
	if _, after, found := strings.Cut(s, "/"); found {
		return after
	}
	return strings.TrimPrefix(s, "bp:")
}

// chat returns the conversation. A message can be in two; a direct one comes before a group.
func (r *row) chat() (c chat.Chat) {
	for i, in := range r.Chats {
		if this := in.chat(); i == 0 || this.Direct && !c.Direct {
			c = this
		}
	}
	return c
}

func (in chatRow) chat() chat.Chat {
	const direct = 45 // '-', as in the guid
	c, ok := chat.KeyOf(in.GUID)
	if !ok { // "chat123" alone: a group
		id := chat.Handle(in.Identifier)
		if id == "" {
			id = in.GUID
		}
		return chat.Chat{Key: "+;" + id, Identifier: id, GUID: in.GUID}
	}
	c.Direct = c.Direct && in.Style != nil && *in.Style == direct
	return c
}

// service returns how the message came. What can be forged wins over what cannot.
func (r *row) service() string {
	var said []string
	if r.Handle != nil {
		said = append(said, chat.ServiceName(value(r.Handle.Service)))
	}
	for _, c := range r.Chats {
		prefix, _, _ := strings.Cut(c.GUID, ";")
		said = append(said, chat.ServiceName(prefix))
	}
	for _, service := range []string{chat.ServiceSMS, chat.ServiceRCS, chat.ServiceIMessage} {
		if slices.Contains(said, service) {
			return service
		}
	}
	return "" // "any": nothing says
}

func (f *attachment) attachment() chat.Attachment {
	a := chat.Attachment{GUID: f.GUID, Name: value(f.Name), MIME: value(f.MIME), Bytes: -1}
	if f.Bytes != nil && *f.Bytes >= 0 {
		a.Bytes = *f.Bytes
	}
	return a
}

// value returns what a field has, or nothing.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
