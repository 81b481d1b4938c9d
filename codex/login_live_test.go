//go:build live

package codex_test

import (
	"strings"
	"testing"

	"netsky/agent"
	"netsky/bus/courier"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// sessions counts the threads that were opened, and those of them that cut off a turn.
func (r *rig) sessions() (opened, cut int) {
	r.events.Read(func(e courier.Event) { r.told = append(r.told, e) })
	for _, e := range r.told {
		if e.Event.Event == agent.EventSessionStart {
			if opened++; e.Cut {
				cut++
			}
		}
	}
	return opened, cut
}

// A Codex whose login was not accepted is replaced by one that reads it again: when the
// login has changed, or when a message is offered again. So is one whose account is another
// now. Nothing is cut off by it.
func TestFaultLogin(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.configure(`env_key = "LOOPMODEL_KEY"`, "", "requires_openai_auth = false", "requires_openai_auth = true")
	w.mustLogin("sk-one")
	w.model.Handle(func(q openai.Request) *openai.Reply {
		if q.Key == "sk-one" {
			return openai.Fail(401)
		}
		return &openai.Reply{Text: "by " + q.Key}
	})
	r := w.mustRig()
	r.takes()
	r.offer("m-1", "the task")
	one := w.account()
	if e := r.see(0, agent.EventStopFailed); e.Fault == nil || e.Fault.Reason != agent.Login || e.Fault.Account != one || one == "" {
		t.Errorf("fault %+v, want of %s", e.Fault, one)
	}
	r.takes()
	if n, _ := r.sessions(); n != 1 {
		t.Errorf("%d sessions, want 1: nobody has acted", n)
	}
	testworld.Equal(t, r.Offer(w.ctx, courier.Offer{Text: "the task", About: []string{"m-1"}}), courier.ErrNotReady, "Offer")
	r.until("a new Codex", func() bool { n, _ := r.sessions(); return n == 2 })
	before := len(r.told)
	r.takes()
	r.offer("m-1", "the task")
	r.see(before, agent.EventStopFailed)

	w.mustLogin("sk-two")
	r.until("a new Codex by itself", func() bool { n, _ := r.sessions(); return n == 3 })
	before = len(r.told)
	r.takes()
	r.offer("m-1", "the task")
	if e := r.see(before, agent.EventStop, agent.EventStopFailed); e.Text != "by sk-two" {
		t.Errorf("end = %+v", e)
	}
	r.takes()
	w.mustLogin("sk-three")
	r.until("a Codex with the other account", func() bool { n, _ := r.sessions(); return n == 4 })
	before = len(r.told)
	r.takes()
	r.offer("m-2", "more")
	if e := r.see(before, agent.EventStop, agent.EventStopFailed); e.Text != "by sk-three" {
		t.Errorf("end = %+v", e)
	}
	if _, cut := r.sessions(); cut != 0 {
		t.Errorf("%d sessions began with a turn cut off", cut)
	}
}

// A Codex that nobody is logged in to is blocked for that, and not started over and over.
func TestFaultNoLogin(t *testing.T) {
	t.Parallel()
	w := mustWorld(t)
	w.configure(`env_key = "LOOPMODEL_KEY"`, "", "requires_openai_auth = false", "requires_openai_auth = true")
	r := w.mustRig()
	r.until("blocked", func() bool {
		s := r.State(w.ctx)
		return s.State == agent.Blocked && s.Fault.Reason == agent.Login && !s.Takes && strings.Contains(s.Detail, "codex login")
	})
	server := w.program1("app-server")
	w.mustLogin("sk-one")
	r.takes()
	if now := w.program1("app-server"); now == server {
		t.Error("Codex is still the one that was not logged in")
	}
}
