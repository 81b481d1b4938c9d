package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	terminal "netsky/cli/view"
	"netsky/cost/breaker"
	"netsky/dashboard"
	"netsky/dashboard/access"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link"
	"netsky/link/team"
	"netsky/spawn"
	"netsky/store"
	"netsky/view"
	"netsky/work/merge"
)

// seen are agents as the dashboard gets them.
type seen []view.Agent

func (s seen) Agents(context.Context) ([]view.Agent, error) { return s, nil }

// needy makes a home with one item of each kind on the list of what needs the owner, and returns the states of its
// agents.
func needy(t *testing.T, h home.Dir) (list spawn.Statuses) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		testworld.Must(t, err)
	}
	long := time.Now().Add(-5 * time.Minute).Truncate(time.Millisecond)
	add := func(state agent.State, edit func(*spawn.Status)) {
		id := agent.Clone(len(list) + 1)
		st := spawn.Status{Agent: id, State: state, Since: long, Start: "s-" + string(id), Runtime: "demo", Wanted: true, Evidence: "its word"}
		st.Report = agent.Report{Start: st.Start, State: state}
		if edit != nil {
			edit(&st)
		}
		list = append(list, st)
	}
	fault := func(r agent.Reason, account string) func(*spawn.Status) {
		return func(st *spawn.Status) { st.Report.Fault = agent.Fault{Reason: r, Account: account, Text: "no"} }
	}
	add(agent.Waiting, nil) // asks for permission
	_, err := home.Approvals(h).Ask(agent.Approval{Agent: "agent1", Start: "s-agent1", Tool: "Bash", Text: "rm -rf x"})
	must(err)
	add(agent.Waiting, func(st *spawn.Status) { st.Detail, st.Dialog = "trust: go on?", "trust" })
	add(agent.Waiting, func(st *spawn.Status) { // without its receiver: no dialog
		st.Detail, st.Report.By = "its receiver has exited; restarting once idle", agent.ByWatchdog
	})
	add(agent.Blocked, fault(agent.Login, "a"))
	add(agent.Blocked, fault(agent.UsageLimit, "b"))
	add(agent.Blocked, fault(agent.ContextFull, "b"))
	add(agent.Starting, func(st *spawn.Status) { st.Detail = "its pane shows nothing" })
	add(agent.Hung, func(st *spawn.Status) { st.Detail, st.Report.State = "no sign of life for 30m: busy", agent.Busy })
	add(agent.CrashLooping, func(st *spawn.Status) { st.Restart = "restart in 30m (attempt 6)" })
	add(agent.Dead, func(st *spawn.Status) { st.Restart = "restart in 4s (attempt 3)" })
	add(agent.Down, nil)
	add(agent.Idle, func(st *spawn.Status) { st.Poison = 2 })
	add(agent.Idle, func(st *spawn.Status) { st.Forgotten = true })
	_, err = breaker.Of(h, breaker.Budget("agent12")).Bar(t.Context(), "agent12", "spent", "key", false, time.Time{})
	must(err)
	must(attention.SaveBlind(h, attention.Blind{SinceMS: 5, Why: "no fork"}))
	key := testworld.Got(testworld.Got(nkeys.CreateUser())(t).PublicKey())(t)
	must(h.Save(team.JoinDir+"/"+key+".json", team.Request{ID: "x", Code: "1234-5678", Name: "build1", Key: key, At: time.Now(), State: team.Pending}, false))
	must(testworld.Err(team.Found(h, "laptop", team.Server{})))
	key = testworld.Got(testworld.Got(nkeys.CreateUser())(t).PublicKey())(t)
	must(testworld.Err(team.Admit(h, team.Host{Name: "build2", Key: key, Role: team.Worker})))
	there := attention.List(attention.Sources{Approvals: []agent.Approval{{Code: "abcde", Agent: "agent1", Tool: "Bash", Text: "make"}}})
	must(h.Save(link.Heard+"/build2.json", link.Host{
		Name: "build2", Seen: time.Now(), State: link.State{Agents: testworld.Got(attention.TellAgents([]view.Agent{{ID: "agent1", State: agent.Waiting}}))(t)},
		Needs: testworld.Got(attention.TellNeeds(there))(t),
	}, false))
	must(h.Save(link.ReportFile, link.Report{Host: "laptop", Why: "it is away", Since: time.Now().Add(-time.Hour), Seen: time.Now()}, false))
	must(h.Save("state/escalation.json", []attention.Failure{{MS: 5, Subject: "x", Error: "no way"}}, false))
	must(h.Save(merge.File, map[string]any{"conflicts": []merge.Known{{Conflict: merge.Conflict{Agents: []agent.ID{"agent1", "agent2"}, Files: []string{"a.go"}}}}}, false))
	_, err = testworld.Bus(t, h, agent.Root, agent.Owner).Send(t.Context(), envelope.Envelope{ID: "q", From: agent.Root, To: agent.Owner, Kind: "question", Text: "which port?"})
	must(err)
	return list
}

