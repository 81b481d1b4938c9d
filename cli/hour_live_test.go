//go:build live

package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/work"
)

// try runs a command in the world, and returns what it says and its exit status.
func (w *world) try(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := w.command(ctx, name, args...).CombinedOutput()
	if failed := new(exec.ExitError); errors.As(err, &failed) && failed.ExitCode() > 0 {
		return string(out), failed.ExitCode()
	}
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out), 0
}

// A field is a repository that four clones, two on each real program, edit at the same time.
type field struct {
	*world
	t    *testing.T
	src  string
	made map[string]agent.ID // commits, by whom
}

func newField(t *testing.T) field {
	t.Helper()
	w, _ := mustCodex(t)
	w.addClaude(t)
	f := field{w, t, filepath.Join(w.dir, "src"), map[string]agent.ID{}}
	var text strings.Builder
	for n := range lines {
		fmt.Fprintf(&text, "line %d\n", n)
	}
	testworld.Must(t, os.WriteFile(filepath.Join(f.src, "plan"), []byte(text.String()), 0o600))
	f.git("init", "-q", "-b", "main")
	f.git("config", "user.name", "Ada")
	f.git("config", "user.email", "ada@example.org")
	f.git("add", "-A")
	f.git("commit", "-q", "-m", "plan")
	w.config(t, freely+"[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n"+
		fmt.Sprintf("[work]\ncheck = \"test $(wc -l <plan) = %d && ! grep '^[<=>]' plan\"\n", lines))
	for n, runtime := range []string{"claude", "codex", "claude", "codex"} {
		w.mustUp(t, "agent", fmt.Sprint(n+1), "--type", runtime, "--dir", f.src)
	}
	return f
}

func (f field) git(args ...string) string {
	f.t.Helper()
	return strings.TrimSpace(f.must(f.t, "git", append([]string{"-C", f.src}, args...)...))
}

// tell sends orders to clones, all at once, and returns the answers.
func (f field) tell(orders map[agent.ID]string, meanwhile func()) map[agent.ID]string {
	f.t.Helper()
	asked := make(map[agent.ID]string)
	var ids []string
	for id, order := range orders {
		asked[id] = strings.TrimSpace(f.must(f.t, "netsky", "channel", "send", string(id), "--kind", "brief", order))
		ids = append(ids, asked[id])
	}
	meanwhile()
	got := f.mustAnswer(f.t, ids...)
	answers := make(map[agent.ID]string)
	for id, m := range asked {
		answers[id] = strings.Join(got[m], "\n")
	}
	return answers
}

// edits has each of the clones change its line, and notes their commits.
func (f field) edits(round int, line func(n int) int, meanwhile func()) {
	f.t.Helper()
	orders := make(map[agent.ID]string)
	for n := 1; n <= 4; n++ {
		orders[agent.Clone(n)] = fmt.Sprintf("loop: shell sed -i '%ds/.*/agent%d in %d/' plan && git commit -q -a -m 'agent%[2]d in %[3]d'",
			line(n)+1, n, round)
	}
	answers := f.tell(orders, meanwhile)
	for id, order := range orders {
		// Not from the answer: a note that comes during the turn has the model talk of that.
		sha, done := f.committed(id, round)
		if !done && strings.Contains(answers[id], "cut off your turn") {
			// A real model would go on from what it finds; this one only echoes that it should.
			order = strings.Replace(order, "shell ", `shell rm "$(git rev-parse --git-dir)/index.lock" 2>/dev/null; `, 1)
			answers[id] = f.tell(map[agent.ID]string{id: order}, func() {})[id]
			sha, done = f.committed(id, round)
		}
		if !done {
			f.t.Fatalf("in round %d %s made no commit: %s", round, id, answers[id])
		}
		f.made[sha] = id
	}
}

// committed returns a clone's last commit, and whether it is that of the round.
func (f field) committed(id agent.ID, round int) (sha string, ok bool) {
	f.t.Helper()
	sha, subject, _ := strings.Cut(f.git("log", "-1", "--format=%H %s", "netsky/"+string(id)), " ")
	return sha, subject == fmt.Sprintf("%s in %d", id, round)
}

