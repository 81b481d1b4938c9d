package observe_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

func mustSQL(tb testing.TB, h home.Dir, query string) {
	tb.Helper()
	db := testworld.Got(sql.Open("sqlite3", h.Path(home.DBFile)+"?_busy_timeout=5000"))(tb)
	defer db.Close()
	testworld.Got(db.Exec(query))(tb)
}

// child observes until it is killed.
func child(dir string) error {
	home, err := home.At(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, home)
	if err != nil {
		return err
	}
	o := observe.Observer{Bus: bus.New(home, bus.Options{}), DB: db}
	return o.Run(ctx)
}

// shape is every file of the bus with what would betray a touch.
func (r *rig) shape() string {
	r.Helper()
	var out strings.Builder
	testworld.Must(r, filepath.WalkDir(r.home.Path(home.Channels), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&out, path, info.Mode(), st.Ino, st.Nlink, info.Size(), info.ModTime().UnixNano(), changeTime(st))
		return nil
	}))
	return out.String()
}

// The observer leaves every file and directory of the bus as it is.
func TestTouchesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent0", "agent1", "owner")
	for i, p := range []bus.Place{bus.Inbox, bus.Claimed, bus.Delivered, bus.Poison, bus.Outbox, bus.Sent} {
		r.drop("agent1", p, "good.json", newEnvelope(fmt.Sprint("m-", i), "agent1", `,"to":"agent0"`))
		r.drop("agent1", p, "bad.json", "{")
		testworld.Must(r, os.Symlink("/etc/passwd", r.path("agent1", p, "link.json")))
		testworld.Must(r, syscall.Mkfifo(r.path("agent1", p, "fifo.json"), 0o600))
		testworld.Must(r, os.Mkdir(r.path("agent1", p, "dir.json"), 0o700))
	}
	testworld.Must(r, os.Remove(r.home.Path(home.Mailbox("agent0"), string(bus.Sent))))
	before := r.shape()
	for range 3 {
		r.sync()
	}
	testworld.Equal(t, r.shape(), before, "after")
}

// What is on record is not read again: a file that is written over under the
// same name is not noticed, however many passes there are.
func TestReadsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	for i := range 300 {
		r.drop("agent1", bus.Delivered, fmt.Sprint(i, ".json"), newEnvelope(fmt.Sprint("m-", i), "owner", ""))
	}
	r.sync()
	for i := range 300 {
		testworld.Must(r, os.WriteFile(r.path("agent1", bus.Delivered, fmt.Sprint(i, ".json")), []byte(newEnvelope("again", "owner", "")), 0o600))
	}
	r.drop("agent1", bus.Delivered, "new.json", newEnvelope("m-new", "owner", ""))
	r.sync()
	if r.state("m-new", "agent1").State != store.Delivered || r.state("again", "agent1").State != "" {
		t.Errorf("new: %+v, again: %+v, want the new one alone", r.state("m-new", "agent1"), r.state("again", "agent1"))
	}
}

// A later observer reads of delivered mail only what the records don't show as it is. A
// file that is read fills in what its record lacks.
func TestReadsOnceInAllStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, "agent1")
	for i := range 4 {
		testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{ID: fmt.Sprint("m-", i), From: "owner", To: "agent1", Text: "hi", Via: "test"}))(r)
		r.take("agent1", func(d *bus.Delivery) error { return d.Confirm() })
	}
	r.sync()
	mustSQL(t, r.home, "UPDATE messages SET via = ''")
	names := testworld.Got(r.bus.Names("agent1", bus.Delivered))(r)
	touched, replaced := r.path("agent1", bus.Delivered, names[1]), names[2]
	changed := func(path string) int64 {
		info := testworld.Got(os.Lstat(path))(r)
		return changeTime(info.Sys().(*syscall.Stat_t)) / 1e6
	}
	last := changed(r.path("agent1", bus.Delivered, names[3]))
	testworld.Wait(r, "a later time of change", func() bool {
		testworld.Must(r, os.Chtimes(touched, time.Now(), time.Now()))
		return changed(touched) > last
	})
	r.drop("agent1", bus.Delivered, replaced, newEnvelope("m-other", "owner", `,"via":"test"`))
	testworld.Got(r.bus.Send(t.Context(), envelope.Envelope{ID: "m-new", From: "owner", To: "agent1", Text: "hi", Via: "test"}))(r)
	r.take("agent1", func(d *bus.Delivery) error { return d.Confirm() })
	r.obs = &observe.Observer{Bus: r.bus, DB: r.db}
	r.sync()
	for id, want := range map[string]string{"m-0": "", "m-1": "test", "m-2": "", "m-3": "", "m-other": "test", "m-new": "test"} {
		m, err := r.db.Message(t.Context(), id)
		if err != nil || m.Via != want {
			t.Errorf("%s: via %q, %v, want %q", id, m.Via, err, want)
		}
	}
}

// One message more, with 10,000 files in delivered/.
func BenchmarkPass(b *testing.B) {
	r := newRig(b, "agent1")
	for i := range 10_000 {
		name := fmt.Sprintf("%020d-%010d-%08x-%010d-from-owner.json", i, 1, 1, i)
		testworld.Must(r, os.WriteFile(r.path("agent1", bus.Delivered, name), []byte(newEnvelope(fmt.Sprint("m-", i), "owner", "")), 0o600))
	}
	began := time.Now()
	r.sync()
	rebuild := time.Since(began)
	for b.Loop() {
		r.n++
		r.drop("agent1", bus.Delivered, fmt.Sprintf("x%d.json", r.n), newEnvelope(fmt.Sprint("n-", r.n), "owner", ""))
		r.sync()
	}
	b.ReportMetric(float64(rebuild.Milliseconds()), "rebuild-ms")
}

// A pass over 52 mailboxes in which nothing has changed.
func BenchmarkIdle(b *testing.B) {
	r := newRig(b, "agent0", "agentinfinity")
	for i := range 50 {
		testworld.Must(r, r.bus.Make(agent.Clone(i+1)))
	}
	r.sync()
	<-time.After(60 * time.Millisecond) // directories this young are listed again
	r.sync()
	for b.Loop() {
		r.sync()
	}
}
