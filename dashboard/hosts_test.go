package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/dashboard"
	"netsky/internal/testworld"
	hostlink "netsky/link"
	"netsky/link/team"
	"netsky/store"
	"netsky/view"
)

// showHosts makes the world that of the owner's host of a team: build1 tells how it is, and
// build2 has told that a while ago.
func (w *world) showHosts(tb testing.TB) {
	tb.Helper()
	testworld.Got(team.Found(w.home, "laptop", team.Server{}))(tb)
	now := time.Now()
	testworld.Must(tb, w.home.Save(hostlink.ReportFile, hostlink.Report{Host: "laptop", Connected: true, Since: now, Seen: now}, false))
	for _, name := range []string{"build1", "build2"} {
		k := testworld.Got(team.MakeKey(testworld.Home(tb)))(tb)
		testworld.Got(team.Admit(w.home, team.Host{Name: name, Key: k.Public(), Role: team.Worker}))(tb)
		agents := []view.Agent{
			{ID: "agent1", State: agent.Busy, Runtime: "claude", Detail: "running make -j32 bench", Since: store.At(now.Add(-3 * time.Minute)), Wanted: true},
			{ID: "agent3", State: agent.Waiting, Runtime: "codex", Detail: "Bash: apt-get install clang", Since: store.At(now.Add(-time.Minute)), Wanted: true},
		}
		seen := now
		if name == "build2" {
			agents, seen = agents[:1], now.Add(-12*time.Minute)
		}
		needs := attention.List(attention.Sources{Now: now, Agents: agents, Approvals: []agent.Approval{{
			Code: "fghij", Agent: "agent3", Tool: "Bash", Text: "sudo apt-get install clang", AskedMS: now.Add(-time.Minute).UnixMilli(),
		}}})
		testworld.Must(tb, w.home.Save(hostlink.Heard+"/"+name+".json", hostlink.Host{
			Name: name, Seen: seen, State: hostlink.State{Name: name, Version: "0.1.0", Agents: testworld.Got(attention.TellAgents(agents))(tb)},
			Needs: testworld.Got(attention.TellNeeds(needs))(tb),
		}, false))
	}
}

// The overview has the agents of all hosts and what needs the owner there, with the age of
// what is known of a silent one.
func TestHosts(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	testworld.Lacks(t, w.mustPage(t, "/"), "Other hosts", "the overview without a team")
	w.showHosts(t)
	page := w.mustPage(t, "/")
	for _, want := range []string{
		`href="/agents/agent3@build1">agent3<span class="away">@build1</span></a>`, "<h3>build1 <span class=\"sub\">netsky 0.1.0</span></h3>", "agents ask for permission",
		`<div class="roster stale" data-key="host-build2">`, "as of 12m ago", "netsky approve fghij@build1 --deny", "agent:agent1@build2=", "<option>agent3@build1</option>",
	} {
		testworld.Contains(t, page, want, "the overview")
	}
	testworld.Lacks(t, page, `action="/approval"`, "the overview, where nothing is answered")
	testworld.Contains(t, w.mustPage(t, "/messages?with=agent3%40build1"), "agent3@build1", "its messages")
	testworld.Contains(t, w.get(t, "/api/needs").body, `"agent":"agent3@build1"`, "the API")
	hosts := mustGet[dashboard.Overview](t, w, "/api/snapshot").Hosts
	testworld.Equal(t, len(hosts), 2, "hosts of the API's snapshot")
	testworld.Equal(t, fmt.Sprintf("%s %t %s", hosts[1].Name, hosts[1].Up, hosts[1].Agents[0].ID), "build2 false agent1@build2", "a silent one")
	for path, want := range map[string]int{"/api/actors/agent3@build9": 404, "/api/pane/agent3@build1": 404, "/work/agent3@build1": 404} {
		testworld.Equal(t, w.get(t, path).status, want, path)
	}
}

// A farDesk takes answers to what is asked on another host.
type farDesk struct {
	desk
	took []string
	err  error
}