// lands checks and lands a clone's work. If it conflicts, the clone is asked to settle that first.
func (f field) lands(id agent.ID) (conflicted bool) {
	f.t.Helper()
	before := f.git("rev-parse", "main")
	said, status := f.try(f.t, "netsky", "check", string(id), "--yes")
	if conflicted = status == 3; conflicted {
		mustContain(f.t, "check", said, "plan")
		if now := f.git("rev-parse", "main"); now != before {
			f.t.Errorf("main moved from %s to %s by a check", before, now)
		}
		answer := f.tell(map[agent.ID]string{id: "loop: shell git merge -q --no-edit -X ours main"}, func() {})[id]
		if _, status := f.try(f.t, "git", "-C", f.src, "merge-base", "--is-ancestor", before, "netsky/"+string(id)); status != 0 {
			f.t.Fatalf("%s did not merge: %s", id, answer)
		}
		said, status = f.try(f.t, "netsky", "check", string(id))
	}
	if status != 0 {
		f.t.Fatalf("check %s: %d: %s", id, status, said)
	}
	if said, status = f.try(f.t, "netsky", "land", string(id)); status != 0 {
		f.t.Fatalf("land %s: %d: %s", id, status, said)
	}
	for l := range strings.Lines(f.git("diff", "-U0", before, "main")) {
		if strings.HasPrefix(l, "+") && !strings.HasPrefix(l, "+++") && !strings.HasPrefix(l, "+"+string(id)+" in ") {
			f.t.Errorf("landing %s brought %q", id, l)
		}
	}
	return conflicted
}

// Four clones on the real programs edit the same lines of one repository at the same time, and what
// they do lands, again and again; one is killed. Nobody overwrites anybody, all that landed is
// on the owner's branch, and what did not is on the clone's.
func TestAnHourOfWork(t *testing.T) {
	t.Parallel()
	f := newField(t)
	all := []agent.ID{"agent1", "agent2", "agent3", "agent4"}
	conflicts := 0
	const rounds = 4
	for round := range rounds {
		kill := func() {}
		if round == 1 {
			kill = func() { f.kill(all[rand.IntN(len(all))]) }
		}
		// agent1 and agent2 want the same line, agent3 and agent4 have one each.
		f.edits(round, func(n int) int { return 4 * (3*round + max(0, n-2)) % lines }, kill)
		order := rand.Perm(len(all))
		if round == rounds-1 {
			order = order[:2] // the others' work stays where it is
		}
		for _, at := range order {
			if f.lands(all[at]) {
				conflicts++
			}
		}
	}
	if conflicts < rounds-1 {
		t.Errorf("%d of the landings conflicted, want at least %d", conflicts, rounds-1)
	}
	unlanded := 0
	for sha, id := range f.made {
		if _, status := f.try(t, "git", "-C", f.src, "merge-base", "--is-ancestor", sha, "main"); status == 0 {
			continue
		}
		unlanded++
		if _, status := f.try(t, "git", "-C", f.src, "merge-base", "--is-ancestor", sha, "netsky/"+string(id)); status != 0 {
			t.Errorf("%s, a commit of %s, is lost", sha, id)
		}
	}
	if len(f.made) != rounds*len(all) || unlanded != 2 {
		t.Errorf("%d commits were made and %d did not land, want %d and 2", len(f.made), unlanded, rounds*len(all))
	}
	var shown struct{ Work []work.State }
	testworld.Must(t, json.Unmarshal([]byte(f.must(t, "netsky", "work", "--json")), &shown))
	for _, st := range shown.Work {
		of := 0
		for sha, id := range f.made {
			if _, status := f.try(t, "git", "-C", f.src, "merge-base", "--is-ancestor", sha, "main"); status != 0 && id == st.Agent {
				of++
			}
		}
		if st.Ahead < of || (of > 0) == st.Landed && st.Ahead > 0 {
			t.Errorf("%s has %d commits that did not land; netsky work shows %+v", st.Agent, of, st)
		}
	}
	testworld.Equal(t, f.git("status", "--porcelain"), "", "the owner's directory was changed")
	f.must(t, "netsky", "down", "--all", "--verify")
}

// kill kills what keeps a clone's program, and so the program.
func (f field) kill(id agent.ID) {
	f.t.Helper()
	h := testworld.Got(home.At(f.home))(f.t)
	k := testworld.Got(h.LoadKeeper(id))(f.t)
	testworld.Must(f.t, syscall.Kill(k.PID, syscall.SIGKILL))
}