// What `netsky needs`, status and the phone list is what the dashboard lists, in the same words, for every kind.
func TestSurfaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	list := needy(t, w.home)
	mistake := func() (text, then string) { return "line 1", "nothing is started" }
	want := testworld.Got(terminal.Needs(t.Context(), terminal.Options{Launcher: w.l, Mistake: mistake}, list, terminal.Daemon{State: "running", Wanted: true}))(t)
	kinds := make(map[attention.Kind]bool)
	for _, n := range want {
		kinds[n.Kind] = true
	}
	for _, k := range attention.Kinds() {
		if !kinds[k] {
			t.Errorf("no item of the kind %s is compared", k)
		}
	}
	if n := slices.IndexFunc(want, func(n attention.Need) bool { return n.Kind == attention.Blocked && slices.Contains(n.Agents, "agent3") }); n < 0 {
		t.Errorf("a lost receiver is not listed: %q", attention.Lines(want, time.Now()))
	}
	if n, ok := attention.Find(want, "abcde@build2"); !ok || len(n.Options) == 0 {
		t.Errorf("an item of another host is not listed, or can't be answered: %+v", n)
	}
	got := w.listed(mistake, view.All(w.home, list, nil))
	wantJSON, gotJSON := mustJSON(t, want), mustJSON(t, got)
	if len(got) != len(want) || gotJSON != wantJSON {
		t.Errorf("the dashboard lists\n%s\nwant\n%s", gotJSON, wantJSON)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	data := testworld.Got(json.MarshalIndent(v, "", " "))(t)
	return string(data)
}

// listed returns what a dashboard with these agents lists.
func (w *world) listed(mistake func() (text, then string), list []view.Agent) []attention.Need {
	w.Helper()
	token, err := access.Token(w.home)
	db, derr := store.Open(w.ctx, w.home)
	if err = errors.Join(err, derr); err != nil {
		w.Fatal(err)
	}
	defer db.Close()
	s := testworld.Got(dashboard.New(dashboard.Options{
		Home: w.home, Records: func() (dashboard.Reader, error) { return db, nil }, Agents: seen(list), Bus: w.bus, Token: token, Version: "v1", Mistake: mistake,
	}))(w)
	l := testworld.Got(s.Listen(w.ctx, "127.0.0.1:0"))(w)
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	defer func() {
		stop()
		<-ended
	}()
	r := testworld.Got(http.NewRequestWithContext(w.ctx, "GET", "http://"+l.Addr().String()+"/api/snapshot", nil))(w)
	r.Header.Set("Authorization", "Bearer "+token)
	a := testworld.Got(http.DefaultClient.Do(r))(w)
	defer a.Body.Close()
	var v struct{ Needs []attention.Need }
	testworld.Must(w, json.NewDecoder(a.Body).Decode(&v), "%s", a.Status)
	return v.Needs
}
