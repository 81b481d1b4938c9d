//go:build live

package phone_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/record"
	"netsky/store"
)

// A chat gets no more than a hundred texts in an hour, of which mail takes eighty: the rest is
// for what the owner has to decide.
func TestHour(t *testing.T) {
	c := &clock{}
	w := newWorld(t, func(o *phone.Options) {
		c.of(o)
		o.Pace = phone.Pace{Minute: 1000, Hour: 100}
	})
	for i := range 90 {
		w.mail(store.Message{ID: fmt.Sprint("m-", i), From: agent.Root, Text: fmt.Sprintf("report %d.", i), Metadata: forPhone})
	}
	sent := func(n int) {
		t.Helper()
		testworld.WaitOr(t, func() bool { return len(w.wire.Texts()) == n }, func() string { return fmt.Sprintf("%d texts, want %d", len(w.wire.Texts()), n) })
	}
	sent(80)
	rec := record.Records{DB: w.db}
	for i := range 25 {
		testworld.Must(t, rec.Say(t.Context(), record.Said{Line: "test", ID: fmt.Sprint("a-", i), Part: 1, Parts: 1, Chat: record.Chat{Key: mine.Key, GUID: mine.GUID},
			Kind: "alert", Rank: 2, Text: "[netsky] an alert", Created: store.At(c.now())}))
	}
	sent(100)
	testworld.Equal(t, w.wire.Texts()[99], "[netsky] an alert", "the hundredth")
	testworld.Wait(t, "it is reported", func() bool {
		s, err := phone.Load(w.home)
		return err == nil && strings.Contains(strings.Join(s.Lines(c.now()), "\n"), "phone: enough texts went to you within the hour; more are sent from ")
	})
	c.set(time.Hour)
	sent(115) // five alerts and ten reports
}
