package record_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone/record"
	"netsky/store"
)

func mustRecords(t *testing.T) record.Records {
	t.Helper()
	t.Parallel()
	db := testworld.Got(store.Open(t.Context(), testworld.FastHome(t)))(t)
	t.Cleanup(func() { db.Close() })
	r := record.Records{DB: db}
	testworld.Got(r.Open(t.Context(), "test", "", 0, time.Now()))(t)
	return r
}

// What has taken effect is not tried again, by whoever still has it on a list.
func TestTry(t *testing.T) {
	r := mustRecords(t)
	now := store.At(time.Now())
	fresh, err := r.Hear(t.Context(), "test", "1", []record.Heard{{Line: "test", GUID: "g", At: now, Time: now, Kind: "text", Verdict: "order", State: record.New}}, nil, nil)
	if err != nil || len(fresh) != 1 {
		t.Fatalf("heard %v, %v", fresh, err)
	}
	for want := range 2 {
		if tries, ok, err := r.Try(t.Context(), fresh[0]); tries != want || !ok || err != nil {
			t.Fatalf("Try = %d, %v, %v, want %d before it", tries, ok, err, want)
		}
	}
	testworld.Must(t, r.Did(t.Context(), fresh[0]))
	if _, ok, err := r.Try(t.Context(), fresh[0]); ok || err != nil {
		t.Errorf("Try of what is done = %v, %v", ok, err)
	}
}

// What became of a part is not written to another one that has its number in other records.
func TestOtherRecords(t *testing.T) {
	r := mustRecords(t)
	now := time.Now()
	testworld.Must(t, r.Say(t.Context(), record.Said{Line: "test", ID: "here", Part: 1, Parts: 1, Created: store.At(now)}))
	here, ok, err := r.Part(t.Context(), "test", "here")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	lost := record.Said{Seq: here.Seq, Line: "test", ID: "lost", Part: 1, State: record.Sent}
	testworld.Must(t, r.Begin(t.Context(), lost, "", now))
	testworld.Must(t, r.End(t.Context(), lost, now))
	if got, _, err := r.Part(t.Context(), "test", "here"); err != nil || got.State != record.Pending {
		t.Errorf("state %q, %v", got.State, err)
	}
}

// The brake's questions are answered by an index of their own, however much has arrived.
func TestBrakeIndexed(t *testing.T) {
	r := mustRecords(t)
	for _, query := range []string{
		"SELECT * FROM phone_heard WHERE line = ? AND chat = ? AND verdict = ? ORDER BY seq DESC LIMIT 1",
		"SELECT * FROM phone_heard WHERE line = ? AND chat = ? AND verdict = ? AND at > ? AND at < ? LIMIT ?",
	} {
		args := []any{"test", "-;x", "order", 1, 2, 3}[:strings.Count(query, "?")]
		var id, parent, unused int
		var detail string
		if err := r.DB.Pool().QueryRow("EXPLAIN QUERY PLAN "+query, args...).Scan(&id, &parent, &unused, &detail); err != nil || !strings.Contains(detail, "phone_heard_verdict") {
			t.Errorf("%s: %s, %v", query, detail, err)
		}
	}
}

// Texts of one batch are recorded at one time, and read in the order in which they were written;
// of more than the limit the last ones.
func TestTalkOrder(t *testing.T) {
	r := mustRecords(t)
	now := store.At(time.Now())
	var heard []record.Heard
	for i := range 5 {
		heard = append(heard, record.Heard{Line: "test", GUID: fmt.Sprint("g", i), At: now, Time: now, Kind: "text", Text: fmt.Sprint(i), Verdict: "order", State: record.Done})
	}
	answer := record.Said{Line: "test", ID: "a", Part: 1, Parts: 1, Text: "[netsky] ok", State: record.Pending, Created: now}
	testworld.Got(r.Hear(t.Context(), "test", "1", heard, nil, []record.Said{answer}))(t)
	for limit, want := range map[int][]string{9: {"0", "1", "2", "3", "4", "[netsky] ok"}, 3: {"3", "4", "[netsky] ok"}} {
		list := testworld.Got(r.Talk(t.Context(), limit))(t)
		var got []string
		for _, turn := range list {
			got = append(got, turn.Text)
		}
		testworld.EqualList(t, got, want, "the last %d", limit)
	}
}

// The history of a message says what became of it on the phone, and when.
func TestTimeline(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), testworld.Home(t))
	testworld.Must(t, err)
	defer db.Close()
	must := func(err error) {
		t.Helper()
		testworld.Must(t, err)
	}
	must(db.Apply(t.Context(), store.UpsertMessage{ID: "m-asked", From: agent.Owner, To: agent.Root, Text: "how is it?", Time: 1000},
		store.UpsertMessage{ID: "m-answer", From: agent.Root, To: agent.Owner, Kind: "reply", Text: "long", InReplyTo: "m-asked", Time: 3000}))
	r := record.Records{DB: db}
	c := record.Chat{Key: "-;+15550100", GUID: "iMessage;-;+15550100"}
	_, err = r.Open(t.Context(), "messages", "1", 0, time.UnixMilli(1))
	must(err)
	_, err = r.Hear(t.Context(), "messages", "2", []record.Heard{
		{Line: "messages", GUID: "G1", Chat: c, At: 1000, Time: 1500, Text: "how is it?", Verdict: "order", State: record.New},
	}, nil, nil)
	must(err)
	list, err := r.NewHeard(t.Context(), "messages")
	must(err)
	list[0].Message, list[0].Target = "m-asked", agent.Root
	must(r.Did(t.Context(), list[0]))
	said := record.Said{Line: "messages", ID: "m-x", Parts: 4, Chat: c, Kind: "mail", About: "m-answer", Created: 3500}
	var say []record.Said
	for i := range said.Parts {
		said.Part, said.Text = i+1, "text"
		say = append(say, said)
	}
	say = append(say, record.Said{Line: "messages", ID: "n-x", Part: 1, Parts: 1, Chat: c, Kind: "need", About: "m-answer", Created: 3500})
	must(r.Say(t.Context(), say...))
	list2, err := r.Unsent(t.Context(), "messages")
	must(err)
	for i, state := range []string{record.Sent, record.Unconfirmed, record.Failed} {
		s := list2[slices.IndexFunc(list2, func(s record.Said) bool { return s.ID == "m-x" && s.Part == i+1 })]
		must(r.Begin(t.Context(), s, "", time.UnixMilli(4000)))
		s.State = state
		if state == record.Failed {
			s.Fact = "no permission"
		}
		must(r.End(t.Context(), s, time.UnixMilli(int64(5000+i))))
	}
	line, err := db.Timeline(t.Context(), "m-answer")
	must(err)
	var got []store.TimelineEvent
	for _, e := range line.Events {
		if e.Kind != "message" {
			got = append(got, e)
		}
	}
	want := []store.TimelineEvent{
		{Time: 1500, Kind: "phone_heard", Actor: agent.Owner, Ref: "m-asked"},
		{Time: 3500, Kind: "phone_waits", Actor: agent.Owner, Text: "part 4 of 4", Ref: "m-answer"},
		{Time: 5000, Kind: "phone_sent", Actor: agent.Owner, Text: "part 1 of 4", Ref: "m-answer"},
		{Time: 5001, Kind: "phone_unconfirmed", Actor: agent.Owner, Text: "part 2 of 4", Ref: "m-answer"},
		{Time: 5002, Kind: "phone_failed", Actor: agent.Owner, Text: "part 3 of 4: no permission", Ref: "m-answer"},
	}
	testworld.EqualList(t, got, want, "Timeline")
}
