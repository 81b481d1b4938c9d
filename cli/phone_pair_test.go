//go:build live

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netsky/home"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone/access"
	"netsky/phone/chat"
)

// TestPairing sits at a terminal; the part of the phone and the bridge is played by the
// test: it passes on a stranger's message with the code.
func TestPairing(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	s := w.mustScreen(t, "pairing", "env -u TMUX -u TMUX_PANE sh")
	h := testworld.Got(home.At(w.home))(t)
	const pairing = "state/phone-pairing.json"
	pair := func() (code string) {
		t.Helper()
		s.types("clear", "Enter")
		s.lacks(`(?m)^[a-z]{6} *$`)
		s.types("netsky imessage access pair; echo status $?", "Enter")
		s.shows(`(?m)^[a-z]{6} *$`)
		return strings.TrimSpace(regexp.MustCompile(`(?m)^[a-z]{6} *$`).FindString(s.text()))
	}
	sends := func(handle, text string) {
		t.Helper()
		m := chat.Message{
			Handle: handle, Text: text, Service: chat.ServiceTelegram, Kind: chat.Text,
			Chat: chat.Chat{Key: "-;" + handle, Identifier: handle, Direct: true},
		}
		if taken, err := access.Offer(t.Context(), h, m, time.Now()); err != nil || !taken {
			t.Fatalf("Offer: %v, %v", taken, err)
		}
	}

	s.types("netsky imessage access pair", "Enter")
	s.shows(`no phone is enabled, so no code can arrive`)
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, "netsky.toml"), []byte("[imessage]\nenabled = true\n"), 0o600))
	s.types("clear; netsky imessage access pair", "Enter")
	s.shows(`the daemon, which runs the bridge, is not running`)
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")

	// Ctrl-C ends it, while it waits and while it asks.
	pair()
	s.keys("C-c")
	s.shows(`(?s)ended; nobody was allowed.*status 1`)
	testworld.Equal(t, h.Mark(pairing).Exists(), false, "the pairing is still there")
	sends("987654321", pair())
	s.shows(`987654321 sent the code by Telegram\. Allow it to give orders by phone\? \[y/N\]`)
	s.keys("C-c")
	s.shows(`(?s)ended; nobody was allowed.*status 1`)

	// Anything but yes is no.
	sends("987654321", pair())
	s.shows(`\[y/N\]`)
	s.keys("Enter")
	s.shows(`(?s)nothing was done.*status 0`)

	// Yes allows who sent it.
	sends("987654321", pair())
	s.shows(`\[y/N\]`)
	s.types("y", "Enter")
	s.shows(`(?s)987654321: may give orders by phone.*status 0`)
	testworld.Wait(t, "the pairing's end", func() bool { return !h.Mark(pairing).Exists() })
	if l, err := access.Load(h, nil); err != nil || !l.May("987654321") {
		t.Errorf("%+v, %v", l.Entries(), err)
	}
	s.types("clear; netsky imessage access ls", "Enter")
	s.shows(`987654321  allowed by a pairing`)
}

// The code is texted from the phone itself, which is then told that it counts.
func TestPairedPhone(t *testing.T) {
	t.Parallel()
	w := mustPhone(t, "")
	s := w.mustScreen(t, "pairing", "env -u TMUX -u TMUX_PANE sh")
	w.must(t, "netsky", "up", "0", "--type", "demo", "--no-attach")
	const other = "+15550177"
	says := func(text string) {
		w.sim.Insert(messagesim.Message{From: other, Chat: "iMessage;-;" + other, Text: text, At: time.Now()})
	}
	says("status")
	s.types("netsky imessage access pair; echo status $?", "Enter")
	s.shows(`(?m)^[a-z]{6} *$`)
	says(strings.TrimSpace(regexp.MustCompile(`(?m)^[a-z]{6} *$`).FindString(s.text())))
	s.shows(`\+15550177 sent the code by iMessage\. Allow it to give orders by phone\? \[y/N\]`)
	s.types("y", "Enter")
	s.shows(`(?s)\+15550177: may give orders by phone.*status 0`)
	w.gets("iMessage;-;" + other + "\x00text\x00[netsky] You may give orders from here now.")
	says("status")
	w.gets("iMessage;-;" + other + "\x00text\x00[netsky] agent0 idle")
	testworld.Equal(t, w.count("agent0 idle"), 1, "answers to what was written before and after the pairing")
	testworld.Contains(t, w.must(t, "netsky", "imessage", "history"), " netsky: You may give orders from here now.", "history")
	out, _ := w.command(t.Context(), "netsky", "imessage", "doctor").CombinedOutput()
	for _, want := range []string{"not heard: texts since the bridge began: 2 from others", "sending: the last text that was seen to go out was sent "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor does not say %q:\n%s", want, out)
		}
	}
	w.must(t, "netsky", "daemon", "stop")
	testworld.Contains(t, w.must(t, "netsky", "status"), "nobody reads or sends texts, since the bridge does not run", "status without the daemon")
}
