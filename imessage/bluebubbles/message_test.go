package bluebubbles_test

import (
	"reflect"
	"testing"
	"time"

	"netsky/internal/testworld"
	"netsky/phone/chat"
)

func in(guid string, style any) []object {
	return []object{{"guid": guid, "style": style, "chatIdentifier": "chat77"}}
}

func by(service any) object { return object{"address": "+1 (555) 0100", "service": service} }

// messages are rows, and how the message differs from the usual one.
var messages = []struct {
	name string
	row  object
	want func(m *chat.Message)
}{
	{"a message", nil, func(*chat.Message) {}},
	{"a mail address", object{"handle": object{"address": "Owner@Example.com", "service": "imessage"}}, func(m *chat.Message) { m.Handle = "owner@example.com" }},
	{"our own", object{"isFromMe": true}, func(m *chat.Message) { m.FromMe, m.Handle = true, "" }},
	{"our own, no handle", object{"isFromMe": true, "handle": nil}, func(m *chat.Message) { m.FromMe, m.Handle = true, "" }},
	{"a reply", object{"threadOriginatorGuid": "G"}, func(m *chat.Message) { m.About = "G" }},
	{"a balloon", object{"associatedMessageType": "3", "associatedMessageGuid": "G"}, func(*chat.Message) {}},
	{"no date", object{"dateCreated": nil}, func(m *chat.Message) { m.At = time.Time{} }},
	{"corrupt", object{"isCorrupt": true}, func(m *chat.Message) { m.Text, m.Unreadable = "", "Messages marks it as corrupt" }},
	{"edited and taken back in part", object{"dateRetracted": int64(1_700_000_000_000)}, func(*chat.Message) {}},
	{"unsent", object{"dateRetracted": int64(1_700_000_000_000), "text": nil}, func(m *chat.Message) { m.Kind, m.Text = chat.Event, "" }},
	{"SMS by the handle", object{"handle": by("SMS")}, func(m *chat.Message) { m.Service = chat.ServiceSMS }},
	{"RCS by the handle", object{"handle": by("rcs"), "chats": in("any;-;+15550100", 45)}, func(m *chat.Message) {
		m.Service, m.Chat.GUID = chat.ServiceRCS, "any;-;+15550100"
	}},
	{"SMS by the chat", object{"chats": in("SMS;-;+15550100", 45)}, func(m *chat.Message) {
		m.Service, m.Chat.GUID = chat.ServiceSMS, "SMS;-;+15550100"
	}},
	{"SMS by one of two chats", object{"chats": append(in("iMessage;-;+15550100", 45), in("SMS;-;+15550100", 45)...)}, func(m *chat.Message) { m.Service = chat.ServiceSMS }},
	{"any, with a handle", object{"chats": in("any;-;+15550100", 45)}, func(m *chat.Message) { m.Chat.GUID = "any;-;+15550100" }},
	{"any, nothing says", object{"chats": in("any;-;+15550100", 45), "handle": by(nil)}, func(m *chat.Message) {
		m.Chat.GUID, m.Service = "any;-;+15550100", ""
	}},
	{"iMessageLite is iMessage by satellite", object{"chats": in("any;-;+15550100", 45), "handle": by("iMessageLite")}, func(m *chat.Message) {
		m.Chat.GUID = "any;-;+15550100"
	}},
	{"in a group and a direct chat", object{"chats": append(in("any;+;chat77", 43), in("any;-;+15550100", 45)...)}, func(m *chat.Message) { m.Chat.GUID = "any;-;+15550100" }},
	{"in two direct chats", object{"chats": append(in("any;-;+15550100", 45), in("iMessage;-;+15550100", 45)...)}, func(m *chat.Message) { m.Chat.GUID = "any;-;+15550100" }},
	{"in two groups", object{"chats": append(in("any;+;chat77", 43), in("any;+;chat78", 43)...)}, func(m *chat.Message) {
		m.Chat = chat.Chat{Key: "+;chat77", Identifier: "chat77", GUID: "any;+;chat77"}
	}},
	{"with a subject", object{"subject": "About it"}, func(m *chat.Message) { m.Text = "About it\nhello" }},
	{"an automatic answer", object{"isAutoReply": true}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"an automatic answer, as a number", object{"isAutoReply": 1}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"none", object{"isAutoReply": nil}, func(*chat.Message) {}},
	{"a group", object{"chats": in("iMessage;+;chat77", 43)}, func(m *chat.Message) {
		m.Chat = chat.Chat{Key: "+;chat77", Identifier: "chat77", GUID: "iMessage;+;chat77"}
	}},
	{"a group that is named as a direct chat", object{"chats": in("iMessage;-;+15550100", 43)}, func(m *chat.Message) { m.Chat.Direct = false }},
	{"no style", object{"chats": in("iMessage;-;+15550100", nil)}, func(m *chat.Message) { m.Chat.Direct = false }},
	{"a bare group", object{"chats": in("chat77", 43)}, func(m *chat.Message) {
		m.Chat = chat.Chat{Key: "+;chat77", Identifier: "chat77", GUID: "chat77"}
	}},
	{"a member joined", object{"itemType": 1}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"a group renamed", object{"itemType": 2, "groupTitle": "x"}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"a sticker", object{"associatedMessageType": "sticker", "associatedMessageGuid": "p:0/G"}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"a poll vote", object{"associatedMessageType": "4000", "associatedMessageGuid": "G"}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"a type of later", object{"associatedMessageType": "wave"}, func(m *chat.Message) { m.Kind = chat.Event }},
	{"like", object{"associatedMessageType": "like", "associatedMessageGuid": "p:0/G"}, func(m *chat.Message) {
		m.Kind, m.About, m.Reaction = chat.Reaction, "G", chat.Like
	}},
	{"like taken back", object{"associatedMessageType": "-like", "associatedMessageGuid": "bp:G"}, func(m *chat.Message) {
		m.Kind, m.About, m.Reaction, m.Removed = chat.Reaction, "G", chat.Like, true
	}},
	{"dislike, as a number", object{"associatedMessageType": 2002, "associatedMessageGuid": "G"}, func(m *chat.Message) {
		m.Kind, m.About, m.Reaction = chat.Reaction, "G", chat.Dislike
	}},
	{"love", object{"associatedMessageType": "love", "associatedMessageGuid": "p:1/G"}, func(m *chat.Message) {
		m.Kind, m.About, m.Reaction = chat.Reaction, "G", chat.OtherReaction
	}},
	{"emoji, in digits", object{"associatedMessageType": "3006", "associatedMessageGuid": "p:1/G"}, func(m *chat.Message) {
		m.Kind, m.About, m.Reaction, m.Removed = chat.Reaction, "G", chat.OtherReaction, true
	}},
	{"attachments", object{"text": "\ufffc", "attachments": []object{
		{"guid": "at_0_A", "transferName": "a.png", "mimeType": "image/png", "totalBytes": 9_007_199_254_740_993},
		{"guid": "at_1_A", "transferName": nil, "mimeType": nil},
		{"guid": "preview", "transferName": "x.pluginPayloadAttachment", "hideAttachment": true},
	}}, func(m *chat.Message) {
		m.Text = "\ufffc"
		m.Attachments = []chat.Attachment{{GUID: "at_0_A", Name: "a.png", MIME: "image/png", Bytes: 9_007_199_254_740_993}, {GUID: "at_1_A", Bytes: -1}}
	}},
}

