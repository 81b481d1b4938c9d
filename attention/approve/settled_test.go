package approve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/store"
)

// Who answers second is told who was first and what it was, also once the asker has read
// the answer.
func TestAnsweredAlready(t *testing.T) {
	h := testworld.Home(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	db.Close()
	d := approve.Desk{Home: h, Bus: testworld.Bus(t, h, "agent1", "owner"), Warn: func(err error) { t.Error(err) }}
	q := testworld.Got(d.Ask(t.Context(), agent.Approval{Agent: "agent1", Start: "s-1", Tool: "Bash", Text: "ls"}))(t)
	first := make(chan error, 1)
	go func() {
		_, err := d.Answer(t.Context(), q.Code, agent.Answer{Allow: true, By: approve.InDashboard})
		first <- err
	}()
	testworld.Wait(t, "the answer", func() bool { _, ok, _ := home.Approvals(h).Answered(q.Code); return ok })
	second := func(when string) {
		t.Helper()
		_, err := d.Answer(t.Context(), q.Code, agent.Answer{By: "netsky approve"})
		if !errors.Is(err, agent.ErrNoApproval) || !strings.Contains(err.Error(), "it is settled already (answered in the dashboard, allowed by the owner), and nothing has changed") || advice.Of(err) == "" {
			t.Errorf("%s: %v", when, err)
		}
	}
	second("at once")
	if a, ok, err := home.Approvals(h).Answered(q.Code); !a.Allow || !ok || err != nil {
		t.Errorf("the second answer has turned the first: %+v, %v, %v", a, ok, err)
	}
	a, _, _ := home.Approvals(h).Answered(q.Code)
	d.Settle(t.Context(), q, agent.Outcome{How: approve.Verdict(true), Answer: a})
	testworld.Equal(t, <-first, nil, "the first answer")
	second("once it is settled")
	if _, err := d.Answer(t.Context(), "zzzzz", agent.Answer{}); !errors.Is(err, agent.ErrNoApproval) || strings.Contains(err.Error(), "dashboard") {
		t.Errorf("a code that nobody knows: %v", err)
	}
}

// How a request was settled is known after many others.
func TestHowAmongMany(t *testing.T) {
	h := testworld.FastHome(t)
	db := testworld.Got(store.Open(t.Context(), h))(t)
	defer db.Close()
	d := approve.Desk{Home: h, Bus: testworld.Bus(t, h, "agent1", "owner"), Warn: func(err error) { t.Error(err) }}
	d.Answered(t.Context(), agent.Approval{Code: "first", Agent: "agent1", Start: "s"}, agent.Answer{By: "the phone"})
	for i := range 1500 {
		op := store.AddLog{Key: fmt.Sprint("later ", i), Part: "approval", Text: "allowed by the owner: Bash: ls", Fields: map[string]any{"code": fmt.Sprint("c", i)}}
		testworld.Must(t, db.Apply(t.Context(), op))
	}
	testworld.Equal(t, d.How(t.Context(), "first"), "denied by the owner, with the phone", "settled")
	testworld.Equal(t, d.How(t.Context(), "../../meta"), "", "a path as a code")
}
