package schedule_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/daemon/schedule"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// A rig is a keeper with a clock that is set by hand.
type rig struct {
	*testing.T
	home   home.Dir
	bus    *bus.Bus
	db     *store.DB
	keeper *schedule.Keeper
	now    time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, home: testworld.FastHome(t), now: time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)}
	r.bus = testworld.Bus(t, r.home, agent.Owner, "agent1")
	testworld.Must(r, home.Desired(r.home).Set("agent1", true, "owner"))
	db := testworld.Got(store.Open(t.Context(), r.home))(r)
	t.Cleanup(func() { db.Close() })
	r.db = db
	r.begin()
	return r
}

// begin makes another keeper, as a daemon that starts.
func (r *rig) begin() {
	r.keeper = schedule.New(r.home, r.bus, func() *store.DB { return r.db }, slog.New(slog.DiscardHandler))
	r.keeper.Now = func() time.Time { return r.now }
}

func (r *rig) add(s store.Schedule) {
	r.Helper()
	s.ID, s.Target, s.Text = "c1", "agent1", "look"
	if s.Who == "" {
		s.Who = "owner"
	}
	s.Created = store.At(r.now)
	testworld.Must(r, r.db.Apply(r.Context(), store.AddSchedule(s)))
}

// at sets the clock and makes one pass.
func (r *rig) at(clock string) {
	r.Helper()
	now := testworld.Got(time.ParseInLocation("2006-01-02 15:04", clock, r.now.Location()))(r)
	r.now = now
	testworld.Got(r.keeper.Pass(r.Context(), r.db))(r)
}

func (r *rig) schedule() store.Schedule {
	r.Helper()
	list := testworld.Got(r.db.Schedules(r.Context(), true))(r)
	if len(list) != 1 {
		r.Fatalf("%+v", list)
	}
	return list[0]
}

// sent checks how many messages arrived that take effect, and the result of the last run.
func (r *rig) sent(want int, result store.RunResult) {
	r.Helper()
	ids := make(map[string]bool)
	for _, p := range bus.Arrived() {
		list := testworld.Got(r.bus.List("agent1", p, 0))(r)
		for _, e := range list {
			ids[e.Envelope.ID] = true
			if e.Envelope.Kind != envelope.KindCron || e.Envelope.From != agent.Owner || e.Envelope.Via != "cron" {
				r.Errorf("%+v", e.Envelope)
			}
		}
	}
	if s := r.schedule(); len(ids) != want || s.Last.Result != result || s.Sent != want {
		r.Errorf("at %v: %d messages, %+v; want %d, %s", r.now, len(ids), s, want, result)
	}
}

// take takes all mail of agent1, as its program would, and answers nothing.
func (r *rig) take() {
	r.Helper()
	testworld.Got(r.bus.Drain(r.Context(), "agent1", 0, func(envelope.Envelope) error { return nil }))(r)
}

func (r *rig) log() string {
	r.Helper()
	list := testworld.Got(r.db.Logs(r.Context(), store.LogFilter{Part: "cron"}))(r)
	var texts []string
	for _, l := range list.Items {
		texts = append(texts, l.Text)
	}
	return strings.Join(texts, "\n")
}

func (r *rig) logs(want string) {
	r.Helper()
	if got := r.log(); strings.Count(got, want) != 1 {
		r.Errorf("log:\n%s\nwant once: %s", got, want)
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "0 9 * * *"})
	r.at("2026-11-23 08:59")
	r.sent(0, "")
	r.at("2026-11-23 09:00")
	r.sent(1, store.RunSent)
	r.at("2026-11-23 09:00")
	r.sent(1, store.RunSent)
	r.take()
	r.at("2026-11-24 09:00")
	r.sent(2, store.RunSent)
	if text := r.schedule(); text.Message != "cron-c1-1795510800" {
		t.Errorf("%+v", text)
	}
}

