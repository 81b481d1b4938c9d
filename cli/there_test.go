package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"netsky/attention"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/link/server"
	"netsky/link/team"
)

// mustTeam returns two worlds whose daemons run and whose homes are a team: the owner's host laptop, which serves, and
// build1.
func mustTeam(t *testing.T) (laptop, build1 *world) {
	t.Helper()
	laptop, build1 = mustWorld(t), mustWorld(t)
	at := func(w *world) home.Dir { return testworld.Got(home.At(w.home))(t) }
	for _, w := range []*world{laptop, build1} {
		w.must(t, "netsky", "init")
	}
	testworld.Got(team.Found(at(laptop), "laptop", team.Server{}))(t)
	key := testworld.Got(team.MakeKey(at(build1)))(t)
	testworld.Got(team.Admit(at(laptop), team.Host{Name: "build1", Key: key.Public(), Role: team.Worker}))(t)
	document := testworld.Got(os.ReadFile(at(laptop).Path(team.TeamFile)))(t)
	self := testworld.Got(team.LoadSelf(at(laptop)))(t)

	testworld.Must(t, server.Settings{Listen: "127.0.0.1:0"}.Save(at(laptop)))
	laptop.must(t, "netsky", "up", "agent1", "--type", "demo")
	var s server.State
	testworld.WaitOr(t, func() (serving bool) {
		s, serving = server.Look(at(laptop))
		return serving
	}, func() string { return "the server is not ready: " + s.Error })
	self.Name, self.Server.Address = "build1", s.Address
	testworld.Must(t, at(build1).WriteFile(team.TeamFile, document, true))
	testworld.Must(t, at(build1).Save(team.SelfFile, self, true))
	build1.must(t, "netsky", "up", "agent1", "--type", "demo")
	return laptop, build1
}

