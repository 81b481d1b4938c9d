package bridge_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"netsky/config"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
)

// An owner whose texts are not heard finds out why: the number lacks its country's code, or the
// texts came from somebody who may not speak.
func TestGlance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		handle  string
		ignored map[string]int
		state   chat.FactState // of who may speak
		says    []string
		silent  string
	}{
		{name: "all is well", handle: "+15550100", ignored: map[string]int{phone.VerdictOld: 1}, state: chat.OK, silent: "not heard"},
		{name: "a number without its country", handle: "555-0100", state: chat.Bad, says: []string{"no text comes from 5550100"}},
		{name: "a number with the 0 within the country", handle: "+49 (0)151 234567", state: chat.Bad, says: []string{"no text comes from +490151234567: the 0 behind"}},
		{name: "another's texts", handle: "me@example.org", ignored: map[string]int{phone.VerdictStranger: 2, phone.VerdictService: 1}, state: chat.OK,
			says: []string{"not heard: texts since the bridge began: 2 from others, 1 by SMS or RCS; if you wrote one", "access pair"}},
		{name: "a group's texts", handle: "me@example.org", ignored: map[string]int{phone.VerdictGroup: 3}, state: chat.OK, says: []string{"3 in groups"}, silent: "if you wrote one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := testworld.FastHome(t)
			mustWrite(t, h.Path(home.ConfigFile), fmt.Sprintf("[owner]\nimessage = [%q]\n[imessage]\nenabled = true\n", tt.handle))
			c, _, err := config.Load(h)
			testworld.Must(t, err)
			testworld.Must(t, h.Save(phone.StatusFile, phone.Status{Transport: "messages", State: phone.StateOK, Seen: 1, Ignored: tt.ignored}, false))
			lock, err := h.Lock(home.PhoneLock)
			testworld.Must(t, err)
			defer lock.Unlock()
			list := bridge.Phone{Config: c, Home: h}.Glance()
			var lines []string
			for _, f := range list {
				lines = append(lines, f.Name+": "+f.Detail)
			}
			text := strings.Join(lines, "\n")
			if list[0].State != tt.state {
				t.Errorf("who may speak is %s: %s", list[0].State, text)
			}
			for _, part := range tt.says {
				testworld.Contains(t, text, part)
			}
			if tt.silent != "" && strings.Contains(text, tt.silent) {
				t.Errorf("there is %q in:\n%s", tt.silent, text)
			}
		})
	}
}

// Whatever is wrong with the configuration, what the doctor prints has no password in it: people
// show its output to others.
func TestCheckTellsNoPassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://owner:hunter2@127.0.0.1:9", "https://127.0.0.1:9/?guid=hunter2", "https://127.0.0.1:9/#hunter2",
		"http://203.0.113.7/?password=hunter2", "https://%zz?guid=hunter2", "hunter2",
	} {
		h := testworld.FastHome(t)
		p := bridge.Phone{Home: h, Env: os.Environ()}
		p.Config.IMessage.Enabled, p.Config.IMessage.Through = true, config.ThroughBlueBubbles
		p.Config.IMessage.URL, p.Config.IMessage.PasswordFile = address, mustWrite(t, h.Path("password"), "hunter2")
		facts, err := p.Check(t.Context())
		if err != nil || len(facts) == 0 {
			t.Fatalf("%s: %v", address, err)
		}
		testworld.Lacks(t, fmt.Sprintf("%+v", facts), "hunter2", "%s", address)
	}
}
