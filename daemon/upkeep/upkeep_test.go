package upkeep_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/daemon/observe"
	"netsky/daemon/upkeep"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

const day = 24 * time.Hour

// A rig is a home with a clock that only goes forward from now: the kernel's times can't
// be set.
type rig struct {
	*testing.T
	home   home.Dir
	bus    *bus.Bus
	db     *store.DB
	keeper upkeep.Keeper
	now    time.Time
}

func newRig(t *testing.T, b upkeep.Bounds) *rig {
	t.Helper()
	r := &rig{T: t, home: testworld.FastHome(t), now: time.Now()}
	testworld.Got(r.home.Make())(r)
	clock := func() time.Time { return r.now }
	r.bus = bus.New(r.home, bus.Options{Keep: b.Mail, Now: clock})
	for _, id := range []agent.ID{agent.Owner, agent.Root, "agent1"} {
		testworld.Must(r, r.bus.Make(id))
	}
	r.db = testworld.Got(store.Open(t.Context(), r.home))(r)
	r.db.Now = clock
	t.Cleanup(func() { r.db.Close() })
	r.keeper = upkeep.Keeper{Home: r.home, Bounds: b, Now: clock}
	return r
}

func (r *rig) pass() upkeep.Removed {
	r.Helper()
	removed := testworld.Got(r.keeper.Pass(r.Context(), r.db))(r)
	return removed
}

func (r *rig) sync() {
	r.Helper()
	testworld.Must(r, (&observe.Observer{Bus: r.bus, DB: r.db}).Sync(r.Context()))
}

// send sends a message, and delivers what waits there if deliver is set.
func (r *rig) send(e envelope.Envelope, deliver bool) {
	r.Helper()
	testworld.Got(r.bus.Send(r.Context(), e))(r)
	if deliver {
		r.deliver(e.To)
	}
}

// deliver takes all that waits, and returns how many that were.
func (r *rig) deliver(to agent.ID) (n int) {
	r.Helper()
	n = testworld.Got(r.bus.Drain(r.Context(), to, 100, func(envelope.Envelope) error { return nil }))(r)
	return n
}

func (r *rig) recorded(id string) bool {
	_, err := r.db.Message(r.Context(), id)
	return err == nil
}

func (r *rig) files(id agent.ID, p bus.Place) int {
	r.Helper()
	n := testworld.Got(r.bus.Count(id, p))(r)
	return n
}

// Queued mail waits however old it is.
func TestQueuedStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: day, Records: 2 * day, Bytes: 1 << 30})
	r.send(envelope.Envelope{ID: "queued", From: agent.Owner, To: "agent1", Text: "x"}, false)
	r.sync()
	r.now = r.now.Add(200 * day)
	r.pass()
	if !r.recorded("queued") || r.deliver("agent1") != 1 {
		t.Error("queued mail is gone")
	}
}

// What was removed can't take effect twice: an id outlives everything else that belongs to
// its message, also where records are to be kept for a shorter time than mail.
func TestNoneTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: 7 * day, Records: time.Hour, Bytes: 1})
	e := envelope.Envelope{ID: "once", From: agent.Owner, To: "agent1", Text: "x"}
	r.send(e, true)
	r.sync()
	for _, age := range []time.Duration{2 * time.Hour, 3 * day} {
		r.now = time.Now().Add(age)
		r.pass()
		if !r.recorded("once") || r.files("agent1", bus.Delivered) != 1 {
			t.Fatalf("removed within [bus] keep, after %v", age)
		}
		if _, again, err := r.bus.SendOnce(t.Context(), e); err != nil || !again {
			t.Errorf("sent again after %v: %v, %v", age, again, err)
		}
		testworld.Must(r, os.Remove(r.home.Path(home.Mailbox("agent1"), "delivered", mustName(r)))) // whoever removes it
		testworld.Got(r.bus.Send(t.Context(), e))(t)
		taken := 0
		if _, err := r.bus.Drain(t.Context(), "agent1", 10, func(envelope.Envelope) error { taken++; return nil }); err != nil || taken != 0 {
			t.Errorf("taken %d times again after %v, %v", taken, age, err)
		}
	}
	r.now = time.Now().Add(8 * day)
	r.sync()
	r.pass()
	r.pass() // its record goes after its file
	if r.recorded("once") {
		t.Error("still on record after [bus] keep")
	}
}

