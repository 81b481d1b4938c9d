package bus_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
)

// mustRemember lays down a file seen of n lines: m-0, m-1, … of agent0.
func mustRemember(tb testing.TB, h home.Dir, n int) {
	tb.Helper()
	var b strings.Builder
	now := time.Now().UnixMilli()
	fmt.Fprintf(&b, "%d\tagent0\tforgotten\t0\t\n", now-8*24*3600*1000)
	for i := range n {
		fmt.Fprintf(&b, "%d\tagent0\tm-%020x\t1\t\n", now, i)
	}
	b.WriteString(fmt.Sprint(now) + "\tagent0\thalf\t0\t")
	testworld.Must(tb, os.WriteFile(h.Path(home.Mailbox(a1), "seen"), []byte(b.String()), 0o600))
}

// seen renders messages of agent0 with these IDs, and asks whether the mailbox remembers them.
func seen(b *bus.Bus, id agent.ID, ids ...string) (bool, error) {
	var text strings.Builder
	for _, x := range ids {
		e := message(agent.Root, id, "hi")
		e.ID, e.Time = x, b.Now()
		text.WriteString(envelope.Render(e, b.Now()) + "\n")
	}
	return b.SeenText(id, text.String())
}

func remembered(i int) string { return fmt.Sprintf("m-%020x", i) }

func TestSeen(t *testing.T) {
	t.Parallel()
	const many = 20_000 // some chunks
	b, home := mustBus(t, bus.Options{}, agent.Root, a1)
	if all, err := seen(b, a1, "x"); all || err != nil {
		t.Errorf("Seen of an empty memory = %v, %v", all, err)
	}
	mustRemember(t, home, many)
	ids := make([]string, many)
	for i := range ids {
		ids[i] = remembered(i)
	}
	if all, err := seen(b, a1, ids...); !all || err != nil {
		t.Errorf("Seen of all that is remembered = %v, %v", all, err)
	}
	for _, tt := range []struct {
		ids  []string
		want bool
	}{
		{[]string{remembered(0)}, true},
		{[]string{remembered(many - 1), remembered(1), remembered(many - 2)}, true},
		{[]string{remembered(many)}, false},
		{[]string{remembered(3), "never"}, false},
		{[]string{"forgotten"}, false},
		{[]string{"half"}, false},
		{[]string{"agent0"}, false}, // a sender
		{[]string{"1"}, false},      // hops
	} {
		testworld.Equal(t, testworld.Got(seen(b, a1, tt.ids...))(t), tt.want, "Seen(%v)", tt.ids)
	}
	testworld.Fails(t, testworld.Err(seen(b, "../agent1", "a")), "", "Seen of no address is no error")
}

// TestSeenOfAReceiver: what a receiver confirmed is remembered at once, with the
// mailbox still in its hands, and a text is known only with its sender.
func TestSeenOfAReceiver(t *testing.T) {
	t.Parallel()
	b, _ := mustBus(t, bus.Options{}, agent.Root, agent.Clone(2), a1)
	e := message(agent.Root, a1, "hi")
	e.ID = "one"
	mustSend(t, b, e)
	r := mustReceive(t, b, a1, bus.ReceiveOptions{})
	d := mustNext(t, r)
	look := func(text string, want bool) {
		t.Helper()
		if again, err := b.SeenText(a1, text); again != want || err != nil {
			t.Errorf("SeenText(%q) = %v, %v, want %v", text, again, err, want)
		}
	}
	text := d.Rendered()
	look(text, false)
	mustConfirm(t, d)
	look(text, true)
	look(envelope.RenderNotice("hi")+"\n"+text+"\n"+text, true)
	look(text+"\nand a word", false)
	look(strings.ReplaceAll(text, "agent0", "agent2"), false)
	look(text+"\n"+strings.ReplaceAll(text, `"one"`, `"two"`), false)
	look(envelope.RenderNotice("hi"), false)
	look("", false)
	if all, err := seen(b, a1, "one"); !all || err != nil {
		t.Errorf("Seen = %v, %v", all, err)
	}
}

func BenchmarkSeen(b *testing.B) {
	w, home := mustBus(b, bus.Options{}, agent.Root, a1)
	mustRemember(b, home, 100_000)
	for _, tt := range []struct {
		name string
		id   string
	}{{"new", "m-new"}, {"last", remembered(99_999)}, {"first", remembered(0)}} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				testworld.Got(seen(w, a1, tt.id))(b)
			}
		})
	}
}
