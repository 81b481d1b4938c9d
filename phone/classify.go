package phone

import (
	"strings"
	"time"
	"unicode"

	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

// The verdicts on what arrives. The first group is only counted; the rest is recorded.
const (
	VerdictStranger = "stranger" // not one of the owner's handles
	VerdictGroup    = "group"    // not a direct chat
	VerdictService  = "service"  // the owner's handle, by a service whose sender can be forged

	VerdictOrder      = "order"      // the owner's: it is acted on
	VerdictReaction   = "reaction"   // the owner's, on a message: it is acted on if that asks something
	VerdictUnreadable = "unreadable" // the owner's, but its text is damaged: the owner is told
	VerdictEcho       = "echo"       // what we sent, coming back
	VerdictOurs       = "ours"       // signed by us, but not on the ledger
	VerdictPair       = "pair"       // the second row of a message to oneself
	VerdictOwn        = "own"        // written with our account, which is not the owner's
	VerdictPart       = "part"       // a part of the message before it
	VerdictOld        = "old"        // written too long ago to act on it
	VerdictEvent      = "event"      // not a message: a member, a name, a sticker
	VerdictEmpty      = "empty"      // neither words nor files
	VerdictBrake      = "brake"      // one too many within a minute: from here on the chat rests
	VerdictBraked     = "braked"     // arrived while it rests
)

const (
	echoFor  = 30 * time.Second // how long after a text its echo may come
	echoSlip = 5 * time.Second  // how much the transport's clock may differ from ours
	pairFor  = 3 * time.Second  // between the two rows of a message to oneself

	brakeWithin    = time.Minute
	brakeIdentical = 5  // messages of the same text that are taken in that time
	brakeAll       = 20 // messages that are taken in that time
	brakeRest      = 10 * time.Minute
	mostRest       = 12 * time.Hour // it doubles as long as the chat is too full again soon after
)

// A scene is what the verdict on a message depends on besides itself.
type scene struct {
	now   time.Time
	fence time.Time      // what was written before is old
	self  bool           // our account is the owner's own: what it writes in the owner's chats counts
	said  []record.Said  // begun lately in the chat, or in any; their counts of echoes are kept up to date
	heard []record.Heard // heard lately, likewise
	sent  func(guid string) bool

	brakes map[string]record.Heard // by chat, where it began to rest last
	taken  []record.Heard          // in the chat of the message that is judged, within a minute of it
}

// foreign returns the verdict on what is not the owner's, which is counted only; "" for the
// rest.
func foreign(who Speakers, m chat.Message) string {
	switch {
	case !m.Chat.Direct:
		return VerdictGroup
	case !who.OwnerChat(m.Chat), !m.FromMe && !who.May(m.Handle):
		return VerdictStranger // also somebody else in the owner's chat
	case m.Service == "" && m.FromMe: // macOS 26 names none; our own account can't be forged
	case m.Service != chat.ServiceIMessage && m.Service != chat.ServiceTelegram:
		return VerdictService
	}
	return ""
}

// judge returns the verdict on a message in one of the owner's chats, and the number of the
// text that it is the echo of, if it is one.
func (s *scene) judge(m chat.Message) (verdict string, said int64) {
	if m.Kind == chat.Event {
		return VerdictEvent, 0
	}
	if m.Kind == chat.Text {
		if m.Unreadable != "" && !m.FromMe && s.partner(m) != "" {
			return VerdictPair, 0
		}
		if i := s.echo(m); i >= 0 {
			if s.doubtful(m, s.said[i]) {
				return s.brake(m, VerdictUnreadable), s.said[i].Seq
			}
			return VerdictEcho, s.said[i].Seq
		}
		if m.FromMe && s.sent(m.GUID) {
			return VerdictEcho, 0
		}
	}
	switch {
	case m.FromMe && !s.self:
		return VerdictOwn, 0
	case s.when(m).Before(s.fence):
		return VerdictOld, 0
	case m.Kind != chat.Text:
		return VerdictReaction, 0
	case m.Unreadable != "" && s.partner(m) != "":
		return VerdictPair, 0 // our account's own row of a message to oneself may be empty
	case m.Unreadable != "":
		return s.brake(m, VerdictUnreadable), 0
	case strings.TrimSpace(m.Text) == "" && len(m.Attachments) == 0:
		return VerdictEmpty, 0
	case Signed(m.Text):
		return VerdictOurs, 0
	case s.partner(m) != "":
		return VerdictPair, 0
	case s.whole(m) != "":
		return VerdictPart, 0
	}
	return s.brake(m, VerdictOrder), 0
}

// when returns when a message was written, or else heard.
func (s *scene) when(m chat.Message) time.Time {
	if m.At.IsZero() {
		return s.now
	}
	return m.At
}

// echo returns the text that the message is the echo of, or -1. A text to oneself comes back
// as up to two rows, one of each direction.
func (s *scene) echo(m chat.Message) int {
	at, text := s.when(m), essence(m.Text)
	for i := range s.said {
		p := &s.said[i]
		if p.GUID != "" && p.GUID == m.GUID {
			p.EchoMe++
			return i
		}
		elsewhere := p.Chat.Key != m.Chat.Key
		if m.FromMe && (p.GUID != "" || elsewhere) {
			continue // its row is another one
		}
		last := max(p.Began, p.Ended).Time()
		near := at.After(p.Began.Time().Add(-echoSlip)) && at.Before(last.Add(echoFor)) || s.now.Sub(last).Abs() < echoFor
		switch {
		case !near || p.Began == 0 || !m.FromMe && !s.self: // the other side is then never ours
			continue
		case m.Unreadable != "": // nobody can compare it
			if elsewhere || p.File != "" || !m.FromMe && s.silent(m.Chat.Key) {
				continue
			}
		case text == "" && p.File == "":
			continue
		case p.File != "": // it comes back with a name that Messages.app gave it
			if len(m.Attachments) == 0 || text != "" {
				continue
			}
		case essence(p.Text) != text:
			continue
		}
		count := &p.EchoOther
		if m.FromMe {
			count = &p.EchoMe
		}
		if *count == 0 {
			*count++
			return i
		}
	}
	return -1
}

// doubtful reports whether what may be the echo of p, and can't be compared with it, may as well be
// the owner's, and is to be told of. That is done once in a while: if it was an echo, the echo of
// what is said about it would be the next.
func (s *scene) doubtful(m chat.Message, p record.Said) bool {
	if m.Unreadable == "" || m.FromMe || p.GUID == m.GUID {
		return false
	}
	for _, h := range s.heard {
		if h.Verdict == VerdictUnreadable && s.now.Sub(h.Time.Time()).Abs() < brakeRest {
			return false
		}
	}
	return true
}

// silent reports whether nothing of what was said lately in a chat has come back from the other side.
func (s *scene) silent(key string) bool {
	for _, h := range s.heard {
		if h.Verdict == VerdictEcho && !h.FromMe && h.Chat.Key == key {
			return false
		}
	}
	for _, p := range s.said {
		if age := s.now.Sub(p.Ended.Time()); p.State == record.Sent && p.Chat.Key == key && echoFor < age && age < brakeRest {
			return true
		}
	}
	return false
}

// partner returns the guid of the first row of a message to oneself, of which m is the second; "" if
// it is none. With two addresses each row may lie in the chat with the other one.
func (s *scene) partner(m chat.Message) string {
	text, at := essence(m.Text), s.when(m)
	for _, h := range s.heard {
		taken := h.Verdict == VerdictOrder || h.Verdict == VerdictOld || h.Verdict == VerdictPart
		if !taken || h.FromMe == m.FromMe || at.Sub(h.At.Time()).Abs() > pairFor || s.pairOf(h.GUID) {
			continue
		}
		if m.Unreadable != "" || essence(h.Text) == text && len(h.Files) == len(m.Attachments) {
			return h.GUID
		}
	}
	return ""
}

// pairOf reports whether the message with this guid has its second row.
func (s *scene) pairOf(guid string) bool {
	for _, h := range s.heard {
		if h.Note == guid && (h.Verdict == VerdictPair || h.Verdict == VerdictOld) {
			return true
		}
	}
	return false
}

// brake returns the verdict on what is acted on: the chat rests when too much arrives.
func (s *scene) brake(m chat.Message, verdict string) string {
	if s.rests(m.Chat.Key) {
		if urgent(m) {
			return VerdictOrder
		}
		return VerdictBraked
	}
	same, text := 0, essence(m.Text)
	for _, h := range s.taken {
		if essence(h.Text) == text {
			same++
		}
	}
	if same >= brakeIdentical || len(s.taken) >= brakeAll {
		return VerdictBrake
	}
	return verdict
}

// rests reports whether a chat rests now.
func (s *scene) rests(key string) bool {
	last, ok := s.brakes[key]
	return ok && s.now.Sub(last.Time.Time()).Abs() < restOf(last)
}

// restOf returns how long a chat rests from a message on that was one too many.
func restOf(h record.Heard) time.Duration {
	if d, err := time.ParseDuration(h.Note); err == nil && brakeRest < d && d <= mostRest {
		return d
	}
	return brakeRest
}

// nextRest returns how long a chat rests that has too much now: twice as long as before, unless it
// was calm for as long as it rested.
func (s *scene) nextRest(key string) time.Duration {
	last, ok := s.brakes[key]
	if rest := restOf(last); ok && s.now.Sub(last.Time.Time()).Abs() < 2*rest {
		return min(2*rest, mostRest)
	}
	return brakeRest
}

// urgent reports whether a message only ends or refuses something: that does not wait for a
// chat's rest.
func urgent(m chat.Message) bool {
	if m.Kind != chat.Text {
		return false
	}
	a := parse(m.Text)
	return a.what == askStop || a.what == askAnswer && !a.allow
}

// record returns what is kept of a message in one of the owner's chats.
func (s *scene) record(line string, m chat.Message, verdict string) record.Heard {
	h := record.Heard{
		Line: line, GUID: m.GUID, Chat: recorded(m.Chat), Handle: m.Handle, FromMe: m.FromMe, At: store.At(s.when(m)), Time: store.At(s.now),
		Kind: string(m.Kind), Text: m.Text, About: m.About, Verdict: verdict, State: record.Done,
	}
	for _, a := range m.Attachments {
		h.Files = append(h.Files, record.File(a))
	}
	switch verdict {
	case VerdictOrder, VerdictReaction, VerdictUnreadable:
		h.State = record.New
	case VerdictPair, VerdictOld:
		h.Note = s.partner(m)
	case VerdictPart:
		alone := s.record(line, m, s.brake(m, VerdictOrder))
		if alone.Verdict == VerdictOrder {
			alone.Note = noteLate
		}
		h.Note, h.Alone = s.whole(m), &alone
	case VerdictBrake:
		h.State = record.New
		h.Note = s.nextRest(m.Chat.Key).String()
	}
	switch {
	case m.Kind == chat.Reaction && m.Removed:
		h.Text, h.State = "", record.Done
	case m.Kind == chat.Reaction:
		h.Text = m.Reaction
	case m.Unreadable != "" && h.Note == "":
		h.Note = m.Unreadable
	case verdict == VerdictOrder && parse(m.Text).what == askMessage:
		// An agent may answer it before it is on record that it was sent on.
		h.Message = messageID(line, m.GUID)
		if m.More {
			h.Note = noteMore
		}
	}
	return h
}

// Signed reports whether a text begins as all texts of ours do: with a name of netsky's in
// brackets. Such a text is never an order, wherever it comes from.
func Signed(text string) bool {
	text = strings.TrimLeftFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) })
	name, ok := strings.CutPrefix(text, "[")
	name = strings.ToLower(name)
	return ok && (strings.HasPrefix(name, "netsky") || strings.HasPrefix(name, "agent"))
}

// essence is what two copies of a text have in common, whatever a phone made of its quotes,
// spaces and pictures: the letters and digits; of a text without any, all but the spaces.
func essence(text string) string {
	keep := func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}
	if s := strings.Map(keep, text); s != "" {
		return s
	}
	return strings.Join(strings.Fields(text), "")
}