// Agents of another host are shown, interrupted, ended, started, restarted and answered by their addresses.
func TestThere(t *testing.T) {
	t.Parallel()
	laptop, build1 := mustTeam(t)
	var said string
	testworld.WaitOr(t, func() bool {
		var status int
		status, said = laptop.says(t, "", "peek", "agent1@build1")
		return status == 0
	}, func() string { return "build1 is not asked: " + said })
	q := build1.ask(t, "agent1", "make all")
	for _, tt := range []struct {
		line   string
		status int
		want   string
	}{
		{"peek 1@build1 -n 5", 0, "demo"},
		{"peek 7@build1", 1, "agent7"},
		{"peek 1@build1 --follow", 2, "peek --follow: not a terminal"},
		{"peek 1@build1 2@build1", 2, "peek: takes one agent, not 2"},
		{"peek 1@nohost", 1, "nohost: no host of the team has that name; nothing was done"},
		{"peek 1@laptop", 2, "is on this host: write agent1"},
		{"down agent1 agent1@build1", 2, "agent1: names no agent of build1"},
		{"interrupt 1@build1", 0, "agent1@build1: no turn is running"},
		{"restart 1@build1", 0, "build1: "},
		{"down 1@build1 --json", 0, `"ended": 1`},
		{"down 1@build1", 0, "build1: agent1"},
		{"up 1@build1", 0, "build1: agent1 ready"},
		{"up 1@build1 --yes", 2, "is said at a terminal here"},
		{"up 1@build1 two", 2, "only an objective in quotes"},
		{"approve zzzzz@build1", 1, "zzzzz@build1: no such item"},
		{"agent 1@build1", 0, "build1: agent1 "},
		{"agent 1@build1 2", 2, "agent: needs one agent"},
		{"work retire 1@build1", 1, "agent1@build1: "},
		{"cron add @daily 1@build1 hello", 2, "`netsky --on build1 cron add …`, with agent1, adds it there"},
		{"loop 1@build1 30m hello", 2, "`netsky --on build1 loop …`, with agent1, adds it there"},
		{"loop 1@laptop 30m hello", 2, "agent1@laptop: is on this host: write agent1"},
		{"prompt 1@build1", 2, "`netsky --on build1 …` with agent1 does it there"},
	} {
		status, out := laptop.says(t, "", strings.Fields(tt.line)...)
		if status != tt.status || !strings.Contains(out, tt.want) {
			t.Errorf("%s: status %d, want %d: %q, want %q", tt.line, status, tt.status, out, tt.want)
		}
	}
	laptop.follows(t, "1@build1", "demo")
	status, out := build1.says(t, "", "peek", "agent1@laptop")
	if status != 1 || !strings.Contains(out, "build1 has the role worker") {
		t.Errorf("a worker asks: %d, %s", status, out)
	}

	testworld.Wait(t, "build1 tells what its agent asks", func() bool {
		return strings.Contains(laptop.must(t, "netsky", "needs"), q.Code+"@build1")
	})
	status, out = laptop.says(t, "", "approve", "agent1@build1")
	if status != 2 || !strings.Contains(out, "make all") || build1.given(t, q) != "" {
		t.Errorf("approve without a terminal: %d: %s", status, out)
	}
	testworld.Contains(t, laptop.must(t, "netsky", "approve", q.Code+"@build1"), "allowed: agent1@build1: Bash: make all")
	testworld.Equal(t, build1.given(t, q), "allowed")
	testworld.Wait(t, "the log here has what is in the log there", func() bool {
		return strings.Contains(laptop.must(t, "netsky", "log", "--actor", "1@build1"), "@build1 agent1@build1 ")
	})
	status, out = laptop.says(t, "", "approve", q.Code+"@build1", "--deny")
	if status == 0 || build1.given(t, q) != "allowed" {
		t.Errorf("answered again: %d: %s", status, out)
	}
	testworld.Contains(t, build1.must(t, "netsky", "log", "-n", "100"), "down agent1: asked for by owner@laptop")

	q = build1.ask(t, "agent1", "make install")
	testworld.WaitOr(t, func() bool {
		status, out = laptop.answersOnPage(t, q.Code+"@build1", "deny")
		return status == http.StatusOK
	}, func() string { return out })
	testworld.Equal(t, build1.given(t, q), "denied", "what the page has answered")

	laptop.must(t, "netsky", "down", "1@build1")
	testworld.WaitOr(t, func() bool { // as soon as build1 has told
		_, out = laptop.says(t, "", "ask", "1@build1", "hello", "--wait", "2s")
		return strings.Contains(out, "agent1@build1 is down, as build1 has told; `netsky up 1@build1` starts it")
	}, func() string { return "who asks an agent that is down is told " + out })
}

// follows follows an agent's screen, which shows that, until Ctrl-C.
func (w *world) follows(t *testing.T, who, shows string) {
	t.Helper()
	s := w.mustScreen(t, "far", "env PS1='$ ' sh")
	s.types("netsky peek "+who+" --follow; echo rc=$?", "Enter")
	s.shows(shows)
	s.keys("C-c")
	s.shows("rc=0")
}

// answersOnPage answers an item in the dashboard, as it is listed, and returns what that says.
func (w *world) answersOnPage(t *testing.T, code, word string) (status int, said string) {
	t.Helper()
	var list struct{ Needs []attention.Need }
	testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "needs", "--json")), &list))
	n, ok := attention.Find(list.Needs, code)
	if !ok {
		return 0, code + " is not listed"
	}
	h := testworld.Got(home.At(w.home))(t)
	at, token := testworld.Got(h.ReadFile("run/url", 1<<10))(t), testworld.Got(h.ReadFile("run/token", 1<<10))(t)
	body := testworld.Got(json.Marshal(map[string]string{"code": code, "digest": n.Digest, "answer": word}))(t)
	r := testworld.Got(http.NewRequestWithContext(t.Context(), "POST", strings.TrimSpace(string(at))+"/api/approval-answer", bytes.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/json")
	a := testworld.Got(http.DefaultClient.Do(r))(t)
	defer a.Body.Close()
	return a.StatusCode, string(testworld.Got(io.ReadAll(a.Body))(t))
}
