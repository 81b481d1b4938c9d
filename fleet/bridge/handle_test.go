package bridge_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"netsky/config"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone/access"
	"netsky/phone/chat"
)

// Handles with which nobody can write are named, by their form.
func TestSilent(t *testing.T) {
	t.Parallel()
	for handle, why := range map[string][2]string{ // on iMessage, on Telegram
		"+15550100": {"", "numeric id"}, "+4915123456789": {"", "numeric id"}, "+390612345678": {"", "numeric id"}, "me@example.org": {"", "numeric id"},
		"123456789": {"+15550100", ""}, "00491512345678": {"+15550100", "no user"}, "12345678901234567": {"+15550100", "no user"},
		"+4901512345678": {"dialled only within", "numeric id"}, "+0151234567": {"country's code", "numeric id"}, "+155501": {"seven digits", "numeric id"},
		"me@localhost": {"domain", "numeric id"}, "me@example..org": {"domain", "numeric id"}, "me@example.org.": {"domain", "numeric id"},
	} {
		for i, want := range why {
			if got := bridge.Silent(handle, i == 1); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("Silent(%q, %v) = %q, want %q", handle, i == 1, got, want)
			}
		}
	}
}

// The doctor names what this Mac's chats have never seen, and a pairing that gets wrong codes.
func TestCheckHandles(t *testing.T) {
	t.Parallel()
	h := testworld.FastHome(t)
	db, err := sql.Open("sqlite3", h.Path("chat.db"))
	testworld.Must(t, err)
	defer db.Close()
	testworld.Got(db.Exec(`CREATE TABLE message (guid, text, date, is_from_me, handle_id, service); CREATE TABLE chat (guid, style);
		CREATE TABLE chat_message_join (chat_id, message_id); CREATE TABLE handle (id); INSERT INTO handle VALUES ('+1 555 0100'), (NULL)`))(t)
	mustWrite(t, h.Path(home.ConfigFile), "[owner]\nimessage = [\"+15550100\", \"other@example.org\"]\n[imessage]\nenabled = true\ndb = \"chat.db\"\n")
	c, _, err := config.Load(h)
	testworld.Must(t, err)
	testworld.Got(access.Begin(t.Context(), h, time.Now()))(t)
	stranger := chat.Message{Handle: "+15550199", Text: "wrongs", Kind: chat.Text, Service: chat.ServiceIMessage, Chat: chat.Chat{Direct: true}}
	testworld.Got(access.Offer(t.Context(), h, stranger, time.Now()))(t)
	list, err := bridge.Phone{Config: c, Home: h, UserHome: h.Path(), Env: []string{"PATH="}}.Check(t.Context())
	testworld.Must(t, err)
	var lines []string
	for _, f := range list {
		lines = append(lines, string(f.State)+" "+f.Name+": "+f.Detail)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"unchecked who may speak: +15550100, other@example.org; no chat on this Mac has seen other@example.org\n",
		"; a wrong code came from +15550199\n",
	} {
		if !strings.Contains(text+"\n", want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}
