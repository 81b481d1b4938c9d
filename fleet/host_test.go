package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/attention/approve"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/fleet"
	"netsky/fleet/bridge"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
)

// noCrossing says why another host can't ask for a deed.
var noCrossing = map[string]string{
	"forget": "tidies up", "quiet": "lasts", "schedule-add": "lasts", "schedule-list": "for schedules that can't be added", "schedule-remove": "lasts",
	"send": "mail crosses as mail", "await": "mail crosses as mail", "ask": "mail crosses as mail", "reply": "mail crosses as mail",
	"cancel": "mail crosses as mail", "poison-retry": "tidies up", "poison-drop": "tidies up",
}

func TestCrossing(t *testing.T) {
	t.Parallel()
	all, cross := fleet.Deeds()
	for _, name := range all {
		if why := noCrossing[name]; slices.Contains(cross, name) == (why != "") {
			t.Errorf("%s: other hosts can ask for it, or not as it %q", name, why)
		}
	}
	for _, name := range cross {
		if !slices.Contains(all, name) {
			t.Errorf("%s: is no deed", name)
		}
	}
}

// steps is a UI that keeps what it is told.
type steps struct{ lines []string }

func (s *steps) Ask(string) (string, error) { return "", fleet.ErrNobody }
func (s *steps) Step(p fleet.Step)          { s.lines = append(s.lines, p.Line) }
func (s *steps) Warn(err error)             { s.lines = append(s.lines, err.Error()) }

// mustHosts returns the owner's host, as the owner uses it there, and build1, which does what that asks.
func mustHosts(t *testing.T) (build1 socket, on fleet.Host, said *steps) {
	t.Helper()
	build1, d := newControlWith(t, nil)
	_, here := newControlWith(t, func(ctx context.Context, host, name string, request []byte, w io.Writer) error {
		if host == "killed" {
			return nil
		}
		if host == "slow" {
			<-ctx.Done()
			return ctx.Err()
		}
		if host != "build1" {
			return errors.New(host + ": is gone; nothing was done")
		}
		d.Asked(ctx, "laptop", name, request, w)
		return nil
	})
	said = &steps{}
	f := *here.Fleet
	f.UI = said
	return build1, fleet.Host{Fleet: &f, Name: "build1"}, said
}

// What crosses is done as the owner's; the rest, and all of it if netsky.toml says so, is refused.
func TestAsked(t *testing.T) {
	t.Parallel()
	build1, on, _ := mustHosts(t)
	var task struct {
		ID string `json:"id"`
	}
	testworld.Must(t, on.Do(t.Context(), "task-add", map[string]any{"title": "a task", "assignee": "agent1"}, &task))
	testworld.Equal(t, task.ID != "", true, "the task has an id")
	for deed, want := range map[string]struct {
		request map[string]any
		status  int
		text    string
	}{
		"quiet":  {map[string]any{"for": "2h"}, 2, "is no deed that other hosts can ask for"},
		"nodeed": {nil, 2, "is no deed that other hosts can ask for"},
		"start":  {map[string]any{"agents": []string{"agent1"}, "yes": true}, 2, "is said at a terminal here"},
		"decide": {map[string]any{"agent": "agent1"}, 2, "code, digest: both are needed"},
		"peek":   {map[string]any{"agent": "agent1"}, 1, "agent1"},
		"down":   {map[string]any{"all": true}, 2, "ends the daemon"},

		// The owner's yes to what is run on this host.
		"check":      {map[string]any{"agent": "agent1", "yes": true}, 2, "is said at a terminal here"},
		"land":       {map[string]any{"agent": "agent1", "yes": true}, 2, "is said at a terminal here"},
		"land-all":   {map[string]any{"yes": true}, 2, "is said at a terminal here"},
		"task-start": {map[string]any{"task": task.ID, "start": map[string]any{"agents": []string{"agent1"}, "yes": true}}, 2, "is said at a terminal here"},
	} {
		err := on.Do(t.Context(), deed, want.request, new(any))
		if err == nil || fleet.Status(err) != want.status || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: status %d: %v", deed, fleet.Status(err), err)
		}
	}
	err := fleet.Host{Fleet: on.Fleet, Name: "build2"}.Do(t.Context(), "peek", map[string]any{"agent": "agent1"}, new(any))
	testworld.Fails(t, err, "build2: is gone; nothing was done")
	err = fleet.Host{Fleet: on.Fleet, Name: "killed"}.Do(t.Context(), "down", map[string]any{"agents": []string{"agent1"}}, new(any))
	testworld.Fails(t, err, "killed: the daemon here has ended meanwhile; it is not known whether it was done")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("it has not ended"))
	defer cancel()
	err = fleet.Host{Fleet: on.Fleet, Name: "slow"}.Do(ctx, "down", map[string]any{"agents": []string{"agent1"}}, new(any))
	testworld.Fails(t, err, "slow: it has not ended; it is not known whether it was done")
	g := *on.Fleet
	g.Home = testworld.FastHome(t)
	testworld.Fails(t, fleet.Host{Fleet: &g, Name: "build1"}.Do(t.Context(), "down", nil, new(any)), "build1: nothing was done: this host's daemon: not running")
	g = *on.Fleet
	g.Actor = agent.Root
	testworld.Fails(t, fleet.Host{Fleet: &g, Name: "build1"}.Do(t.Context(), "peek", nil, new(any)), "only the owner can do this")

	testworld.Must(t, build1.home.WriteFile(home.ConfigFile, []byte("[link]\ndeeds = false\n"), false))
	testworld.Fails(t, on.Do(t.Context(), "task-add", map[string]any{"title": "another"}, new(any)), "this host does nothing for others")
	testworld.Must(t, build1.home.WriteFile(home.ConfigFile, []byte("[link]\ndeeds = maybe\n"), false))
	testworld.Equal(t, on.Do(t.Context(), "task-add", map[string]any{"title": "another"}, new(any)) != nil, true, "an unreadable netsky.toml")
}