// What becomes of a row: its kind, its chat, its service.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMac(t)
			tr := m.open(t, nil)
			cursor := mustBegin(t, tr)
			row := m.add(tt.row)
			b, _ := mustNext(t, tr, cursor)
			if len(b.Messages) != 1 {
				t.Fatalf("Next = %+v, %q", b.Messages, b.Notes)
			}
			want := chat.Message{
				GUID: row["guid"].(string), Chat: peer, Handle: "+15550100", Service: chat.ServiceIMessage, Kind: chat.Text,
				At: time.UnixMilli(1_700_000_000_001), Text: "hello",
			}
			tt.want(&want)
			if got := b.Messages[0]; !reflect.DeepEqual(got, want) {
				t.Errorf("Next = %+v\nwant   %+v", got, want)
			}
		})
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	m := newMac(t)
	for i := range 5 {
		m.add(object{"text": string(rune('a' + i))})
		m.add(object{"text": "elsewhere", "chats": []object{direct("+15550199")}})
	}
	tr := m.open(t, nil)
	got, err := tr.History(t.Context(), chat.Chat{GUID: "iMessage;-;+15550100"}, 3)
	if err != nil || len(got) != 3 || got[0].Text != "c" || got[2].Text != "e" {
		t.Errorf("History = %+v, %v", got, err)
	}
	testworld.Len(t, testworld.Got(tr.History(t.Context(), chat.Chat{GUID: "iMessage;-;nobody"}, 3))(t), 0, "History")
}
