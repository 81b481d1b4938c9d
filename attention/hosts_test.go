package attention_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus"
	"netsky/bus/envelope"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
	"netsky/store"
	"netsky/view"
)

// mustTeam makes the home that of the owner's host of a team with build1.
func mustTeam(t *testing.T) home.Dir {
	h := testworld.Home(t)
	testworld.Got(team.Found(h, "laptop", team.Server{}))(t)
	k := testworld.Got(team.MakeKey(testworld.Home(t)))(t)
	testworld.Got(team.Admit(h, team.Host{Name: "build1", Key: k.Public(), Role: team.Worker}))(t)
	return h
}

func mustHear(t *testing.T, h home.Dir, seen time.Time, agents []view.Agent, needs []attention.Need, edit func(*link.Host)) {
	t.Helper()
	one := link.Host{
		Name: "build1", Seen: seen, State: link.State{Name: "build1", Version: "v1", Agents: testworld.Got(attention.TellAgents(agents))(t)},
		Needs: testworld.Got(attention.TellNeeds(needs))(t),
	}
	if edit != nil {
		edit(&one)
	}
	testworld.Must(t, h.Save(link.Heard+"/build1.json", one, false))
}

// What another host tells is listed here under its addresses, with the command that reaches it.
func TestHosts(t *testing.T) {
	h := mustTeam(t)
	needs := func() []attention.Need {
		t.Helper()
		return testworld.Got(attention.Collect(t.Context(), h, attention.NewMail(bus.New(h, bus.Options{})), attention.Sources{Now: now}))(t)
	}
	testworld.Equal(t, len(needs()), 0, "items before anything was heard")
	list := testworld.Got(attention.Hosts(h, now))(t)
	testworld.Equal(t, len(list), 1, "hosts")
	testworld.Equal(t, list[0].AsOf(now), "not heard of yet", "its age")

	agents := []view.Agent{
		limited("agent3", agent.Login, "claude", time.Time{}),
		one("agent1", agent.Busy, func(a *view.Agent) { a.Detail, a.Inbox = "Bash", 2 }),
		{ID: "agent2", State: agent.Down},
	}
	there := attention.List(attention.Sources{Now: now, Agents: agents, Approvals: []agent.Approval{{
		Code: "abcde", Agent: "agent1", Tool: "Bash", Text: "make all", AskedMS: now.Add(-2 * time.Minute).UnixMilli(),
	}}})
	mustHear(t, h, now, agents, there, nil)
	list = testworld.Got(attention.Hosts(h, now))(t)
	var words []string
	for _, a := range list[0].Agents {
		words = append(words, fmt.Sprint(a.ID, " ", a.State, " ", a.Words()))
	}
	testworld.EqualList(t, words, []string{"agent1@build1 busy Bash, mail: 2 waiting", "agent3@build1 blocked "}, "its agents")
	lines := strings.Join(attention.Lines(needs(), now), "\n")
	testworld.Contains(t, lines, "abcde@build1  approval      2m  agent1@build1 asks for permission to use Bash: ", "the list")
	testworld.Contains(t, lines, "`netsky approve abcde@build1` says yes, --deny refuses; otherwise nothing is run", "the list")
	testworld.Contains(t, lines, "agent3@build1 is not logged in", "the list")
	n, _ := attention.Find(needs(), "abcde@build1")
	testworld.Equal(t, n.There.Digest, there[0].Digest, "the digest there")
	testworld.Equal(t, fmt.Sprint(n.There.Code, n.There.Options, n.Options), "abcde[allow once deny] [allow once deny]", "its code and answers")

	later := now.Add(12 * time.Minute)
	list = testworld.Got(attention.Hosts(h, later))(t)
	testworld.Equal(t, fmt.Sprint(list[0].Up, " ", list[0].AsOf(later)), "false as of 12m ago", "a host that has gone")
	testworld.Contains(t, n.Next(), "netsky approve abcde@build1 says yes")
	n, _ = attention.Find(attention.List(attention.Sources{Now: later, Hosts: list}), "abcde@build1")
	testworld.Contains(t, n.Next(), "netsky link shows since when build1 is silent")
	testworld.Contains(t, n.How(), "`netsky approve abcde@build1` says yes")

	// Its clock is an hour ahead.
	mustHear(t, h, now, []view.Agent{one("agent1", agent.Idle, func(a *view.Agent) { a.Since = store.At(now.Add(time.Hour)) })}, nil, func(l *link.Host) { l.Behind = -time.Hour })
	list = testworld.Got(attention.Hosts(h, now))(t)
	testworld.Equal(t, list[0].Agents[0].Since, store.At(now), "since when")
}