// An agent of another host gets the owner's answer to the words that the owner saw, once, and its record says whence.
func TestAnswerElsewhere(t *testing.T) {
	t.Parallel()
	build1, on, _ := mustHosts(t)
	desk := approve.Desk{Home: build1.home, Bus: build1.bus, Warn: func(err error) { t.Error(err) }}
	asks := func(text string) (q agent.Approval, n attention.Need) {
		t.Helper()
		q = testworld.Got(desk.Ask(t.Context(), agent.Approval{Agent: "agent1", Start: "s1", Tool: "Bash", Text: text}))(t)
		go func() { // the agent's program
			for t.Context().Err() == nil {
				if a, ok, _ := home.Approvals(build1.home).Answered(q.Code); ok {
					desk.Settle(context.WithoutCancel(t.Context()), q, agent.Outcome{How: approve.Verdict(a.Allow), Answer: a})
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		asked, _, err := attention.Approvals(build1.home)
		testworld.Must(t, err)
		n, ok := attention.Find(attention.List(attention.Sources{Approvals: asked}), q.Code)
		testworld.Equal(t, ok, true, "the item")
		return q, n
	}
	q, n := asks("rm -rf build")

	_, err := on.Answer(t.Context(), n.Code, strings.Repeat("0", 64), false)
	testworld.Fails(t, err, "it is not what you were shown")
	testworld.Equal(t, fleet.Status(err), 2)
	_, err = on.Answer(t.Context(), "zzzzz", n.Digest, false)
	testworld.Fails(t, err, "it is not pending")
	v, err := on.Answer(t.Context(), n.Code, n.Digest, false)
	testworld.Must(t, err)
	testworld.Equal(t, v.Request != nil && v.Request.Code == q.Code, true, "what was answered")
	o, _ := home.Approvals(build1.home).Outcome(q.Code)
	testworld.Equal(t, o.Answer.By, "owner@laptop")
	_, err = on.Answer(t.Context(), n.Code, n.Digest, true)
	testworld.Fails(t, err, "it is not pending: allowed")

	// On the page, and by phone.
	shown := func(there attention.Need) attention.Need {
		n := there
		n.Code, n.Host, n.There = there.Code+"@build1", "build1", &there
		return n
	}
	q, n = asks("make")
	got, err := fleet.Page{Fleet: on.Fleet}.Answer(t.Context(), shown(n), false)
	testworld.Must(t, err)
	testworld.Equal(t, got.Code+" "+string(got.Agent), q.Code+" agent1@build1", "what was answered")
	_, err = fleet.Page{Fleet: on.Fleet}.Answer(t.Context(), shown(n), true)
	testworld.Fails(t, err, "it is not pending: denied by the owner, on laptop")
	testworld.Equal(t, fleet.Answers{Fleet: on.Fleet}.Desk().How(t.Context(), q.Code+"@build1"), "answered in the dashboard, denied by the owner", "what is on record here")
	_, err = fleet.Answers{Fleet: on.Fleet}.Decide(t.Context(), fleet.DecideRequest{Code: q.Code + "@build1"})
	testworld.Fails(t, err, "no such item; answered in the dashboard, denied by the owner")
	q, n = asks("make test")
	by := bridge.Desk{Fleet: on.Fleet}
	testworld.Equal(t, testworld.Got(by.Answer(t.Context(), shown(n), true))(t), q.Code+"@build1: allowed: agent1@build1: Bash: make test.", "what the phone is told")
	n.Digest = "another"
	_, err = by.Answer(t.Context(), shown(n), true)
	testworld.Fails(t, err, "it is not pending: allowed")
	testworld.Fails(t, testworld.Err(by.Stop(t.Context(), "agent1@build2")), "build2: is gone; nothing was done")
	gone := shown(n)
	gone.Host = "build2"
	_, err = by.Answer(t.Context(), gone, true)
	testworld.Fails(t, err, q.Code+"@build1: build2: is gone; nothing was done")
}

// The page has answered once its list lacks the item, too, as that host tells of it.
func TestAnswerSettles(t *testing.T) {
	t.Parallel()
	build1, on, _ := mustHosts(t)
	desk := approve.Desk{Home: build1.home, Bus: build1.bus, Warn: func(err error) { t.Error(err) }}
	q := testworld.Got(desk.Ask(t.Context(), agent.Approval{Agent: "agent1", Start: "s1", Tool: "Bash", Text: "make"}))(t)
	testworld.Must(t, testworld.Err(team.Found(on.Home, "laptop", team.Server{})))
	key := testworld.Got(team.MakeKey(testworld.FastHome(t)))(t)
	testworld.Must(t, testworld.Err(team.Admit(on.Home, team.Host{Name: "build1", Key: key.Public(), Role: team.Worker})))
	tells := func(list []agent.Approval) error {
		needs, err := attention.TellNeeds(attention.List(attention.Sources{Approvals: list}))
		return errors.Join(err, on.Home.Save(link.Heard+"/build1.json", link.Host{Name: "build1", Seen: time.Now(), Needs: needs}, false))
	}
	testworld.Must(t, tells([]agent.Approval{q}))
	var told atomic.Bool
	go func() { // the agent's program, then its host
		for t.Context().Err() == nil {
			if a, ok, _ := home.Approvals(build1.home).Answered(q.Code); ok {
				desk.Settle(context.WithoutCancel(t.Context()), q, agent.Outcome{How: approve.Verdict(a.Allow), Answer: a})
				time.Sleep(200 * time.Millisecond)
				told.Store(true)
				_ = tells(nil)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	hosts := testworld.Got(attention.Hosts(on.Home, time.Now()))(t)
	n, _ := attention.Find(attention.List(attention.Sources{Hosts: hosts}), q.Code+"@build1")
	testworld.Must(t, testworld.Err(fleet.Page{Fleet: on.Fleet}.Answer(t.Context(), n, true)))
	testworld.Equal(t, told.Load(), true, "it was told when the page had its answer")
}

// An agent of another host is asked over the control socket as one of this host, and its answer is waited for; what else
// names one is told how to have it done there.
func TestAskElsewhere(t *testing.T) {
	t.Parallel()
	c, _ := newControlWith(t, nil)
	testworld.Must(t, c.bus.Link("build1"))
	answered := make(chan error, 1)
	go func() {
		for t.Context().Err() == nil {
			if list, _ := c.bus.List("agent3@build1", bus.Inbox, 0); len(list) > 0 {
				answered <- c.bus.Arrive(t.Context(), "build1", envelope.Envelope{
					ID: "m-1", From: "agent3", To: "owner@laptop", Kind: envelope.KindReply, InReplyTo: list[0].Envelope.ID, Text: "7717", Time: time.Now(),
				}, false)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	done, _ := c.done("/deeds/ask", `{"agent":"3@build1","text":"which port?","wait":"5m"}`)
	testworld.Must(t, <-answered)
	testworld.Contains(t, fmt.Sprint(done.Result), "7717", "the answer")
	done, _ = c.done("/deeds/reply", `{"message":"agent3@build1","text":"thanks"}`)
	testworld.Equal(t, done.Status, 0, "a reply to the last message from it: %v", done.Failed)
	testworld.Equal(t, len(testworld.Got(c.bus.List("agent3@build1", bus.Inbox, 0))(t)), 2, "messages for it")
	done, _ = c.done("/deeds/peek", `{"agent":"3@build1"}`)
	testworld.Equal(t, done.Status, 2)
	testworld.Contains(t, done.Failed.Error, "agent3@build1: not an agent's name on this host", "peek")
}

// A verb that another host does reports what that says, as of that host.
func TestSaidElsewhere(t *testing.T) {
	t.Parallel()
	_, on, said := mustHosts(t)
	var v fleet.DownResult
	testworld.Must(t, on.Do(t.Context(), "down", fleet.DownRequest{Agents: []agent.ID{"agent1"}}, &v))
	testworld.Equal(t, v.Ended, 0)
	if len(said.lines) != 1 || !strings.HasPrefix(said.lines[0], "build1: ") {
		t.Errorf("%q", said.lines)
	}
}
