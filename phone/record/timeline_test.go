package record_test

import (
	"slices"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/testworld"
	"netsky/phone/record"
	"netsky/store"
)

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
