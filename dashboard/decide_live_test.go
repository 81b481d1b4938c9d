//go:build live

package dashboard_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/attention/approve"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/view"
)

// In a browser: the exact command, then the answer, and the agent has it.
func TestAnswerInBrowser(t *testing.T) {
	t.Parallel()
	w, d := answering(t)
	w.agents.set(nil, view.Agent{ID: "agent0", State: agent.Waiting, Wanted: true}, view.Agent{ID: "agent1", State: agent.Idle, Wanted: true})
	answered := make(chan agent.Answer, 1)
	go func() {
		if a, settled, ok := d.Put(t.Context(), agent.Approval{Agent: "agent0", Start: "s-1", Tool: "Bash", Text: "git push --force origin " + strings.Repeat("very-long-name/", 40) + " && echo '<done>'", Dir: "/src"}); ok {
			settled(approve.Verdict(a.Allow))
			answered <- a
		}
	}()
	testworld.Wait(t, "the request", func() bool { list, _ := home.Approvals(w.home).List(); return len(list) == 1 })
	l := mustBrowser(t).look(t, w)
	l.theme("light", true)
	l.live()
	l.waits(`document.querySelector(".decide summary")`)
	testworld.Equal(t, eval[int](l, `document.querySelectorAll("form.approval button:not([disabled])").length`), 2, "answers are offered")
	if eval[bool](l, `document.querySelector("form.approval button").checkVisibility()`) {
		t.Error("the answer is one click away, before the command is shown to confirm")
	}
	eval[any](l, `document.querySelector(".decide summary").click(), null`)
	l.waits(`document.querySelector("form.approval button").checkVisibility()`)
	if text := eval[string](l, `document.querySelector("form.approval pre").textContent`); !strings.HasSuffix(text, "/ && echo '<done>'") {
		t.Errorf("what is to be confirmed is %q", text)
	}
	if wide := eval[bool](l, `document.documentElement.scrollWidth > innerWidth`); wide {
		t.Error("a long command makes the page wider than the window")
	}
	eval[any](l, `document.querySelector("form.approval button").click(), null`)
	testworld.WaitOr(t, func() bool { return len(answered) == 1 }, func() string {
		return "the agent has no answer: " + eval[string](l, `document.querySelector(".ask")?.innerText || "no item"`)
	})
	if a := <-answered; !a.Allow || a.By != approve.InDashboard {
		t.Errorf("answered %+v", a)
	}
	l.waits(`!document.querySelector(".decide")`)
	l.clean()
}
