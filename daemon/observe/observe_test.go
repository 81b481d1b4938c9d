package observe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("OBSERVE_TEST_HOME"); dir != "" {
		fmt.Fprintln(os.Stderr, child(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type rig struct {
	testing.TB
	home home.Dir
	bus  *bus.Bus
	db   *store.DB
	obs  *observe.Observer
	n    int
}

func newRig(tb testing.TB, boxes ...agent.ID) *rig {
	tb.Helper()
	r := &rig{TB: tb, home: testworld.Home(tb)}
	r.bus = testworld.Bus(tb, r.home, boxes...)
	var err error
	r.db, err = store.Open(tb.Context(), r.home)
	testworld.Must(r, err)
	tb.Cleanup(func() { testworld.Must(r, r.db.Close()) })
	r.obs = &observe.Observer{Bus: r.bus, DB: r.db}
	return r
}

func (r *rig) sync() {
	r.Helper()
	testworld.Must(r, r.obs.Sync(r.Context()))
}

// run runs the observer until the test ends.
func (r *rig) run() {
	ctx, stop := context.WithCancel(r.Context())
	done := make(chan error, 1)
	go func() { done <- r.obs.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		<-done
	})
}

func (r *rig) path(id agent.ID, p bus.Place, name string) string {
	return r.home.Path(home.Mailbox(id), string(p), name)
}

// drop puts a file into a place as a person would.
func (r *rig) drop(id agent.ID, p bus.Place, name, text string) {
	r.Helper()
	file := r.path(id, p, name)
	temp := filepath.Join(filepath.Dir(file), "."+name)
	testworld.Must(r, os.WriteFile(temp, []byte(text), 0o600))
	testworld.Must(r, os.Rename(temp, file))
}

func newEnvelope(id string, from agent.ID, more string) string {
	return fmt.Sprintf(`{"id":%q,"from":%q,"text":"hi","ts":"2026-11-20T12:00:00Z"%s}`, id, from, more)
}

func (r *rig) state(message string, target agent.ID) store.Delivery {
	r.Helper()
	l := testworld.Got(r.db.Deliveries(r.Context(), store.DeliveryFilter{Message: message, Target: target}))(r)
	if len(l.Items) != 1 {
		return store.Delivery{}
	}
	return l.Items[0]
}

// recorded is state while the database may be missing, as it was deleted.
func (r *rig) recorded(message string, target agent.ID) store.DeliveryState {
	l, err := r.db.Deliveries(r.Context(), store.DeliveryFilter{Message: message, Target: target})
	if err != nil || len(l.Items) != 1 {
		return ""
	}
	return l.Items[0].State
}

// take receives one envelope and does with it what is asked.
func (r *rig) take(id agent.ID, do func(*bus.Delivery) error) {
	r.Helper()
	rec := testworld.Got(r.bus.Receive(r.Context(), id, bus.ReceiveOptions{}))(r)
	defer rec.Close()
	d := testworld.Got(rec.Next(r.Context()))(r)
	testworld.Must(r, do(d))
}

func TestStates(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0", "agent1", "owner")
	for _, id := range []string{"m-queued", "m-claimed", "m-done"} {
		r.drop("agent1", bus.Inbox, id+".json", newEnvelope(id, "owner", `,"thread":"th","requires_ack":true,"note":[1]`))
	}
	r.drop("agent1", bus.Claimed, "m-claimed2.json", newEnvelope("m-claimed2", "owner", ""))
	r.drop("agent1", bus.Delivered, "m-old.json", newEnvelope("m-old", "agent0", ""))
	r.drop("agent1", bus.Delivered, "m-late.json", newEnvelope("m-late", "agent0", ""))
	testworld.Must(r, os.WriteFile(r.path("agent1", bus.Delivered, "m-late.json.why"), []byte("filed unread: it expired at noon\n"), 0o600))
	r.drop("agent1", bus.Inbox, "half.json", `{"from":"own`)
	r.sync()
	for id, want := range map[string]store.DeliveryState{"m-queued": store.Queued, "m-claimed2": store.Claimed,
		"m-old": store.Delivered, "m-late": store.Expired} {
		if d := r.state(id, "agent1"); d.State != want || d.Queued == 0 {
			t.Errorf("%s: %+v, want %s", id, d, want)
		}
	}
	m := testworld.Got(r.db.Message(t.Context(), "m-queued"))(r)
	if m.From != "owner" || m.To != "agent1" || m.Text != "hi" || m.Thread != "th" || !m.RequiresAck ||
		m.Time.String() != "2026-11-20T12:00:00.000Z" || string(m.Metadata["note"]) != "[1]" {
		t.Errorf("m-queued: %+v", m)
	}
	if l, err := r.db.Messages(t.Context(), store.MessageFilter{}); err != nil || len(l.Items) != 6 {
		t.Errorf("%d messages, %v, want 6 and nothing of the half file", len(l.Items), err)
	}
	r.drop("agent1", bus.Inbox, "half.json", newEnvelope("m-half", "owner", ""))
	r.sync()
	if d := r.state("m-half", "agent1"); d.State != store.Queued {
		t.Errorf("the half file, now whole: %+v, want queued", d)
	}
}

// A copy that is filed unread changes nothing about the first one, seen by one observer
// step by step or by another all at once.
func TestCopies(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Inbox, "1.json", newEnvelope("key-1", "owner", ""))
	r.sync()
	r.take("agent1", func(d *bus.Delivery) error { return d.Confirm() })
	r.sync()
	first := r.state("key-1", "agent1")
	if first.State != store.Delivered || first.Reason != "" {
		t.Fatalf("%+v", first)
	}
	r.drop("agent1", bus.Inbox, "2.json", newEnvelope("key-1", "owner", ""))
	r.sync()
	testworld.Got(r.bus.Drain(r.Context(), "agent1", 1, func(envelope.Envelope) error { return errors.New("given again") }))(r)
	names := testworld.Got(r.bus.Names("agent1", bus.Delivered))(r)
	if len(names) != 2 {
		t.Fatalf("delivered/ holds %v", names)
	}
	r.sync()
	testworld.Equal(t, r.state("key-1", "agent1"), first)
	late := testworld.Got(store.Open(t.Context(), testworld.Home(t)))(r)
	t.Cleanup(func() { testworld.Must(r, late.Close()) })
	testworld.Must(r, (&observe.Observer{Bus: r.bus, DB: late}).Sync(t.Context()))
	if d, err := late.Delivery(t.Context(), "key-1", "owner", "agent1"); err != nil || d.Filed != store.Delivered || d.Reason != "" {
		t.Errorf("read at once: %+v, %v; want delivered, without a reason", d, err)
	}
}

// The way of messages through a real mailbox, looked at after each step.
func TestMoves(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0", "agent1", "owner")
	for _, id := range []string{"1-read", "2-bad", "3-back"} {
		r.drop("agent1", bus.Inbox, id+".json", newEnvelope(id, "owner", ""))
	}
	r.sync()
	check := func(id string, want store.DeliveryState, attempts int) {
		t.Helper()
		r.sync()
		if d := r.state(id, "agent1"); d.State != want || d.Attempts != attempts {
			t.Errorf("%s: %+v, want %s, %d attempts", id, d, want, attempts)
		}
	}
	r.take("agent1", func(d *bus.Delivery) error {
		check("1-read", store.Claimed, 0)
		return d.Confirm()
	})
	check("1-read", store.Delivered, 0)
	r.take("agent1", func(d *bus.Delivery) error { return d.Poison("too long for agent1") })
	check("2-bad", store.Poisoned, 0)
	if d := r.state("2-bad", "agent1"); d.Reason != "too long for agent1" || d.Answer == "" {
		t.Errorf("2-bad: %+v, want its reason, and the error that told the sender", d)
	}
	names := testworld.Got(r.bus.Names("agent1", bus.Poison))(r)
	testworld.Got(r.bus.PoisonRetry("agent1", names[0]))(r)
	check("2-bad", store.Queued, 1)
	testworld.Got(r.bus.Drain(t.Context(), "agent1", 2, func(e envelope.Envelope) error {
		check(e.ID, store.Claimed, map[string]int{"2-bad": 1}[e.ID])
		if e.ID == "2-bad" {
			return bus.ErrLeave
		}
		return nil
	}))(r)
	check("3-back", store.Delivered, 0)
	check("2-bad", store.Queued, 2)
	testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{From: "agent1", To: "owner", Kind: envelope.KindReply, InReplyTo: "1-read", Text: "yes"}))(r)
	check("1-read", store.Answered, 0)
	d := r.state("1-read", "agent1")
	if d.Queued == 0 || d.Claimed == 0 || d.Delivered == 0 || d.Answered == 0 || d.Claimed > d.Delivered {
		t.Errorf("1-read: %+v, want all its times, in order", d)
	}
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0", "agent1")
	r.drop("agent1", bus.Outbox, "a.json", `{"id":"m-a","to":"agent0","text":"hi"}`)
	r.drop("agent1", bus.Outbox, "b.json", `{"id":"m-b","to":"agent7","text":"hi","from":"agent1","ts":"2026-11-20T12:00:00Z"}`)
	r.sync()
	if d := r.state("m-a", "agent0"); d.State != "" {
		t.Errorf("m-a before it was sent: %+v, want no delivery", d)
	}
	testworld.Must(r, r.bus.Route(t.Context()))
	r.sync()
	if d := r.state("m-a", "agent0"); d.State != store.Queued || d.From != "agent1" {
		t.Errorf("m-a: %+v, want queued, from agent1", d)
	}
	if d := r.state("m-b", "agent7"); d.State != store.Poisoned || !strings.Contains(d.Reason, "no mailbox") {
		t.Errorf("m-b: %+v, want poisoned with the reason", d)
	}
}

