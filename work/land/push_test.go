//go:build live

package land_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/work/land"
	"netsky/work/record"
)

// The remote is a bare repository on disk, and gh and glab are stand-ins that write down how they were
// called: what the real ones do with it is not shown here.
func TestPush(t *testing.T) {
	t.Parallel()
	const url = "https://example.org/pull/7"
	for _, tt := range []struct {
		name, tool, script string
		remote             string // its name
		hook               string
		url, says          string
		state              string
	}{
		{name: "gh", tool: "gh", script: "echo Creating; echo " + url, url: url, state: record.Pushed},
		{name: "glab, as the remote is GitLab's", tool: "glab", remote: "gitlab", script: "echo " + url, url: url, state: record.Pushed},
		{name: "there is one already", tool: "gh", script: "echo 'a pull request already exists:'>&2; echo " + url + ">&2; exit 1", url: url, state: record.Pushed},
		{name: "gh refuses", tool: "gh", script: "echo no such repository >&2; exit 1", says: "no such repository", state: record.Pushed},
		{name: "none of them", says: "neither gh nor glab is installed", state: record.Pushed},
		{name: "pre-push refuses", tool: "gh", script: "echo " + url, hook: "echo tests first; exit 1", says: "not pushed: tests first", state: record.Void},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			bin, far := t.TempDir(), filepath.Join(t.TempDir(), tt.remote+"far.git")
			y.Git("init", "-q", "--bare", far)
			y.Git("remote", "add", "origin", far)
			y.desk.Environ = append(os.Environ(), "PATH="+bin, "AGENT_N=0")
			if tt.tool != "" {
				testworld.Program(t, filepath.Join(bin, tt.tool), "#!/bin/sh\nfor a; do echo \"[$a]\"; done > "+bin+"/called; echo $AGENT_N >> "+bin+"/called\n"+tt.script+"\n")
			}
			if tt.hook != "" {
				hook("pre-push", tt.hook)(y, y.Repo)
			}
			head := y.clone("agent1").Commit("Mend the fence", "b.txt", "b\n")
			before := y.Git("rev-parse", "main")
			l, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{PR: true, Unchecked: true})
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Fatalf("%v", err)
			}
			if tt.state == record.Pushed && err != nil && (!errors.Is(err, land.ErrNotYet) || !strings.Contains(advice.Of(err), "gh pr create --head netsky/agent1 --base main")) {
				t.Errorf("%v: %s", err, advice.Of(err))
			}
			got, _ := y.Try("--git-dir="+far, "rev-parse", "--verify", "-q", "netsky/agent1")
			if (got == head) != (tt.state == record.Pushed) || y.Git("rev-parse", "main") != before {
				t.Errorf("pushed %q", got)
			}
			if list, _ := y.records(); len(list) != 1 || list[0].State != tt.state || list[0].URL != tt.url || l.URL != tt.url || list[0].How != land.Push {
				t.Errorf("%+v", list)
			} else if _, err := y.desk.Undo(t.Context(), list[0].ID); err == nil {
				t.Error("undone")
			}
			if tt.tool != "" && tt.state == record.Pushed {
				called, _ := os.ReadFile(filepath.Join(bin, "called"))
				for _, want := range []string{"[netsky/agent1]", "[main]", "[Mend the fence]", "Netsky-Agent: agent1]\n\n"} {
					if !strings.Contains(string(called), want) {
						t.Errorf("%q is missing in\n%s", want, called)
					}
				}
			}
		})
	}
	y := newYard(t)
	y.clone("agent1").Commit("one", "b.txt", "b\n")
	testworld.Fails(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{PR: true, Unchecked: true})), "no remote")
}