func mustName(r *rig) string {
	names := testworld.Got(r.bus.Names("agent1", bus.Delivered))(r)
	if len(names) == 0 {
		r.Fatal("no file")
	}
	return names[0]
}

// Too many records are removed before they are old, but not before mail is.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: 7 * day, Records: 90 * day, Bytes: 3 << 20})
	text := strings.Repeat("0123456789", 100)
	for d := range 60 {
		var ops []store.Op
		for i := range 100 {
			id, at := fmt.Sprintf("m-%d-%d", d, i), store.At(r.now.Add(-time.Duration(d)*day))
			ops = append(ops, store.UpsertMessage{ID: id, From: "agent1", To: "agent2", Text: text, Time: at},
				store.UpsertDelivery{Message: id, Target: "agent2", State: store.Delivered, Time: at})
		}
		for _, m := range []store.UpsertMessage{{ID: fmt.Sprintf("o-%d", d), From: agent.Owner, To: "agent1"}, {ID: fmt.Sprintf("p-%d", d), From: "agent1", To: agent.Owner}} {
			m.Text, m.Time = "words", store.At(r.now.Add(-time.Duration(d)*day))
			ops = append(ops, m, store.UpsertDelivery{Message: m.ID, Target: m.To, State: store.Delivered, Time: m.Time})
		}
		testworld.Must(r, r.db.Apply(t.Context(), ops...))
	}
	r.pass()
	if !r.recorded("o-59") || !r.recorded("p-59") {
		t.Error("the owner's messages went before their time")
	}
	s := testworld.Got(r.db.Space(t.Context()))(r)
	if s.Used() > r.keeper.Bounds.Bytes || !r.recorded("m-5-0") || r.recorded("m-59-0") {
		t.Errorf("%+v", s)
	}
	logs := testworld.Got(r.db.Logs(t.Context(), store.LogFilter{Part: "records"}))(r)
	if len(logs.Items) == 0 || !strings.Contains(logs.Items[0].Text, "exceeded [records] max_bytes") {
		t.Errorf("%+v", logs.Items)
	}
}

// Only state files that are netsky's, old and of no use are removed, and are named.
func TestStateFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: day, Records: 30 * day, Bytes: 1 << 30})
	write := func(rel string) {
		testworld.Must(r, os.MkdirAll(r.home.Path(rel[:strings.LastIndex(rel, "/")]), 0o700))
		testworld.Must(r, os.WriteFile(r.home.Path(rel), []byte("{}"), 0o600))
	}
	gone := []string{
		"state/owed/agent1.json.bad-12", "state/spool/00000000000000000001-0000000001-a.bad", "state/spool/00000000000000000001-0000000001-a.why",
		"state/events/agent3.jsonl", "state/events/agent3.jsonl.1", "state/screens/agent3.json", "state/watchdog/hangs/agent3.json",
		"logs/daemon.log.1", "logs/netsky-2026-01-01T00-00-00.000.jsonl", "logs/check-abcdefghij.log", "state/launch/.tmp-4194999-1",
	}
	stays := []string{
		"state/events/agent1.jsonl", "state/launch/agent3.json", "state/codex/agent3.json", "state/claude/agent3.json", "state/mine.bad", "state/owed/notes.bad",
		"logs/daemon.log", "channels/agent/agent1/poison/x.json", "state/events/agent4.jsonl",
	}
	for _, rel := range append(gone, stays...) {
		write(rel)
	}
	testworld.Must(r, home.Desired(r.home).Set("agent1", true, "owner"))
	testworld.Must(r, home.Desired(r.home).Set("agent3", false, "owner"))
	testworld.Must(r, home.Desired(r.home).Set("agent4", false, "owner"))
	testworld.Must(r, courier.Owe(r.home, "agent4", envelope.Envelope{ID: "x", From: agent.Owner, To: "agent4"})) // its events tell what became of it
	if removed := r.pass(); removed.Files != 0 {
		t.Errorf("young ones: %v", removed)
	}
	r.now = r.now.Add(31 * day)
	if removed := r.pass(); removed.Files != len(gone) {
		t.Errorf("%v, want %d files", removed, len(gone))
	}
	for _, rel := range gone {
		if r.home.Mark(rel).Exists() {
			t.Errorf("%s is still there", rel)
		}
	}
	for _, rel := range stays {
		if !r.home.Mark(rel).Exists() {
			t.Errorf("%s is gone", rel)
		}
	}
	logs := testworld.Got(r.db.Logs(t.Context(), store.LogFilter{Part: "upkeep"}))(r)
	if len(logs.Items) != 1 || !strings.Contains(logs.Items[0].Text, "state/events/agent3.jsonl") && !strings.Contains(logs.Items[0].Text, "more") {
		t.Errorf("%+v", logs.Items)
	}
}