func TestPoisonThatIsNoEnvelope(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Poison, "odd.json", "not json\x1b[2J")
	testworld.Must(r, os.WriteFile(r.path("agent1", bus.Poison, "odd.json.why"), []byte("not delivered: not JSON\n\nA right envelope\n"), 0o600))
	r.sync()
	l, err := r.db.Deliveries(t.Context(), store.DeliveryFilter{State: store.Poisoned})
	testworld.Must(r, err)
	if len(l.Items) != 1 || l.Items[0].Target != "agent1" || l.Items[0].Reason != "not JSON" {
		t.Fatalf("%+v, want one poisoned delivery with its reason", l.Items)
	}
	m, err := r.db.Message(t.Context(), l.Items[0].Message)
	if err != nil || string(m.Metadata["file"]) != `"odd.json"` {
		t.Errorf("%+v, %v, want the file's name", m, err)
	}
}

// What vanishes from an inbox is cancelled; a shutdown that was taken back too.
func TestVanished(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Inbox, "a.json", newEnvelope("m-removed", "owner", ""))
	r.drop("agent1", bus.Inbox, "b.json", newEnvelope("m-shutdown", "agent0", `,"kind":"shutdown","start":"x"`))
	old := store.At(time.Now().Add(-time.Hour))
	testworld.Must(r, r.db.Apply(t.Context(), store.UpsertMessage{ID: "m-never", From: "owner", To: "agent1", Text: "x"},
		store.UpsertDelivery{Message: "m-never", Target: "agent1", State: store.Queued, Time: old}))
	r.run()
	testworld.Wait(r, "both queued", func() bool {
		return r.state("m-removed", "agent1").State == store.Queued && r.state("m-shutdown", "agent1").State == store.Queued
	})
	testworld.Must(r, os.Remove(r.path("agent1", bus.Inbox, "a.json")))
	n, err := r.bus.Retract(t.Context(), "agent1", func(envelope.Envelope) bool { return true })
	if n != 1 || err != nil {
		t.Fatalf("Retract: %d, %v", n, err)
	}
	testworld.Wait(r, "all cancelled", func() bool {
		for _, id := range []string{"m-removed", "m-shutdown", "m-never"} {
			if r.state(id, "agent1").State != store.Cancelled {
				return false
			}
		}
		return true
	})
	if d := r.state("m-shutdown", "agent1"); !strings.Contains(d.Reason, "taken back") {
		t.Errorf("m-shutdown: %+v, want that it was taken back", d)
	}
}