func TestLandAll(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	y.Commit("lines", "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	// 1 and 3 share a file and merge, 4 conflicts with 1, 2 and 5 stand alone, 6 has no check, 7 nothing.
	for id, files := range map[agent.ID][]string{
		"agent1": {"a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n"}, "agent2": {"two", "2"}, "agent3": {"a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"},
		"agent4": {"a.txt", "four\n2\n3\n4\n5\n6\n7\n8\n9\n"}, "agent5": {"five", "5"}, "agent6": {"six", "6"},
	} {
		y.clone(id).Commit(string(id), files...)
	}
	y.clone("agent7")
	for _, id := range []agent.ID{"agent5", "agent1", "agent4", "agent3", "agent2"} {
		y.check(id)
	}
	var order []string
	all := func(o land.LandOptions) {
		t.Helper()
		order = nil
		testworld.Must(t, y.desk.LandAll(t.Context(), o, nil, func(o land.Outcome) {
			s := string(o.Agent)
			if conflict := new(land.ConflictError); errors.As(o.Err, &conflict) {
				s += " conflict"
			} else if o.Err != nil {
				s += " refused"
			}
			order = append(order, s)
		}))
	}
	all(land.LandOptions{})
	if got, want := strings.Join(order, ", "), "agent6 refused, agent5, agent2, agent1, agent4 conflict, agent3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if y.Read("a.txt") != "one\n2\n3\n4\n5\n6\n7\n8\nnine\n" || y.Read("two")+y.Read("five")+y.Read("six") != "25" || y.told["agent4"] == "" {
		t.Errorf("%q %v", y.Read("a.txt"), y.told)
	}
	_, checks := y.records()
	if len(checks) != 5+3 { // agent5's tree was as it was checked
		t.Errorf("%d checks: %v", len(checks), *y.said)
	}
	all(land.LandOptions{Unchecked: true})
	if got, want := strings.Join(order, ", "), "agent4 conflict, agent6"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	y.tidy()
}

// What the branch that main follows has got, as one commit, is not landed a second time.
func TestLandedUpstream(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	far := filepath.Join(t.TempDir(), "far.git")
	y.Git("clone", "-q", "--bare", y.Dir, far)
	y.Git("remote", "add", "origin", far)
	y.Git("fetch", "-q", "origin")
	y.Git("branch", "-q", "--set-upstream-to", "origin/main")
	at := y.clone("agent1")
	at.Commit("one", "b.txt", "b\n")
	at.Commit("two", "b.txt", "b\nb\n")
	there := testworld.NewRepo(t, filepath.Join(t.TempDir(), "there"))
	there.Git("fetch", "-q", far, "main")
	there.Git("reset", "-q", "--hard", "FETCH_HEAD")
	there.Commit("other", "c.txt", "c\n")
	there.Commit("Squashed (#1)", "b.txt", "b\nb\n")
	there.Git("push", "-q", far, "HEAD:main")
	y.Git("fetch", "-q", "origin")
	before := y.Git("rev-parse", "main")
	_, err := y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})
	if !errors.Is(err, land.ErrNothing) || !strings.Contains(err.Error(), "origin/main, which it follows, has all of it") || advice.Of(err) != "`git pull` on main brings it there" {
		t.Errorf("%v: %s", err, advice.Of(err))
	}
	at.Commit("three", "d.txt", "d\n")
	testworld.Equal(t, y.Git("rev-parse", "main"), before, "main")
	testworld.Equal(t, testworld.Err(y.desk.Land(t.Context(), "agent1", land.LandOptions{Unchecked: true})), nil)
}

// A git that waits for a person, as for a passphrase, does so with a word.
func TestWaitsForSomebody(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"push", "commit"} {
		y := newYard(t)
		y.clone("agent1").Commit("one", "b.txt", "b\n")
		gate := filepath.Join(t.TempDir(), "gate")
		if out, err := exec.Command("mkfifo", gate).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		o := land.LandOptions{Unchecked: true, How: land.Squash}
		if verb == "push" {
			bare := filepath.Join(t.TempDir(), "bare.git")
			y.Git("init", "-q", "--bare", bare)
			y.Git("remote", "add", "origin", bare)
			y.desk.Environ = append(y.desk.Environ, "PATH=/nowhere")
			o.PR = true
			hook("pre-push", "read x < "+gate)(y, y.Repo)
		} else {
			hook("pre-commit", "read x < "+gate)(y, y.Repo)
		}
		y.desk.Slow = time.Millisecond
		said := make(chan string, 10)
		y.desk.Say = func(format string, args ...any) {
			if text := fmt.Sprintf(format, args...); strings.Contains(text, "waiting for you") {
				said <- text
				_ = os.WriteFile(gate, []byte("go\n"), 0)
			}
		}
		_, err := y.desk.Land(t.Context(), "agent1", o)
		if got := <-said; (err != nil) != o.PR || err != nil && !strings.Contains(err.Error(), "neither gh nor glab") {
			t.Errorf("%s: %q, %v", verb, got, err)
		}
	}
}