// No word of another host becomes a command, a line of its own or a control of the terminal.
func TestHostileHost(t *testing.T) {
	h := mustTeam(t)
	evil := attention.Need{
		Code: "abcde", Kind: "new", About: "x\x1b[2J", Title: "a\nb", Text: "rm\x1b[2J", Agents: []agent.ID{"agent1", "agent1@other", "owner", "x;y"}, Digest: "d",
		Commands: []attention.Command{{Does: "x", Line: "rm -rf /"}}, Options: []string{"x"}, Otherwise: "y\nz", Host: "",
	}
	code := evil
	code.Code = "x; reboot"
	agents := []view.Agent{
		{ID: "agent1@laptop", State: agent.Idle}, {ID: "owner", State: agent.Idle}, {ID: "agent1", State: "on\x1b[2Jfire", Detail: "a\nb"},
	}
	mustHear(t, h, now, agents, []attention.Need{evil, code}, nil)
	list := testworld.Got(attention.Hosts(h, now))(t)
	testworld.Equal(t, len(list[0].Agents), 1, "agents")
	testworld.Equal(t, fmt.Sprintf("%s %s %s", list[0].Agents[0].ID, list[0].Agents[0].State, list[0].Agents[0].Detail), `agent1@build1 unknown on\x1b[2Jfire a b`, "its agent")
	needs := attention.List(attention.Sources{Now: now, Hosts: list})
	testworld.Equal(t, len(needs), 1, "items")
	text := strings.Join(attention.Lines(needs, now), "\n") + "\n" + needs[0].Next()
	for _, bad := range []string{"\x1b", "rm -rf", "reboot", "@other", "owner", "x;y"} {
		testworld.Lacks(t, text, bad, "the list")
	}
	testworld.Equal(t, needs[0].Command, "netsky approve abcde@build1", "its command")

	for _, bad := range []string{`{}`, `[]`, `"x"`, `{"list":"x"}`, `{"list":[1,null,[]],"more":-5}`} {
		mustHear(t, h, now, nil, nil, func(l *link.Host) { l.State.Agents, l.Needs = []byte(bad), []byte(bad) })
		list = testworld.Got(attention.Hosts(h, now))(t)
		testworld.Equal(t, len(list[0].Agents)+list[0].More, 0, bad)
	}
}

