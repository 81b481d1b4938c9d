package bus

import (
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus/envelope"
	"netsky/bus/mailbox"
	"netsky/home"
)

func TestShutdownDue(t *testing.T) {
	for _, tt := range []struct {
		name          string
		asked, claim  time.Duration // ago
		inHand, turns int
		want          time.Duration
	}{
		{"idle", 0, time.Hour, 0, 0, 0},
		{"a turn runs", 0, time.Hour, 1, 1, time.Second},
		{"the last of 45 s", 44 * time.Second, time.Hour, 1, 1, time.Second},
		{"45 s", 45 * time.Second, time.Hour, 1, 1, 0},
		{"claimed, no turn yet", 0, 0, 1, 0, time.Second},
		{"claimed a while ago", 0, 700 * time.Millisecond, 1, 0, 300 * time.Millisecond},
		{"claimed, and never a turn", time.Second, time.Second, 1, 0, 0},
		{"claimed and confirmed", 0, 0, 0, 0, 0},
		{"claimed by a clock that was set back", 0, -time.Hour, 1, 0, time.Second},
		{"claimed when the 45 s were over", 45 * time.Second, 0, 1, 0, 0},
	} {
		now := time.Now()
		s := shutdown{since: now.Add(-tt.asked)}
		if got := s.due(now, now.Add(-tt.claim), tt.inHand, tt.turns); got != tt.want {
			t.Errorf("%s: due in %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What becomes of a message that has been claimed, and who is told.
func TestDispose(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past := now.Add(-time.Second)
	type fate struct {
		handed bool
		place  Place
		reason mailbox.Reason
		told   int // messages to the sender
	}
	handed := fate{true, Claimed, "", 0}
	for _, tt := range []struct {
		name                      string
		expires                   time.Time
		kind                      envelope.Kind
		text                      string
		known, ours, given, again bool // again: it was found expired, and then something failed
		want                      fate
	}{
		{name: "new", ours: true, want: handed},
		{name: "of a dead holder", want: handed},
		{name: "will expire", expires: now.Add(time.Hour), ours: true, want: handed},
		{name: "a copy", known: true, ours: true, want: fate{false, Delivered, mailbox.Duplicate, 0}},
		{name: "confirmed by a dead holder", known: true, want: fate{false, Delivered, "", 0}},
		{name: "an expired copy", expires: past, known: true, ours: true, want: fate{false, Delivered, mailbox.Duplicate, 0}},
		{name: "expired", expires: past, ours: true, want: fate{false, Delivered, mailbox.Expired, 1}},
		{name: "expired, nobody waits", expires: past, kind: envelope.KindReply, ours: true, want: fate{false, Delivered, mailbox.Expired, 0}},
		{name: "expired, half done", expires: past, known: true, ours: true, again: true, want: fate{false, Delivered, mailbox.Expired, 1}},
		{name: "expired, perhaps given out", expires: past, given: true, want: handed},
		{name: "too long", text: strings.Repeat("long ", 1000), ours: true, want: fate{false, Poison, mailbox.Refused, 1}},
		{name: "too long and expired", text: strings.Repeat("long ", 1000), expires: past, ours: true, want: fate{false, Delivered, mailbox.Expired, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h, err := home.At(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			b, from, to := New(h, Options{}), agent.Root, agent.Clone(1)
			for _, id := range []agent.ID{from, to} {
				if err := b.Make(id); err != nil {
					t.Fatal(err)
				}
			}
			sent, err := b.Send(t.Context(), envelope.Envelope{From: from, To: to, Kind: tt.kind, Text: tt.text + "hi", Expires: tt.expires})
			if err != nil {
				t.Fatal(err)
			}
			r, err := b.hold(to, "", ReceiveOptions{MaxText: 4000, Offered: func(envelope.Envelope) bool { return tt.given }})
			if err != nil {
				t.Fatal(err)
			}
			defer r.release()
			if err := os.Rename(b.home.Path(placePath(to, Inbox), sent.File), b.home.Path(placePath(to, Claimed), sent.File)); err != nil {
				t.Fatal(err)
			}
			claimed, err := r.use(&r.claimed)
			if err != nil {
				t.Fatal(err)
			}
			l := &letter{candidate: candidate{name: sent.File}, claimed: true, ours: tt.ours, expired: tt.again}
			if r.look(l, claimed); l.env == nil {
				t.Fatal(l.bad, l.sys)
			}
			if tt.known {
				if err := r.seen.Add(now, *l.env); err != nil {
					t.Fatal(err)
				}
			}
			d, err := r.dispose(l, now)
			if err != nil {
				t.Fatal(err)
			}
			got := fate{handed: d != nil}
			list, err := b.Locate(t.Context(), sent.ID)
			if len(list) != 1 || err != nil {
				t.Fatal(list, err)
			}
			got.place, got.reason = list[0].Place, list[0].Reason
			if got.told, err = b.Count(from, Inbox); got != tt.want || err != nil {
				t.Errorf("%+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}