func TestNewMailbox(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0")
	r.run()
	testworld.Must(r, r.bus.Make("agent9"))
	testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{ID: "m-1", From: "owner", To: "agent9", Text: "hi"}))(r)
	testworld.Wait(r, "the message to a new mailbox", func() bool { return r.state("m-1", "agent9").State == store.Queued })
}

// A database that fails is told once and tried again, and nothing is lost.
func TestFailingDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	var out bytes.Buffer
	log := make(chan string, 100)
	r.obs.Log = slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) { log <- string(p); return len(p), nil }), nil))
	mustSQL(t, r.home, "CREATE TRIGGER broken BEFORE INSERT ON messages BEGIN SELECT raise(ABORT, 'disk full'); END")
	r.run()
	for i := range 5 {
		r.drop("agent1", bus.Inbox, fmt.Sprint(i, ".json"), newEnvelope(fmt.Sprint("m-", i), "owner", ""))
	}
	testworld.Wait(r, "a warning", func() bool { return len(log) > 0 })
	<-time.After(1500 * time.Millisecond) // for a second failure, which is not told
	mustSQL(t, r.home, "DROP TRIGGER broken")
	testworld.Wait(r, "all five", func() bool {
		for i := range 5 {
			if r.state(fmt.Sprint("m-", i), "agent1").State != store.Queued {
				return false
			}
		}
		return true
	})
	testworld.Wait(r, "the all-clear", func() bool { return len(log) > 1 })
	for len(log) > 0 {
		out.WriteString(<-log)
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "disk full") || !strings.Contains(text, "again") {
		t.Errorf("log:\n%swant one failure and one recovery", text)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// The database is deleted while the observer runs: all is recorded anew.
func TestDeletedDatabase(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Delivered, "old.json", newEnvelope("m-old", "owner", ""))
	r.run()
	testworld.Wait(r, "the first", func() bool { return r.state("m-old", "agent1").State == store.Delivered })
	for _, suffix := range []string{"", "-wal", "-shm"} {
		testworld.Must(r, os.Remove(r.home.Path(home.DBFile+suffix)))
	}
	r.drop("agent1", bus.Inbox, "new.json", newEnvelope("m-new", "owner", ""))
	testworld.Wait(r, "the new one, then the old one", func() bool {
		return r.recorded("m-new", "agent1") == store.Queued && r.recorded("m-old", "agent1") == store.Delivered
	})
}