func (d *farDesk) Answer(_ context.Context, n attention.Need, allow bool) (agent.Approval, error) {
	d.took = append(d.took, fmt.Sprint(n.Host, " ", n.There.Code, " ", allow))
	return agent.Approval{Code: n.There.Code, Agent: n.Agents[0], Tool: "Bash", Text: n.Text}, d.err
}

// A request of another host has the form of one of this host. Its answer is for the words that were shown, and only
// what the other host has confirmed is called done.
func TestAnswerElsewhere(t *testing.T) {
	t.Parallel()
	var d farDesk
	w := mustWorld(t, func(o *dashboard.Options) { o.Desk = &d })
	w.showHosts(t)
	page := w.mustPage(t, "/")
	digest := w.digest(t, "fghij@build1")
	for _, want := range []string{
		`name="code" value="fghij@build1"`, `name="digest" value="` + digest + `"`, "agent3@build1 may do exactly this, once", `name="code" value="fghij@build2"`, "(as of 12m ago)", `<li class="ask tone-wait stale" data-key="approval-fghij%40build2"`,
	} {
		testworld.Contains(t, page, want, "the overview")
	}
	for name, tt := range map[string]struct {
		code, digest string
		err          error
		want         int
		say          string
	}{
		"another digest":  {"fghij@build1", strings.Repeat("0", 64), nil, 409, "is not what you were shown; now it says: agent3@build1 asks for permission to use Bash: sudo apt-get"},
		"that of another": {"fghij@build1", w.digest(t, "fghij@build2"), nil, 409, "is not what you were shown"},
		"an unknown host": {"fghij@build3", digest, nil, 409, "is not pending"},
		"a host's word":   {"fghij@build1", digest, errors.New("build1: is not connected to the team's server; nothing was done"), 502, "server; nothing was done"},
		"confirmed":       {"fghij@build1", digest, nil, 200, `"agent":"agent3@build1"`},
	} {
		d.took, d.err = nil, tt.err
		a := w.answer(t, tt.code, tt.digest, attention.Allow, nil)
		if a.status != tt.want || !strings.Contains(a.body, tt.say) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if took := fmt.Sprint(d.took); (took == "[build1 fghij true]") != (tt.want == 200 || tt.want == 502) {
			t.Errorf("%s: took effect: %s", name, took)
		}
	}
}

// An agent of another host has a page: its state, what it asks, its mail, and how to see its terminal.
func TestAgentElsewhere(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showHosts(t)
	testworld.Must(t, w.bus.Link("build1"))
	w.apply(t, store.UpsertMessage{ID: "m-far", From: "owner", To: "agent3@build1", Text: "port 7717", Time: store.At(time.Now())},
		store.UpsertDelivery{Message: "m-far", Target: "agent3@build1", State: store.Queued},
		store.UpsertMessage{ID: "m-there", From: "owner", To: "agent3@build1", Text: "port 7718", Time: store.At(time.Now())},
		store.UpsertDelivery{Message: "m-there", Target: "agent3@build1", State: store.Arrived, Queued: store.At(time.Now())})
	page := w.mustPage(t, "/agents/agent3@build1")
	for _, want := range []string{
		`<div class="hail agent tone-wait">`, "sudo apt-get install clang", "netsky approve fghij@build1", "netsky attach agent3@build1", "netsky peek agent3@build1",
		"Not delivered yet", "port 7717", "port 7718", "arrived</span>", "<option selected>agent3@build1</option>", `href="/agents/agent1@build1"`, "build1, netsky 0.1.0",
	} {
		testworld.Contains(t, page, want, "its page")
	}
	testworld.Lacks(t, page, "data-pane", "its page")
	testworld.Contains(t, w.mustPage(t, "/messages/m-there"), "in the inbox there", "one that has arrived")
	testworld.Contains(t, w.mustPage(t, "/messages?state=arrived"), "port 7718", "messages in that state")
	page = w.mustPage(t, "/agents/agent1@build2")
	for _, want := range []string{`<div class="hail agent tone-busy stale">`, `<span class="sub">as of 12m ago</span>`, "None yet."} {
		testworld.Contains(t, page, want, "the page of one of a silent host")
	}
	for path, want := range map[string]int{"/agents/agent9@build1": 404, "/agents/agent1@build3": 404, "/agents/owner@build1": 404, "/find?q=3@build1": 303} {
		if a := w.get(t, path); a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		}
	}
	a := w.form(t, url.Values{"to": {"agent3@build1"}, "text": {"go on"}, "id": {draftID(page)}}, nil)
	if list := testworld.Got(w.bus.List("agent3@build1", bus.Inbox, 0))(t); a.status != 303 || len(list) != 1 || list[0].Envelope.Text != "go on" {
		t.Errorf("a message from its page: %d %.300s: %v", a.status, a.body, list)
	}
}