// Whatever a host fills in, no control of a terminal is shown, and what is shown can be read back.
func TestHostLies(t *testing.T) {
	h := mustTeam(t)
	const text = "x\x1b]0;evil\x07\u202e\u009b2J"
	for _, at := range []string{"9999-12-31T23:59:59Z", "0001-01-01T00:00:01Z"} {
		var evil store.Time
		testworld.Must(t, evil.UnmarshalJSON([]byte(`"`+at+`"`)))
		n := attention.Need{Code: "abcde", Agents: []agent.ID{"agent1"}, Options: []string{text}}
		q := attention.Need{Code: "fghij", Kind: attention.Question, Agents: []agent.ID{"owner", "agent1@laptop"}}
		a := view.Agent{ID: "agent1", State: agent.Idle}
		for _, one := range []any{&n, &a} {
			v := reflect.ValueOf(one).Elem()
			for i := range v.NumField() {
				switch f := v.Field(i); {
				case v.Type().Field(i).Name == "Code" || v.Type().Field(i).Name == "ID":
				case f.Type() == reflect.TypeFor[store.Time]():
					f.SetInt(int64(evil))
				case f.CanSet() && f.Kind() == reflect.String:
					f.SetString(text)
				}
			}
		}
		for _, behind := range []time.Duration{math.MinInt64, math.MaxInt64} {
			mustHear(t, h, now, nil, nil, func(l *link.Host) {
				l.State.Version, l.Behind = text, behind
				l.State.Agents = testworld.Got(json.Marshal(map[string]any{"list": []any{a, a}, "more": int64(math.MaxInt64)}))(t)
				l.Needs = testworld.Got(json.Marshal(map[string]any{"list": []any{n, n, q, q}, "more": int64(math.MaxInt64)}))(t)
			})
			list := testworld.Got(attention.Hosts(h, now))(t)
			needs := attention.List(attention.Sources{Now: now, Hosts: list})
			testworld.Equal(t, fmt.Sprint(len(list[0].Agents), list[0].More > 0, needs[0].Stale(now)), "2 true", "what it tells")
			var items []string
			for _, n := range needs {
				items = append(items, fmt.Sprint(n.Code, n.Kind, n.Agents))
			}
			slices.Sort(items) // they are listed by age
			testworld.EqualList(t, items, []string{"abcde@build1daemon[agent1@build1]", "fghij@build1daemon[]"}, "its items, no question of nobody among them")
			for _, v := range []any{list, needs} {
				var parsed any
				data := testworld.Got(json.Marshal(v))(t)
				testworld.Must(t, json.Unmarshal(data, &parsed))
				for s := range words(parsed) {
					testworld.Equal(t, envelope.Plain(s), s, "a text")
				}
			}
			testworld.Must(t, json.Unmarshal(testworld.Got(json.Marshal(list))(t), &[]attention.Host{}))
			testworld.Must(t, json.Unmarshal(testworld.Got(json.Marshal(needs))(t), &[]attention.Need{}))
		}
	}
}

// words are all strings in what json.Unmarshal has read.
func words(v any) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch v := v.(type) {
		case string:
			yield(v)
		case []any:
			for _, one := range v {
				words(one)(yield)
			}
		case map[string]any:
			for _, one := range v {
				words(one)(yield)
			}
		}
	}
}

// What does not fit is counted, and what is too long can be answered only there.
func TestTellBounds(t *testing.T) {
	var agents []view.Agent
	for i := range 3000 {
		agents = append(agents, one(agent.Clone(i+1), agent.Busy, func(a *view.Agent) { a.Detail = strings.Repeat("x", 5000) }))
	}
	h := mustTeam(t)
	long := attention.Need{Code: "abcde", Kind: attention.Approval, Agents: []agent.ID{"agent1"}, Text: strings.Repeat("x", 100<<10), Options: []string{attention.Allow, attention.Deny}, Digest: "d"}
	mustHear(t, h, now, agents, []attention.Need{long}, nil)
	list := testworld.Got(attention.Hosts(h, now))(t)
	testworld.Equal(t, len(list[0].Agents)+list[0].More, 3000, "agents, with those that did not fit")
	if len(list[0].Agents) < 100 {
		t.Errorf("only %d agents fit", len(list[0].Agents))
	}
	needs := attention.List(attention.Sources{Now: now, Hosts: list})
	testworld.Equal(t, needs[0].Command, "netsky --on build1 needs abcde", "what is too long")
	if len(testworld.Got(attention.TellAgents(agents))(t)) > 240<<10 {
		t.Error("more than a host can tell")
	}
}