// The name that a person gave a file stays with the message; ours don't.
func TestGivenName(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Inbox, "hello.json", newEnvelope("m-first", "owner", ""))
	r.drop("agent1", bus.Delivered, "hello~2.json", newEnvelope("m-second", "owner", `,"more":1`))
	testworld.Got(r.bus.Send(r.Context(), envelope.Envelope{ID: "m-sent", From: agent.Owner, To: "agent1", Text: "hi"}))(r)
	r.sync()
	for id, want := range map[string]string{"m-first": `"hello.json"`, "m-second": `"hello.json"`, "m-sent": ""} {
		m := testworld.Got(r.db.Message(r.Context(), id))(r)
		testworld.Equal(t, string(m.Metadata[store.MetaFile]), want, "%s came in", id)
	}
	if m, _ := r.db.Message(r.Context(), "m-second"); string(m.Metadata["more"]) != "1" {
		t.Errorf("metadata %v", m.Metadata)
	}
}

// The database is deleted while nothing happens on the bus.
func TestDeletedWhileQuiet(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Delivered, "old.json", newEnvelope("m-old", "owner", ""))
	r.run()
	testworld.Wait(r, "the first", func() bool { return r.state("m-old", "agent1").State == store.Delivered })
	testworld.Must(r, os.Remove(r.home.Path(home.DBFile)))
	testworld.Wait(r, "the same in a new file", func() bool {
		_, err := os.Stat(r.home.Path(home.DBFile))
		return err == nil && r.recorded("m-old", "agent1") == store.Delivered
	})
}