// One unreadable ledger costs only that agent's mail its removal.
func TestDamagedLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: day, Records: 2 * day, Bytes: 1 << 30})
	r.send(envelope.Envelope{ID: "a", From: agent.Owner, To: agent.Root, Text: "x"}, true)
	r.send(envelope.Envelope{ID: "b", From: agent.Owner, To: "agent1", Text: "x"}, true)
	r.sync()
	testworld.Must(r, os.MkdirAll(r.home.Path("state/owed"), 0o700))
	testworld.Must(r, os.WriteFile(r.home.Path("state/owed/agent1.json"), []byte("{"), 0o600))
	r.now = r.now.Add(5 * day)
	r.pass()
	if r.recorded("a") || !r.recorded("b") || r.files("agent1", bus.Delivered) != 1 || r.files(agent.Root, bus.Delivered) != 0 {
		t.Error("want b, which agent1 may owe, and not a")
	}
}

// The list of shown mail does not grow for ever, and nobody who adds to it loses a name.
func TestShownList(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: day, Records: 2 * day, Bytes: 1 << 30})
	r.send(envelope.Envelope{ID: "q", From: agent.Root, To: agent.Owner, Kind: "question", Text: "x"}, true)
	names := testworld.Got(r.bus.Names(agent.Owner, bus.Delivered))(r)
	testworld.Must(r, home.ShownMail(r.home).Mark(names...))
	for i := range 10_000 {
		testworld.Must(r, home.ShownMail(r.home).Mark(fmt.Sprintf("%020d-a-file-that-was-removed.json", i)))
	}
	r.sync()
	done := make(chan error)
	go func() {
		for i := range 200 {
			if err := home.ShownMail(r.home).Mark(fmt.Sprint("new-", i)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 5 {
		r.pass()
	}
	testworld.Must(r, <-done)
	info := testworld.Got(os.Stat(r.home.Path(home.OwnerRead)))(r)
	shown := testworld.Got(home.ShownMail(r.home).Names())(r)
	if info.Size() > 64<<10 || !shown[names[0]] {
		t.Errorf("%d bytes, %v", info.Size(), shown[names[0]])
	}
}

// While a pass works, a record is written as fast as ever; and the pass needs little memory.
func BenchmarkPassBeside(b *testing.B) {
	h := testworld.Home(b)
	testworld.Got(h.Make())(b)
	db := testworld.Got(store.Open(b.Context(), h))(b)
	defer db.Close()
	text := strings.Repeat("some words to an agent ", 16)
	old := time.Now().Add(-40 * day)
	for d := range 100 {
		var ops []store.Op
		for i := range 2000 {
			id, at := fmt.Sprintf("%s-%d-%d", agent.NewStart(), d, i), store.At(old.Add(time.Duration(d*2000+i)*time.Second))
			ops = append(ops, store.UpsertMessage{ID: id, From: "agent1", To: "agent2", Text: text, Time: at},
				store.UpsertDelivery{Message: id, Target: "agent2", State: store.Delivered, Time: at}, store.AddLog{Text: "x", Time: at})
		}
		testworld.Must(b, db.Apply(b.Context(), ops...))
	}
	k := upkeep.Keeper{Home: h, Bounds: upkeep.Bounds{Mail: 7 * day, Records: 30 * day, Bytes: 1 << 30}, Rest: 9}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan upkeep.Removed)
	go func() {
		r, _ := k.Pass(ctx, db)
		done <- r
	}()
	for b.Loop() {
		testworld.Must(b, db.Apply(b.Context(), store.AddLog{Text: "beside"}))
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	stop()
	b.ReportMetric(float64((<-done).Records), "removed")
	b.ReportMetric(float64(m.Sys>>20), "MiB")
}