// Only what was not finished holds up the next run.
func TestNeverTwoAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "every 10m"})
	r.at("2026-11-23 08:10")
	r.sent(1, store.RunSent)
	r.at("2026-11-23 08:20")
	r.sent(1, store.RunSkipped)
	r.logs("c1: the run of 2026-11-23 08:20 was not sent: cron-c1-1795421400 still waits in the mailbox of agent1")
	r.take()
	// It was given to the program, which has not answered.
	testworld.Must(r, courier.Owe(r.home, "agent1", envelope.Envelope{ID: "cron-c1-1795421400", From: agent.Owner, Kind: envelope.KindCron}))
	r.at("2026-11-23 08:30")
	r.sent(1, store.RunSkipped)
	r.logs("08:30 was not sent: agent1 has not finished cron-c1-1795421400")
	testworld.Must(r, r.home.Remove(courier.JournalFile("agent1")))
	r.at("2026-11-23 08:40")
	r.sent(2, store.RunSent)
}

// Of what was missed, one is sent, and one line says how many there were.
func TestMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "@hourly"})
	r.at("2026-11-23 09:00")
	r.take()
	r.begin()
	r.at("2026-11-23 12:30")
	r.sent(2, store.RunSent)
	r.logs("c1: 3 runs missed between 2026-11-23 10:00 and 2026-11-23 12:00; at most one is sent now")
	r.take()
	r.begin()
	r.at("2026-11-23 12:31")
	r.sent(2, store.RunSent)
	r.at("2026-11-23 13:00")
	r.sent(3, store.RunSent)
	r.take()
	r.at("2026-11-23 14:20")
	r.sent(4, store.RunSent)
	r.logs("c1: the run of 2026-11-23 14:00 is late")
	r.at("2036-11-23 14:20") // 87,672 hours
	r.at("2036-11-23 14:21")
	r.sent(4, store.RunSkipped)
	r.logs("10000 runs missed")
}

func TestDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "every 1m"})
	testworld.Must(r, home.Desired(r.home).Set("agent1", false, "owner"))
	for _, clock := range []string{"08:01", "08:02", "08:03"} {
		r.at("2026-11-23 " + clock)
		r.sent(0, store.RunDown)
	}
	r.logs("agent1 is down") // not each minute
	testworld.Must(r, home.Desired(r.home).Set("agent1", true, "owner"))
	r.at("2026-11-23 08:04")
	r.sent(1, store.RunSent)
}

// The clock set back, or moved to another zone, makes nothing due twice.
func TestClockMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.now = r.now.In(in(t, "Europe/Berlin"))
	r.add(store.Schedule{Spec: "0 10 * * *"})
	r.at("2026-11-23 10:00")
	r.sent(1, store.RunSent)
	r.take()
	r.at("2026-11-23 09:30") // back
	r.at("2026-11-23 10:00")
	r.sent(1, store.RunSent)
	r.now = r.now.In(in(t, "America/New_York")) // ten o'clock is shown once more on that day
	r.at("2026-11-23 10:00")
	r.sent(1, store.RunSent)
	r.at("2026-11-24 10:00")
	r.sent(2, store.RunSent)
	r.take()
	r.now = r.now.In(in(t, "Asia/Tokyo"))
	r.at("2026-11-25 10:00")
	r.sent(3, store.RunSent)
	r.take()
	r.at("2027-06-01 10:00") // the clock was wrong
	r.sent(4, store.RunSent)
	r.take()
	r.at("2026-11-25 12:00")
	r.sent(4, store.RunSent)
	r.logs("c1: the clock was set back from 2027-06-01 10:00; runs continue from now")
	r.at("2026-11-26 10:00")
	r.sent(5, store.RunSent)
}

// A daemon that is killed between the note and the send, or the send and the note, leaves
// one message, not two and not none.
func TestCrashBetween(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{false, true} {
		r := newRig(t)
		r.add(store.Schedule{Spec: "every 10m"})
		due := r.now.Add(10 * time.Minute)
		const id = "cron-c1-1795421400"
		testworld.Must(r, r.db.Apply(t.Context(), store.RunSchedule{ID: "c1", Message: id, Run: store.Run{Due: store.At(due), At: store.At(due), Result: store.RunSending}}))
		if sent {
			testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{ID: id, From: agent.Owner, To: "agent1", Kind: envelope.KindCron, Via: "cron", Text: "look"}))(r)
			r.take()
		}
		r.at("2026-11-23 08:11")
		r.sent(1, store.RunSent)
		r.take()
		r.at("2026-11-23 08:20")
		r.sent(2, store.RunSent)
	}
}