// The .why comes a moment after its file: what it would change is not settled
// before.
func TestWhyComesLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	r.drop("agent1", bus.Delivered, "a.json", newEnvelope("m-taken", "agent0", `,"kind":"shutdown","start":"x"`))
	r.drop("agent1", bus.Delivered, "b.json", newEnvelope("m-late", "agent0", `,"expires":"2026-01-01T00:00:00Z"`))
	r.drop("agent1", bus.Poison, "c.json", newEnvelope("m-bad", "agent0", ""))
	r.drop("agent1", bus.Delivered, "d.json", newEnvelope("m-plain", "agent0", ""))
	r.sync()
	for id, want := range map[string]store.DeliveryState{"m-taken": "", "m-late": "", "m-bad": "", "m-plain": store.Delivered} {
		if d := r.state(id, "agent1"); d.State != want {
			t.Errorf("%s without a reason: %+v, want %q", id, d, want)
		}
	}
	testworld.Must(r, os.WriteFile(r.path("agent1", bus.Delivered, "a.json.why"), []byte("filed unread: taken back before it was claimed\n"), 0o600))
	testworld.Must(r, os.WriteFile(r.path("agent1", bus.Delivered, "b.json.why"), []byte("filed unread: it expired at noon\n"), 0o600))
	testworld.Must(r, os.WriteFile(r.path("agent1", bus.Poison, "c.json.why"), []byte("not delivered: a test\n"), 0o600))
	r.sync()
	for id, want := range map[string]store.DeliveryState{"m-taken": store.Cancelled, "m-late": store.Expired, "m-bad": store.Poisoned} {
		if d := r.state(id, "agent1"); d.State != want || d.Reason == "" {
			t.Errorf("%s: %+v, want %s and why", id, d, want)
		}
	}
}

// A directory's time alone does not tell two changes apart that came at the
// same moment.
func TestSameMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	at := time.Now().Add(time.Hour)
	for _, id := range []string{"m-1", "m-2"} {
		r.drop("agent1", bus.Inbox, id+".json", newEnvelope(id, "owner", ""))
		testworld.Must(r, os.Chtimes(r.path("agent1", bus.Inbox, ""), at, at))
		r.sync()
		if d := r.state(id, "agent1"); d.State != store.Queued {
			t.Errorf("%s: %+v, want queued", id, d)
		}
	}
}

// A record of what could not be read ends when the file has left poison/: mended
// there, moved by hand or removed, in the mailbox it came to and in its sender's.
func TestPoisonThatLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0", "agent1")
	for _, name := range []string{"mended.json", "removed.json", "stays.json"} {
		r.drop("agent1", bus.Poison, name, "not json")
		testworld.Must(r, os.WriteFile(r.path("agent1", bus.Poison, name+".why"), []byte("not delivered: not JSON\n"), 0o600))
	}
	r.drop("agent1", bus.Outbox, "b.json", `{"id":"m-b","to":"agent7","text":"hi","from":"agent1","ts":"2026-11-20T12:00:00Z"}`)
	testworld.Must(r, r.bus.Route(t.Context()))
	poisoned := func() int {
		l := testworld.Got(r.db.Deliveries(t.Context(), store.DeliveryFilter{State: store.Poisoned}))(r)
		return len(l.Items)
	}
	r.sync()
	if n := poisoned(); n != 4 {
		t.Fatalf("%d poisoned, want 4", n)
	}
	testworld.Must(r, os.Remove(r.path("agent1", bus.Poison, "mended.json")))
	r.drop("agent1", bus.Inbox, "mended.json", newEnvelope("m-mended", "owner", ""))
	testworld.Must(r, os.Remove(r.path("agent1", bus.Poison, "removed.json")))
	names := testworld.Got(r.bus.Names("agent1", bus.Poison))(r)
	for _, name := range names {
		if strings.Contains(name, "b.json") {
			testworld.Must(r, r.bus.PoisonDrop("agent1", name))
		}
	}
	testworld.Wait(r, "one is left", func() bool { r.sync(); return poisoned() == 1 })
	for range 3 {
		r.sync()
	}
	testworld.Equal(t, poisoned(), 1, "poisoned")
	if d := r.state("m-mended", "agent1"); d.State != store.Queued {
		t.Errorf("m-mended: %+v, want queued", d)
	}
	r.drop("agent1", bus.Poison, "removed.json", "not json")
	testworld.Must(r, os.WriteFile(r.path("agent1", bus.Poison, "removed.json.why"), []byte("not delivered: not JSON\n"), 0o600))
	r.sync()
	testworld.Equal(t, poisoned(), 2, "poisoned")
}