// A host with agents, or for which mail waits, is missed once the others have been heard.
func TestSilentHost(t *testing.T) {
	silent := now.Add(-10 * time.Minute)
	one := make([]view.Agent, 1)
	s := attention.Sources{
		Now: now, Daemon: attention.DaemonRuns, Link: &link.Report{Connected: true, Seen: now, Since: silent, Hosts: map[string]link.HostReport{"build2": {Waiting: 1}}},
		Hosts: []attention.Host{
			{Name: "build1", Seen: store.At(silent), Agents: one}, {Name: "build2", Seen: store.At(silent)}, {Name: "build3", Seen: store.At(silent)},
			{Name: "build4", Agents: one}, {Name: "build5", Seen: store.At(now), Up: true, Agents: one},
		},
	}
	since := ": not heard of since " + silent.Local().Format(time.DateTime)
	testworld.Equal(t, attention.List(s)[0].Text, "build1"+since+"; build2"+since)
	s.Link.Since = now.Add(-time.Minute)
	testworld.Len(t, attention.List(s), 0, "items while the link has just come back")
}

func TestLinkNeeds(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tt := range map[string]struct {
		r    *link.Report
		want string
	}{
		"no team":            {nil, ""},
		"well":               {&link.Report{Connected: true, Seen: now, Since: ago(time.Hour)}, ""},
		"just lost":          {&link.Report{Seen: now, Since: ago(time.Minute), Why: "eof"}, ""},
		"lost":               {&link.Report{Seen: now, Since: ago(3 * time.Minute), Why: "eof", Hosts: map[string]link.HostReport{"build1": {Waiting: 2}, "build2": {Waiting: 1}}}, "the link to the team's server is down: eof|2 messages wait for build1, 1 message waits for build2"},
		"lost with a tunnel": {&link.Report{Seen: now, Since: ago(3 * time.Minute), Why: "eof", Troubles: map[string]link.Trouble{"tunnel": {Since: ago(3 * time.Minute), What: "no route"}}}, "is down: eof; tunnel: no route|"},
		"trouble":            {&link.Report{Connected: true, Seen: now, Since: ago(time.Hour), Troubles: map[string]link.Trouble{"mail out": {Since: ago(3 * time.Minute), What: "full"}}}, "the link has trouble: mail out: full|"},
		"trouble that ends":  {&link.Report{Connected: true, Seen: now, Since: ago(time.Hour), Troubles: map[string]link.Trouble{"mail out": {Since: ago(time.Minute), What: "full"}}}, ""},
		"not run":            {&link.Report{Connected: true, Seen: ago(3 * time.Minute)}, "the link to the other hosts is not run by the daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			list := attention.List(attention.Sources{Now: now, Daemon: attention.DaemonRuns, Link: tt.r})
			if tt.want == "" {
				testworld.Equal(t, len(list), 0, "items")
				return
			}
			title, otherwise, _ := strings.Cut(tt.want, "|")
			testworld.Contains(t, list[0].Line(), title, "the item")
			testworld.Contains(t, list[0].Otherwise, otherwise, "what happens otherwise")
			testworld.Contains(t, list[0].Next(), "netsky link", "the next step")
			r := *tt.r
			r.Why = "another reason"
			testworld.Equal(t, attention.List(attention.Sources{Now: now, Daemon: attention.DaemonRuns, Link: &r})[0].Digest, list[0].Digest, "it is still the same trouble")
			testworld.Equal(t, len(attention.List(attention.Sources{Now: now, Daemon: attention.DaemonGone, Link: tt.r})), 1, "items while there is no daemon")
		})
	}
	r := &link.Report{Connected: true, Seen: now, Since: ago(time.Hour), Troubles: map[string]link.Trouble{"tunnel to build1": {Since: ago(3 * time.Minute), What: "refused"}}}
	for heard, want := range map[time.Duration]int{time.Minute: 0, 4 * time.Minute: 1} {
		list := attention.List(attention.Sources{Now: now, Daemon: attention.DaemonRuns, Link: r, Hosts: []attention.Host{{Name: "build1", Seen: store.At(ago(heard))}}})
		testworld.Equal(t, len(list), want, "items, if the host was heard of "+heard.String()+" ago and its tunnel broke 3m ago")
	}
}
