package bridge_test

import (
	"strings"
	"testing"
	"time"

	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/store"
)

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
