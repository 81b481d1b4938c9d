package upkeep_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/daemon/upkeep"
	"netsky/home"
	"netsky/internal/testworld"
)

// attach stores a file in a mailbox.
func (r *rig) attach(id agent.ID, name string) {
	r.Helper()
	testworld.Must(r, r.home.WriteFile(home.Mailbox(id)+"/attach/"+name, []byte("picture"), true))
}

func (r *rig) attachment(id agent.ID, name string) bool {
	r.Helper()
	_, err := os.Lstat(r.home.Path(home.Mailbox(id), "attach", name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Fatal(err)
	}
	return err == nil
}

// What came with mail goes with it, and not before.
func TestAttachments(t *testing.T) {
	t.Parallel()
	r := newRig(t, upkeep.Bounds{Mail: 2 * day, Records: 30 * day})
	const me = agent.Root
	with := func(id string, names ...string) envelope.Envelope {
		for _, n := range names {
			r.attach(me, n)
		}
		e := envelope.Envelope{ID: id, From: agent.Owner, To: me, Text: "look"}
		for _, n := range names {
			e.Attachments = append(e.Attachments, "attach/"+n)
		}
		return e
	}
	r.send(with("delivered", "delivered-1.png", "delivered-2.png"), true)
	r.send(with("claimed", "claimed.png"), false)
	testworld.Must(r, os.Rename(r.only(me, bus.Inbox), filepath.Join(r.home.Path(home.Mailbox(me), string(bus.Claimed)), "00000000000000000001-1-a.json")))
	r.send(with("waiting", "waiting.png"), false)
	r.attach(me, "stray.png")
	r.attach(agent.Owner, "report.pdf")
	r.send(envelope.Envelope{ID: "unread", From: me, To: agent.Owner, Text: "a report", Attachments: []string{"attach/report.pdf"}}, true)
	box := r.home.Path(home.Mailbox(me), "attach")
	testworld.Must(r, os.Mkdir(filepath.Join(box, "dir"), 0o700))
	testworld.Must(r, os.Symlink("/etc/hostname", filepath.Join(box, "link")))
	r.sync()

	check := func(when string, there ...string) {
		t.Helper()
		r.pass()
		for _, name := range []string{"delivered-1.png", "delivered-2.png", "claimed.png", "waiting.png", "stray.png", "dir", "link"} {
			want := false
			for _, n := range there {
				want = want || n == name
			}
			testworld.Equal(t, r.attachment(me, name), want, "%s: %s is there", when, name)
		}
		if !r.attachment(agent.Owner, "report.pdf") {
			t.Errorf("%s: the attachment of the owner's unread mail is gone", when)
		}
	}
	check("at once", "delivered-1.png", "delivered-2.png", "claimed.png", "waiting.png", "stray.png", "dir", "link")
	r.now = r.now.Add(47 * time.Hour)
	check("before its time", "delivered-1.png", "delivered-2.png", "claimed.png", "waiting.png", "stray.png", "dir", "link")
	r.now = r.now.Add(2 * time.Hour)
	check("after it", "claimed.png", "waiting.png", "dir", "link")

	// A mailbox whose waiting mail can't be read keeps all.
	r.attach(me, "late.png")
	bad := filepath.Join(r.home.Path(home.Mailbox(me), string(bus.Inbox)), "00000000000000000002-1-b.json")
	testworld.Must(r, os.WriteFile(bad, []byte("{"), 0o600))
	r.now = r.now.Add(10 * day)
	if _, err := r.keeper.Pass(t.Context(), r.db); err == nil || !r.attachment(me, "late.png") || !r.attachment(me, "waiting.png") {
		t.Errorf("with unreadable mail: %v, late.png is there: %v", err, r.attachment(me, "late.png"))
	}
	testworld.Must(r, os.Remove(bad))
	check("once it is gone", "claimed.png", "waiting.png", "dir", "link")
	if r.attachment(me, "late.png") {
		t.Error("a stray stays")
	}
}

// only returns the path of the one file in a place.
func (r *rig) only(id agent.ID, at bus.Place) string {
	r.Helper()
	names := testworld.Got(r.bus.Names(id, at))(r)
	if len(names) != 1 {
		r.Fatalf("%s of %s holds %q", at, id, names)
	}
	return r.home.Path(home.Mailbox(id), string(at), names[0])
}