// Mail from an agent on another host, as the link brings it, is shown under its address, which leads to
// its messages, and can be answered.
func TestMailFromHost(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showHosts(t)
	testworld.Must(t, w.bus.Link("build1"))
	e := envelope.Envelope{ID: "m-far", From: "agent0", To: "owner@laptop", Text: "which port?", RequiresAck: true, Time: time.Now()}
	testworld.Must(t, w.bus.Arrive(t.Context(), "build1", e, false))
	w.apply(t, store.UpsertMessage{ID: "m-far", From: "agent0@build1", To: "owner", Text: "which port?", Time: store.At(time.Now())},
		store.UpsertDelivery{Message: "m-far", Target: "owner", State: store.Queued})
	page := w.mustPage(t, "/")
	testworld.Contains(t, page, `<a class="who" href="/agents/agent0@build1">agent0@build1</a> waits for your answer`, "the overview")
	testworld.Contains(t, page, `agent0@build1 <span class="arrow"`, "the overview's messages")
	testworld.Contains(t, w.mustPage(t, "/messages?with=agent0%40build1"), "which port?", "its messages")
	w.apply(t, store.UpsertMessage{ID: "m-code", From: "agent0@build1", To: "owner", Kind: "approval", Text: "netsky approve fghij", Via: bus.ViaLinkCode, Time: store.At(time.Now())})
	asked := w.mustPage(t, "/messages/m-code")
	testworld.Contains(t, asked, "the netsky on build1; its commands are for there", "the page of what the netsky there has written")
	testworld.Lacks(t, asked, `name="in_reply_to"`, "that page")
	testworld.Contains(t, w.mustPage(t, "/messages/m-far"), `<input type="hidden" name="to" value="agent0@build1">`, "the message's page")
	a := w.form(t, url.Values{"to": {"agent0@build1"}, "in_reply_to": {"m-far"}, "text": {"7717"}, "id": {draftID(page)}}, nil)
	if a.status != 303 {
		t.Fatalf("the answer: %d %.500s", a.status, a.body)
	}
	list := testworld.Got(w.bus.List("agent0@build1", bus.Inbox, 0))(t)
	testworld.Equal(t, len(list), 1, "answers that wait for the link")
	testworld.Equal(t, list[0].Envelope.Text, "7717", "the answer")
	testworld.Lacks(t, w.mustPage(t, "/"), "waits for your answer", "the overview after that")
}

// Browsers that follow hear when another host tells something.
func TestHostsFollowed(t *testing.T) {
	t.Parallel()
	w := mustWorld(t, nil)
	w.showHosts(t)
	s := w.sse(t, "/events", "")
	told := func(state string) {
		t.Helper()
		s.until(t, state, func(e event) bool {
			return e.Key == "agent:agent1@build1" && strings.Contains(string(e.Data), `"state":"`+state+`"`)
		})
	}
	told("busy")
	testworld.Must(t, w.home.Save(hostlink.Heard+"/build1.json", hostlink.Host{Name: "build1", Seen: time.Now(), State: hostlink.State{
		Agents: testworld.Got(attention.TellAgents([]view.Agent{{ID: "agent1", State: agent.Idle, Wanted: true}}))(t),
	}}, false))
	told("idle")
}