// A send that fails is tried again until it works.
func TestSendFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "every 10m"})
	inbox := r.home.Path(home.Mailbox("agent1"), "inbox")
	testworld.Must(r, os.Rename(inbox, inbox+".away"))
	r.at("2026-11-23 08:10")
	if s := r.schedule(); s.Last.Result != store.RunSending {
		t.Errorf("%+v", s)
	}
	testworld.Must(r, os.Rename(inbox+".away", inbox))
	r.at("2026-11-23 08:11")
	r.sent(1, store.RunSent)
}

func TestEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "every 10m", Times: 2})
	for _, clock := range []string{"08:10", "08:20", "08:20", "08:30"} {
		r.at("2026-11-23 " + clock)
		r.take()
	}
	r.sent(2, store.RunSent)
	if s := r.schedule(); s.Why != "finished: sent 2 times" || s.Ended == 0 {
		t.Errorf("%+v", s)
	}
	r = newRig(t)
	r.add(store.Schedule{Spec: "every 10m", Until: store.At(r.now.Add(25 * time.Minute)), Who: "agent0"})
	for _, clock := range []string{"08:10", "08:20", "08:30", "08:40"} {
		r.at("2026-11-23 " + clock)
		r.take()
	}
	r.sent(2, store.RunSent)
	list, err := r.bus.List("agent1", bus.Delivered, 0)
	if s := r.schedule(); err != nil || s.Why != "finished: its time is over" || list[0].Envelope.Text != "[scheduled by agent0] look" {
		t.Errorf("%+v, %v", s, err)
	}
}

// Run sends what is due without being asked, and sooner when it is woken.
func TestRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.keeper.Now = func() time.Time { return time.Now().UTC() }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.keeper.Run(ctx) }()
	r.now = time.Now()
	r.add(store.Schedule{Spec: "every 1m", First: store.At(r.now.Add(-time.Minute))})
	r.keeper.Wake()
	testworld.Wait(t, "the first call", func() bool { return r.schedule().Last.Result == store.RunSent })
	cancel()
	testworld.Equal(t, <-ended, nil)
}

// A database that is lost gets the schedules back, with what is left of them, and nothing
// is sent twice; one that was removed stays away.
func TestDatabaseLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(store.Schedule{Spec: "every 1h", Times: 3})
	r.at("2026-11-23 09:00")
	r.sent(1, store.RunSent)
	r.take()
	lose := func() {
		t.Helper()
		testworld.Must(r, r.db.Close())
		for _, name := range []string{"meta.db", "meta.db-wal", "meta.db-shm"} {
			if err := os.Remove(r.home.Path(name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		db := testworld.Got(store.Open(t.Context(), r.home))(r)
		t.Cleanup(func() { db.Close() })
		r.db = db
	}
	lose()
	if s := r.schedule(); s.Text != "look" || s.Who != "owner" || s.Times != 2 || !s.First.Time().Equal(r.now) {
		t.Errorf("%+v", s)
	}
	r.at("2026-11-23 09:30")
	if s := r.schedule(); s.Sent != 0 {
		t.Errorf("sent again: %+v", s)
	}
	r.at("2026-11-23 10:00")
	r.take()
	r.at("2026-11-23 11:00")
	r.take()
	r.at("2026-11-23 12:00")
	r.at("2026-11-23 12:00")
	if s := r.schedule(); s.Sent != 2 || s.Ended == 0 {
		t.Errorf("%+v", s)
	}
	lose()
	if list, err := r.db.Schedules(t.Context(), true); err != nil || len(list) != 0 {
		t.Errorf("back again: %+v %v", list, err)
	}
	testworld.Must(t, os.WriteFile(r.home.Path("state/schedules.json"), []byte(`[{"id":`), 0o600))
	lose() // a damaged copy prevents nothing
}
