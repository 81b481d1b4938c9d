//go:build live

package upkeep_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/bus/courier"
	"netsky/bus/envelope"
	"netsky/daemon/upkeep"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
)

// 120 days of steady use of 50 agents: the home stops growing once the oldest record is as
// old as records get, and what is owed is there at the end.
func TestSteadyUse(t *testing.T) {
	t.Parallel()
	const days, messages = 120, 400
	r := newRig(t, upkeep.Bounds{Mail: 7 * day, Records: 30 * day, Bytes: 1 << 30})
	r.send(envelope.Envelope{ID: "unread", From: agent.Root, To: agent.Owner, Text: "for later"}, true)
	r.send(envelope.Envelope{ID: "question", From: agent.Root, To: agent.Owner, Kind: "question", Text: "which one?"}, true)
	names := testworld.Got(r.bus.Names(agent.Owner, bus.Delivered))(r)
	testworld.Must(r, home.ShownMail(r.home).Mark(names[1]))
	r.send(envelope.Envelope{ID: "queued", From: agent.Owner, To: "agent1", Text: "when you are up"}, false)
	held := envelope.Envelope{ID: "held", From: agent.Owner, To: agent.Root, Text: "held by a limit", Time: r.now}
	r.send(held, true)
	testworld.Must(r, courier.Owe(r.home, agent.Root, held))
	r.sync()
	testworld.Must(r, r.db.Apply(t.Context(), store.UpsertTask{ID: "task", Title: "open", Message: "of-task", Created: store.At(r.now)},
		store.UpsertMessage{ID: "of-task", From: "owner", To: "agent2", Text: "do it", Time: store.At(r.now)},
		store.UpsertDelivery{Message: "of-task", Target: "agent2", State: store.Delivered, Time: store.At(r.now)},
		store.AddNote{ID: "note", Text: "keep in mind", Created: store.At(r.now)}))

	text := strings.Repeat("some words to an agent ", 16)
	start, plateau, most := r.now, int64(0), time.Duration(0)
	for d := range days {
		r.now = start.Add(time.Duration(d) * day)
		var ops []store.Op
		for i := range messages {
			id, at := fmt.Sprintf("m-%d-%d", d, i), store.At(r.now.Add(time.Duration(i)*time.Minute))
			from, to := agent.Clone(i%50+1), agent.Clone((i+7)%50+1)
			ops = append(ops, store.UpsertMessage{ID: id, From: from, To: to, Text: text, Time: at},
				store.UpsertDelivery{Message: id, From: from, Target: to, State: store.Delivered, Queued: at, Time: at},
				store.UpsertInput{Actor: to, Thread: "t", Message: id, State: store.InputConsumed, Time: at},
				store.AddLog{Key: id, Actor: to, About: id, Part: "courier", Text: "turn finished", Time: at})
		}
		for i := range 20 {
			s := fmt.Sprintf("s-%d-%d", d, i)
			ops = append(ops, store.StartSession{Start: s, Actor: agent.Clone(i + 1), Started: store.At(r.now)}, store.EndSession{Start: s, LastLines: text, Time: store.At(r.now) + 1},
				store.UpsertTask{ID: "t" + s, Title: "x", State: store.TaskDone, Created: store.At(r.now), Updated: store.At(r.now)})
		}
		testworld.Must(r, r.db.Apply(t.Context(), ops...))
		for i := range 5 {
			r.send(envelope.Envelope{ID: fmt.Sprintf("f-%d-%d", d, i), From: agent.Root, To: "agent1", Text: text}, false)
		}
		r.sync()
		began := time.Now()
		r.pass()
		most = max(most, time.Since(began))
		s := testworld.Got(r.db.Space(t.Context()))(r)
		switch {
		case d == 40:
			plateau = s.File
		case d > 40 && s.File > plateau+plateau/4:
			t.Fatalf("day %d: %d bytes, %d on day 40", d, s.File, plateau)
		}
		if d%5 == 0 { // and mail that was taken is removed after a week
			queued := r.files("agent1", bus.Inbox)
			r.deliver("agent1")
			r.sync()
			if d > 20 && r.files("agent1", bus.Delivered) > 13*5+queued {
				t.Fatalf("day %d: %d files in delivered/", d, r.files("agent1", bus.Delivered))
			}
		}
	}
	t.Logf("%d bytes, the longest pass took %v", plateau, most)
	for _, id := range []string{"unread", "question", "held", "of-task"} {
		if !r.recorded(id) {
			t.Errorf("%s is not on record", id)
		}
	}
	testworld.Equal(t, r.files(agent.Owner, bus.Delivered), 2, "files of the owner's")
	testworld.Equal(t, r.files(agent.Root, bus.Delivered), 1, "files of agent0's")
	testworld.Equal(t, testworld.Err(r.db.Task(t.Context(), "task")), nil)
	testworld.Equal(t, testworld.Err(r.db.Note(t.Context(), "note")), nil)
	if r.recorded("m-80-0") || !r.recorded("m-100-0") || r.recorded("f-60-0") {
		t.Error("records of the last 30 days are kept, and no others")
	}
	testworld.Must(r, r.db.Check(t.Context()))
	if info, err := os.Stat(r.home.Path(home.DBFile + "-wal")); err == nil && info.Size() > 16<<20 {
		t.Errorf("the log of meta.db is %d bytes long", info.Size())
	}

	if removed := r.pass(); removed.Records != 0 || removed.Mail != 0 {
		t.Errorf("a second pass removed %v", removed)
	}
}
