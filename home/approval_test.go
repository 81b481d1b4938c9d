package home_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
)

func TestApprovals(t *testing.T) {
	h := testworld.Home(t)
	if list, err := home.Approvals(h).List(); err != nil || len(list) != 0 {
		t.Fatalf("at first: %v, %v", list, err)
	}
	p, err := home.Approvals(h).Ask(agent.Approval{Agent: "agent1", Tool: "shell", Text: "rm x"})
	if err != nil || len(p.Code) != 5 {
		t.Fatalf("asked %+v, %v", p, err)
	}
	for _, code := range []string{"", "aaaa", "../../x", p.Code + "x", "AAAAA"} {
		testworld.ErrorIs(t, testworld.Err(home.Approvals(h).Answer(code, agent.Answer{Allow: true})), agent.ErrNoApproval, "Answer(%q)", code)
	}
	if _, ok, err := home.Approvals(h).Answered(p.Code); ok || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before any answer: %v, %v", ok, err)
	}
	if got, err := home.Approvals(h).Answer(p.Code, agent.Answer{By: "a test"}); err != nil || got.Text != "rm x" {
		t.Errorf("Answer: %+v, %v", got, err)
	}
	if got, ok, err := home.Approvals(h).Answered(p.Code); got != (agent.Answer{By: "a test"}) || !ok || err != nil {
		t.Errorf("Answered: %+v, %v, %v", got, ok, err)
	}
	testworld.ErrorIs(t, testworld.Err(home.Approvals(h).Answer(p.Code, agent.Answer{Allow: true})), agent.ErrNoApproval, "answered twice")
	if got, _, _ := home.Approvals(h).Answered(p.Code); got.Allow {
		t.Error("a second answer turned the first")
	}
	testworld.Must(t, home.Approvals(h).Settle(p.Code))
	testworld.Len(t, testworld.Got(home.Approvals(h).List())(t), 0, "settled")
}

// Of answers at the same moment one takes effect, and only its giver is told so.
func TestAnswersAtOnce(t *testing.T) {
	h := testworld.Home(t)
	for range 20 {
		p, err := home.Approvals(h).Ask(agent.Approval{Agent: "agent1", Text: "rm x"})
		testworld.Must(t, err)
		var all sync.WaitGroup
		won := make(chan string, 8)
		for i := range 8 {
			all.Go(func() {
				by := fmt.Sprint("surface ", i)
				q, err := home.Approvals(h).Answer(p.Code, agent.Answer{Allow: i%2 == 0, By: by})
				switch {
				case err == nil:
					won <- by
				case !errors.Is(err, agent.ErrNoApproval) || q.Code != p.Code:
					t.Errorf("%s: %+v, %v", by, q, err)
				}
			})
		}
		all.Wait()
		close(won)
		got, ok, err := home.Approvals(h).Answered(p.Code)
		if by := <-won; len(won) != 0 || !ok || err != nil || got.By != by {
			t.Fatalf("%q and %d others were told that theirs counts; it is %+v, %v, %v", by, len(won), got, ok, err)
		}
		testworld.Must(t, home.Approvals(h).Settle(p.Code))
	}
}

// The question of a process that has died waits for nobody, and goes with the
// next one that is asked. Looking removes nothing.
func TestApprovalOfTheDead(t *testing.T) {
	h := testworld.Home(t)
	p := testworld.Got(home.Approvals(h).Ask(agent.Approval{Agent: "agent1", Text: "rm x"}))(t)
	p.Asker.Start++
	testworld.Must(t, home.Approvals(h).Mailed(p))
	testworld.Len(t, testworld.Got(home.Approvals(h).List())(t), 0, "listed")
	file := h.Path(home.ApprovalDir, p.Code+".json")
	testworld.Equal(t, testworld.Err(os.Stat(file)), nil, "looking has removed it")
	next := testworld.Got(home.Approvals(h).Ask(agent.Approval{Agent: "agent1", Text: "rm y"}))(t)
	testworld.ErrorIs(t, testworld.Err(os.Stat(file)), fs.ErrNotExist, "it stays")
	if list, err := home.Approvals(h).List(); err != nil || len(list) != 1 || list[0].Code != next.Code {
		t.Errorf("listed: %v, %v", list, err)
	}
}

// Nothing of a question is left once its home is purged: a directory in which anything is
// left is no home to the next start.
func TestPurgeApprovals(t *testing.T) {
	h := testworld.Home(t)
	testworld.Got(home.Approvals(h).Ask(agent.Approval{Agent: "agent1", Text: "rm x"}))(t)
	p := testworld.Got(home.Approvals(h).Ask(agent.Approval{Agent: "agent2", Text: "rm y"}))(t)
	testworld.Got(home.Approvals(h).Answer(p.Code, agent.Answer{Allow: true, By: "a test"}))(t)
	testworld.Must(t, home.Approvals(h).Settled(p, agent.Outcome{How: "allowed"}))
	testworld.Len(t, testworld.Got(home.Purge(h))(t), 0, "Purge() left")
}
