package phone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/messagesim"
	"netsky/internal/testworld"
	"netsky/phone"
	"netsky/phone/chat"
	"netsky/phone/record"
	"netsky/store"
)

const me = messagesim.Me

var mine = messagesim.Mine

// A desk has items to answer, each once.
type desk struct {
	mu      sync.Mutex // guards the fields below
	list    []attention.Need
	settled map[string]string
	took    []string
	down    map[agent.ID]bool
	looks   int
	stopped []agent.ID
}

func (d *desk) Needs(context.Context) ([]attention.Need, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return slices.Clone(d.list), nil
}

func (d *desk) Answer(_ context.Context, n attention.Need, allow bool) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, ok := attention.Find(d.list, n.Code)
	if !ok || now.Digest != n.Digest {
		return "", errors.New(n.Code + " is settled: " + d.settled[n.Code])
	}
	d.list = slices.DeleteFunc(d.list, func(v attention.Need) bool { return v.Code == n.Code })
	d.took = append(d.took, fmt.Sprint(n.Code, " ", allow))
	d.settled[n.Code] = fmt.Sprint("answered ", allow)
	return fmt.Sprintf("%s: done (%v).", n.Code, allow), nil
}

func (d *desk) How(_ context.Context, code string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settled[code]
}

func (d *desk) Status(context.Context) (string, error) { return "2 agents up", nil }
func (d *desk) Peek(_ context.Context, id agent.ID, n int) (string, error) {
	return fmt.Sprintf("the screen of %s, %d lines", id, n), nil
}
func (d *desk) Stop(_ context.Context, id agent.ID) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = append(d.stopped, id)
	return string(id) + ": its turn has ended.", nil
}
func (d *desk) Waits(_ context.Context, id agent.ID) string {
	if d.down[id] {
		return string(id) + " is down: your message waits until it is up."
	}
	return ""
}

func (d *desk) asks(code, text string) attention.Need {
	return d.asksAtOnce(agent.Approval{Code: code, Text: text})[0]
}

// asksAtOnce lets several be there from one look to the next.
func (d *desk) asksAtOnce(list ...agent.Approval) []attention.Need {
	for i := range list {
		list[i].Agent, list[i].Tool, list[i].AskedMS = "agent1", "Bash", time.Now().UnixMilli()
	}
	fresh := attention.List(attention.Sources{Approvals: list})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, fresh...)
	return fresh
}

// A world is a home with a bridge in it.
type world struct {
	t     *testing.T
	home  home.Dir
	bus   *bus.Bus
	db    *store.DB
	wire  *messagesim.Wire
	gate  *messagesim.Gate
	desk  *desk
	opts  func(*phone.Options)
	stop  func()
	leave func() // stop without waiting
}

func newWorld(t *testing.T, opts func(*phone.Options)) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, home: testworld.FastHome(t), wire: messagesim.NewWire(), gate: &messagesim.Gate{}, opts: opts,
		desk: &desk{settled: map[string]string{}, down: map[agent.ID]bool{}}}
	w.bus = testworld.Bus(t, w.home, agent.Root, "agent1", "agent2", agent.Infinity, agent.Owner)
	w.open()
	// Mail from before the first use is not forwarded; reading has begun.
	testworld.Got((record.Records{DB: w.db}).Open(t.Context(), "test", "0", 0, time.Now()))(t)
	w.start()
	return w
}

func (w *world) open() {
	w.t.Helper()
	db := testworld.Got(store.Open(w.t.Context(), w.home))(w.t)
	w.db = db
	w.t.Cleanup(func() { db.Close() })
}

func (w *world) options() phone.Options {
	o := phone.Options{
		Home: w.home, Bus: w.bus, Records: func() *store.DB { return w.db }, Transport: w.wire, Gate: w.gate, Desk: w.desk, SelfChat: true,
		To: func() (chat.Chat, error) { return mine, nil }, Via: "imessage",
		Shown: func(context.Context, string) (bool, error) { return false, nil }, Log: slog.New(slog.DiscardHandler),
		Pace: phone.Pace{Gap: 20 * time.Millisecond, Minute: 20, Hour: 100}, Look: 100 * time.Millisecond,
	}
	if w.opts != nil {
		w.opts(&o)
	}
	return o
}

func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	b := phone.New(w.options())
	go func() { ended <- b.Run(ctx) }()
	testworld.Wait(w.t, "the bridge runs", func() bool { on, err := w.home.Locked(home.PhoneLock); return err == nil && on })
	w.leave = cancel
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("bridge: %v", err)
		}
	})
	w.t.Cleanup(func() { w.stop() })
}

// inbox returns the texts in an agent's inbox.
func (w *world) inbox(id agent.ID) (list []envelope.Envelope) {
	w.t.Helper()
	entries := testworld.Got(w.bus.List(id, bus.Inbox, 0))(w.t)
	for _, e := range entries {
		list = append(list, e.Envelope)
	}
	slices.SortFunc(list, func(a, b envelope.Envelope) int { return a.Time.Compare(b.Time) })
	return list
}

// arrives waits until the agent's inbox has this text.
func (w *world) arrives(id agent.ID, text string) envelope.Envelope {
	w.t.Helper()
	var got envelope.Envelope
	testworld.WaitOr(w.t, func() bool {
		list := w.inbox(id)
		i := slices.IndexFunc(list, func(e envelope.Envelope) bool { return e.Text == text })
		if i >= 0 {
			got = list[i]
		}
		return i >= 0
	}, func() string {
		data, _ := json.Marshal(w.inbox(id))
		return fmt.Sprintf("%q is not in the inbox of %s: %s; said: %q", text, id, data, w.wire.Texts())
	})
	return got
}

// says waits until a text with this in it was sent to the phone.
func (w *world) says(part string) string {
	w.t.Helper()
	text := ""
	testworld.WaitOr(w.t, func() bool {
		list := w.wire.Texts()
		i := slices.IndexFunc(list, func(s string) bool { return strings.Contains(s, part) })
		if i >= 0 {
			text = list[i]
		}
		return i >= 0
	}, func() string { return fmt.Sprintf("%q was not sent: %q", part, w.wire.Texts()) })
	return text
}

// mail records a message to the owner, as the daemon does.
func (w *world) mail(m store.Message) {
	w.t.Helper()
	m.To = agent.Owner
	if m.Time == 0 {
		m.Time = store.At(time.Now())
	}
	testworld.Must(w.t, w.db.Apply(w.t.Context(), store.UpsertMessage(m)))
}
