package bridge_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"netsky/config"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/access"
	"netsky/phone/chat"
	"netsky/store"
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

// With a list that can't be read nobody may speak, and what the owner can do about it reaches
// status and the doctor with the reason.
func TestGateSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, config, list, reason, next string }{
		{"a damaged list", "[owner]\nimessage = [\"+15550100\"]\n[imessage]\nenabled = true\n", "{", "nobody may speak by phone", "mv "},
		{"a handle that is none", "[owner]\ntelegram = [\"@owner\"]\n[telegram]\nenabled = true\ntoken_file = \"t\"\n", "", "\"@owner\": not a handle", "under [owner] in "},
	} {
		h := testworld.FastHome(t)
		mustWrite(t, h.Path(home.ConfigFile), tt.config)
		if tt.list != "" {
			mustWrite(t, h.Path(home.PhoneAccess), tt.list)
		}
		p := bridge.Phone{Home: h}
		_, err := p.Gate().Speakers()
		var d *chat.Degraded
		if !errors.As(err, &d) {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if !strings.Contains(d.Reason, tt.reason) || !strings.Contains(d.Next, tt.next) {
			t.Errorf("%s: %q, next %q", tt.name, d.Reason, d.Next)
		}
		if f := p.Glance()[0]; f.State != chat.Bad || f.Detail != d.Reason || f.Next != d.Next {
			t.Errorf("%s: the doctor says %+v", tt.name, f)
		}
	}
}

// A bridge that runs and reports nothing, as on a full disk, is not said to be well.
func TestSilentBridge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		age  time.Duration
		want chat.FactState
	}{
		{"a minute", time.Minute, chat.OK},
		{"ten minutes", 10 * time.Minute, chat.Bad},
	} {
		h := testworld.FastHome(t)
		lock := testworld.Got(h.Lock(home.PhoneLock))(t)
		defer lock.Unlock()
		seen := store.At(time.Now().Add(-tt.age))
		testworld.Must(t, h.Save(phone.StatusFile, phone.Status{Transport: "telegram", State: phone.StateOK, Since: seen, Seen: seen}, false))
		p := bridge.Phone{Home: h}
		p.Config.Telegram.Enabled = true
		f := p.Glance()[1]
		if f.State != tt.want || (f.State == chat.Bad) != strings.Contains(f.Detail, "reported nothing since") {
			t.Errorf("%s: %+v", tt.name, f)
		}
	}
}
