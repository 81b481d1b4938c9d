package bluebubbles_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"netsky/internal/testworld"
	"netsky/phone/chat"
)

// macOS 26 stores a link twice, and names the words that were sent together with it.
func TestLinks(t *testing.T) {
	t.Parallel()
	const balloon = "com.apple.messages.URLBalloonProvider"
	m := newMac(t)
	tr := m.open(t, nil)
	at := int64(1_700_000_000_000)
	cursor := mustBegin(t, tr)
	put := func(guid, text, after string, seconds int64, change object) {
		r := object{"guid": guid, "text": text, "dateCreated": at + 1000*seconds, "replyToGuid": after}
		maps.Copy(r, change)
		m.add(r)
	}
	link := object{"balloonBundleId": balloon}
	put("plain", "https://a.example", "", 0, nil)
	put("again", "https://a.example", "plain", 1, link)
	put("another's", "https://a.example", "", 1, object{"balloonBundleId": balloon, "isFromMe": true})
	put("later", "https://a.example", "", 100, link)
	put("words", "look", "later", 200, nil)
	put("theirs", "https://b.example", "words", 200, link)
	put("alone", "https://c.example", "words", 210, link)
	b, _ := mustNext(t, tr, cursor)
	var got []string
	for _, m := range b.Messages {
		got = append(got, fmt.Sprint(m.GUID, " ", m.After, " ", m.More))
	}
	want := []string{"plain  false", "another's  false", "later  false", "words  true", "theirs words false", "alone  false"}
	testworld.EqualList(t, got, want)
	// What was read before is looked at for it too, also by a later run.
	put("c, again", "https://c.example", "alone", 212, link)
	put("last", "the end", "", 213, nil)
	if b, _ := mustNext(t, m.open(t, nil), b.Cursor); len(b.Messages) != 1 || b.Messages[0].GUID != "last" {
		t.Errorf("later: %+v", b.Messages)
	}
}

// Whichever way the server has is used to send to a chat of macOS 26, by the name that it takes.
func TestSendOnTahoe(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, system    string
		private, helper bool
		guid            string
		want            []string
	}{
		{"by script", "26.1", false, false, "any;-;+15550100", []string{"apple-script iMessage;-;+15550100"}},
		{"without the helper", "26.1", true, false, "any;-;+15550100", []string{"apple-script iMessage;-;+15550100"}},
		{"by the private API", "26.1", true, true, "any;-;+15550100", []string{"private-api any;-;+15550100"}},
		{"not heard of yet", "26.1", true, true, "iMessage;-;+15550100", []string{"private-api iMessage;-;+15550100", "private-api any;-;+15550100"}},
		{"earlier", "15.5", true, true, "iMessage;-;+15550100", []string{"apple-script iMessage;-;+15550100"}},
		{"unknown", "", true, true, "iMessage;-;+15550100", []string{"apple-script iMessage;-;+15550100"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMac(t)
			m.info["os_version"], m.info["private_api"], m.info["helper_connected"] = tt.system, tt.private, tt.helper
			m.onSend = func(sent object) (int, any) {
				if sent["method"] == "private-api" && strings.HasPrefix(sent["chatGuid"].(string), "iMessage;") {
					return 404, nil
				}
				r := outgoing(sent)
				r["chats"] = []object{{"guid": "any;-;+15550100", "style": 45, "chatIdentifier": "x"}}
				return 200, m.insert(r)
			}
			m.noChat = "Chat does not exist!"
			out := text("hello")
			out.Chat.GUID = tt.guid
			r, err := m.open(t, nil).Send(t.Context(), out)
			if err != nil || r.State != chat.Sent {
				t.Errorf("Send = %+v, %v", r, err)
			}
			var got []string
			for _, s := range m.get().sent {
				got = append(got, fmt.Sprint(s["method"], " ", s["chatGuid"]))
			}
			testworld.EqualList(t, got, tt.want, "sent")
		})
	}
}
