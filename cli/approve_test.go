package cli_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/home"
	"netsky/internal/testworld"
)

// ask puts a request for permission, as an agent's hook does.
func (w *world) ask(t *testing.T, id agent.ID, text string) agent.Approval {
	t.Helper()
	h := testworld.Got(home.At(w.home))(t)
	desk := approve.Desk{Home: h, Bus: bus.New(h, bus.Options{}), Warn: func(error) {}}
	p := testworld.Got(desk.Ask(t.Context(), agent.Approval{Agent: id, Start: "s1", Tool: "Bash", Text: text}))(t)
	takeAnswers(t, desk, p)
	return p
}

// takeAnswers takes the answer to a request, as an agent's program does.
func takeAnswers(t *testing.T, desk approve.Desk, q agent.Approval) {
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for t.Context().Err() == nil {
			if a, ok, _ := home.Approvals(desk.Home).Answered(q.Code); ok {
				desk.Settle(t.Context(), q, agent.Outcome{How: approve.Verdict(a.Allow), Answer: a})
				return
			}
			select {
			case <-t.Context().Done():
			case <-tick.C:
			}
		}
	}()
}

// given returns how a request was answered: "", allowed or denied.
func (w *world) given(t *testing.T, p agent.Approval) string {
	t.Helper()
	h := testworld.Got(home.At(w.home))(t)
	o, ok := home.Approvals(h).Outcome(p.Code)
	if !ok {
		return ""
	}
	return o.How
}

// An agent stands for its only request, which is shown before it is answered; several codes are answered one
// by one.
func TestApproveWords(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.must(t, "netsky", "init")
	one, other, third := w.ask(t, "agent1", "ls"), w.ask(t, "agent2", "touch a"), w.ask(t, "agent2", "touch b")

	// Who is not asked answers nothing.
	out, err := w.command(t.Context(), "netsky", "approve", "agent1").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || w.given(t, one) != "" {
		t.Errorf("%v, answered %q: %s", err, w.given(t, one), out)
	}
	mustContain(t, "approve", string(out), "agent1", "ls", "`netsky approve "+one.Code+"` answers it")
	out, err = w.command(t.Context(), "netsky", "approve", "agent2").CombinedOutput()
	if err == nil || w.given(t, other)+w.given(t, third) != "" {
		t.Errorf("%v: %s", err, out)
	}
	mustContain(t, "approve", string(out), "agent2 asks for 2 things: ", other.Code, third.Code)

	s := w.mustScreen(t, "alone", "sh")
	s.types("clear; netsky approve agent1", "Enter")
	s.shows(`(?s)agent1 .*ls.*Allow it\? \[y/N\]`)
	s.types("n", "Enter")
	s.shows(`nothing was done`)
	testworld.Equal(t, w.given(t, one), "", "not agreed to, and it")
	s.types("clear; netsky approve agent1", "Enter")
	s.shows(`Allow it\? \[y/N\]\s*$`) // the last on the screen: the first question is above what followed it
	s.types("y", "Enter")
	s.shows(`allowed: agent1: Bash: ls`)
	testworld.Equal(t, w.given(t, one), "allowed", "agreed to, and it")

	// One code that is none leaves the others alone.
	out, err = w.command(t.Context(), "netsky", "approve", "--deny", other.Code, "zzzzz", third.Code, other.Code).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Errorf("%v: %s", err, out)
	}
	if w.given(t, other) != "denied" || w.given(t, third) != "denied" || strings.Count(string(out), "denied: ") != 2 {
		t.Errorf("%q, %q: %s", w.given(t, other), w.given(t, third), out)
	}
	mustContain(t, "approve", string(out), "zzzzz: no such approval is pending")
}
