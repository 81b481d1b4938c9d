package bridge_test

import (
	"errors"
	"strings"
	"testing"

	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone/chat"
)

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
