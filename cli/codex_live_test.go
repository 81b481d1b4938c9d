//go:build live

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/proc"
	"netsky/internal/testworld"
)

// mustCodex is a world in which the real Codex is installed, and speaks to a
// model on the loopback.
func mustCodex(t testing.TB) (*world, *openai.Server) {
	t.Helper()
	w := mustWorld(t)
	return w, w.addCodex(t)
}

func (w *world) addCodex(t testing.TB) *openai.Server {
	t.Helper()
	program := os.Getenv("NETSKY_TEST_CODEX")
	if program == "" {
		t.Fatal("NETSKY_TEST_CODEX is not set: scripts/test installs Codex and sets it")
	}
	model := testworld.Got(openai.Start())(t)
	t.Cleanup(func() { model.Close() })
	home := filepath.Join(w.dir, "c")
	testworld.Must(t, os.Mkdir(home, 0o700))
	testworld.Must(t, model.WriteHome(home))
	w.prepend(filepath.Dir(program))
	w.env = append(w.env, openai.Env(home)...)
	return model
}

// refused runs a command that must exit with status 2 and returns what it says.
func (w *world) refused(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := w.command(t.Context(), name, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 {
		t.Errorf("%s %s: %v, want exit status 2\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Nobody is put to work with more power than somebody has said: without an
// answer on record and without a terminal to ask on, nothing starts.
func TestCodexConsent(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	out := w.refused(t, "netsky", "up", "1", "--type", "codex")
	mustContain(t, "the refusal", out, "sandbox", "approval", "netsky.toml", "--yes")
	testworld.Contains(t, w.must(t, "netsky", "status"), "no agents yet", "refused, and yet there are agents")
	out = w.mustUp(t, "up", "0", "--type", "codex", "--yes")
	mustContain(t, "up", out, "agent0         ready     codex", "may do everything you can do, without asking")
	data, err := os.ReadFile(filepath.Join(w.home, home.ConfigFile))
	testworld.Must(t, err)
	mustContain(t, "netsky.toml", string(data), "[codex]", `sandbox = "danger-full-access"`, `approval = "never"`)
}

// A question of the model's waits for the owner, is answered once, by its code,
// and never by an agent.
func TestCodexApproval(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	config := "[codex]\nsandbox = \"workspace-write\"\napproval = \"on-request\"\n"
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, home.ConfigFile), []byte(config), 0o600))
	out := w.mustUp(t, "agent", "1", "--type", "codex")
	mustContain(t, "agent", out, "may edit in its directory; ask for the rest")
	file := filepath.Join(w.dir, "asked")
	for _, allow := range []bool{false, true} {
		id := strings.TrimSpace(w.must(t, "netsky", "channel", "send", "agent1", "loop: ask touch "+file))
		code := w.mustApproval(t, "touch "+file)
		w.mustShow(t, "status", "waiting", "touch "+file)
		w.mustShow(t, "inbox", "approval", "netsky approve "+code)
		cmd := w.command(t.Context(), "netsky", "approve", code)
		cmd.Env = append(cmd.Env, "AGENT_N=0")
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("agent0 answered for the owner:\n%s", out)
		}
		args := []string{"approve", code}
		if !allow {
			args = append(args, "--deny")
		}
		w.must(t, "netsky", args...)
		w.mustAnswer(t, id)
		if _, err := os.Stat(file); (err == nil) != allow {
			t.Errorf("allow %v: the command ran: %v", allow, err == nil)
		}
		if out, err := w.command(t.Context(), "netsky", "approve", code).CombinedOutput(); err == nil {
			t.Errorf("the code counted twice:\n%s", out)
		}
		decision := map[bool]string{true: "allowed", false: "denied"}[allow] + " by the owner, with netsky approve: shell: "
		for _, verb := range [][]string{{"log"}, {"show", id}, {"show", "agent1"}} {
			testworld.Wait(t, decision+" in "+strings.Join(verb, " "), func() bool {
				return strings.Contains(w.must(t, "netsky", verb...), decision)
			})
		}
	}
}

// Who waits for an answer is told how to let the agent go on.
func TestAskNamesTheApproval(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	config := "[codex]\nsandbox = \"workspace-write\"\napproval = \"on-request\"\n"
	testworld.Must(t, os.WriteFile(filepath.Join(w.home, home.ConfigFile), []byte(config), 0o600))
	w.mustUp(t, "agent", "1", "--type", "codex")
	file := filepath.Join(w.dir, "asked")
	id := strings.TrimSpace(w.must(t, "netsky", "channel", "send", "agent1", "loop: ask touch "+file))
	code := w.mustApproval(t, "touch "+file)
	status, out := w.within(t, nil, "", "netsky", "ask", "agent1", "and then?", "--wait", "3s")
	testworld.Equal(t, status, 3, "exit status")
	mustContain(t, "ask", out, "agent1 asks for permission to use shell: ", "`netsky approve "+code+"` allows it once, with --deny it denies it")
	if n := strings.Count(out, "asks for permission"); n != 1 {
		t.Errorf("said %d times:\n%s", n, out)
	}
	w.must(t, "netsky", "approve", code)
	w.mustAnswer(t, id)
}

// mustShow runs a verb until it has printed all of these.
func (w *world) mustShow(t *testing.T, verb string, want ...string) {
	t.Helper()
	all := ""
	testworld.WaitOr(t, func() bool {
		all += w.must(t, "netsky", strings.Fields(verb)...)
		return !slices.ContainsFunc(want, func(s string) bool { return !strings.Contains(all, s) })
	}, func() string { return fmt.Sprintf("%q of %s:\n%s", want, verb, all) })
}

func (w *world) mustApproval(t *testing.T, text string) (code string) {
	t.Helper()
	testworld.Wait(t, fmt.Sprintf("a question about %q", text), func() bool {
		var v struct{ Approvals []agent.Approval }
		testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "approvals", "--json")), &v))
		for _, p := range v.Approvals {
			if strings.Contains(p.Text, text) {
				code = p.Code
			}
		}
		return code != ""
	})
	return code
}

// mustAnswer waits for the answers to messages and returns their texts, by the
// id answered. Each must have exactly one.
func (w *world) mustAnswer(t *testing.T, ids ...string) map[string][]string {
	t.Helper()
	var got map[string][]string
	missing := 0
	testworld.WaitOr(t, func() bool {
		w.must(t, "netsky", "status") // must not mind
		var v struct {
			Messages []struct {
				InReplyTo string `json:"in_reply_to"`
				Text      string
			}
		}
		testworld.Must(t, json.Unmarshal([]byte(w.must(t, "netsky", "inbox", "--all", "--json")), &v))
		got = make(map[string][]string)
		for _, m := range v.Messages {
			got[m.InReplyTo] = append(got[m.InReplyTo], m.Text)
		}
		missing = 0
		for _, id := range ids {
			if len(got[id]) == 0 {
				missing++
			}
		}
		return missing == 0
	}, func() string {
		return fmt.Sprintf("%d of %d are not answered\n%s\n%s\n%s", missing, len(ids), w.must(t, "netsky", "status", "-v"),
			w.must(t, "netsky", "peek", "agent1"), w.must(t, "netsky", "channel", "ls"))
	})
	return got
}

// The manager, the repair agent and two clones on Codex: what the owner asks is
// handed to both clones, and their answers come back.
func TestCodexConstellation(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	out := w.mustUp(t, "up", "2", "--type", "codex", "--yes")
	for _, id := range []string{"agent0", "agent1", "agent2", "agentinfinity"} {
		mustContain(t, "up", out, fmt.Sprintf("%-14s ready     codex", id))
	}
	if n := len(model.Requests()); n != 0 {
		t.Errorf("bringing them up asked the model %d times", n)
	}
	task := `loop: shell netsky ask agent1 "loop: say the first half"; netsky ask agent2 "loop: say the second half"`
	out = w.must(t, "netsky", "ask", "agent0", task)
	mustContain(t, "agent0's answer", out, "the first half", "the second half")

	id := strings.TrimSpace(w.must(t, "netsky", "channel", "send", "agent1", "loop: sleep 60s"))
	waitState(t, w, "agent1", agent.Busy)
	w.must(t, "netsky", "interrupt", "agent1")
	for _, verb := range [][]string{{"log", "--actor", "agent1"}, {"show", id}} {
		mustContain(t, strings.Join(verb, " "), w.must(t, "netsky", verb...), "turn ended by owner, with netsky interrupt")
	}
	if got := w.mustAnswer(t, id)[id]; len(got) != 1 || !strings.Contains(got[0], "interrupted") {
		t.Errorf("an interrupted turn was answered by %q", got)
	}
	w.must(t, "netsky", "down", "--all", "--verify")
}

func waitState(t *testing.T, w *world, id agent.ID, want agent.State) {
	t.Helper()
	h := testworld.Got(home.At(w.home))(t)
	testworld.Wait(t, fmt.Sprintf("%s to be %s", id, want), func() bool { r, err := h.LoadReport(id); return err == nil && r.State == want })
}

// Fifty messages to each of two clones while their sidecars, app-servers and
// screens are killed: nothing lost, nothing answered twice, and the thread
// remembers what it was told.
func TestCodexKilled(t *testing.T) {
	t.Parallel()
	w, _ := mustCodex(t)
	w.mustUp(t, "up", "2", "--type", "codex", "--yes")
	const each = 50
	var ids []string
	for i := range each {
		for _, to := range []string{"agent1", "agent2"} {
			ids = append(ids, strings.TrimSpace(w.must(t, "netsky", "channel", "send", to, fmt.Sprintf("message %d", i))))
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	killed := map[string]int{}
	for range 12 {
		id := []agent.ID{"agent1", "agent2"}[random.IntN(2)]
		killed[w.killOne(t, random, id)]++
		w.mustUp(t, "agent", id.N(), "--type", "codex") // starts it again if it is dead
	}
	got := w.mustAnswer(t, ids...)
	for _, id := range ids {
		if len(got[id]) != 1 {
			t.Errorf("%s: answered %d times: %q", id, len(got[id]), got[id])
		}
	}
	for _, to := range []string{"agent1", "agent2"} {
		out := w.must(t, "netsky", "ask", to, "loop: users")
		var users int
		if _, err := fmt.Sscanf(out, "users: %d", &users); err != nil || users < each {
			t.Errorf("%s remembers %d messages of %d: %s", to, users, each, out)
		}
	}
	t.Logf("%d sent, %d answered, killed %v", len(ids), len(ids), killed)
}

// killOne kills the agent's sidecar or one of the processes below it, and says
// which it was.
func (w *world) killOne(t *testing.T, random *rand.Rand, id agent.ID) string {
	t.Helper()
	h := testworld.Got(home.At(w.home))(t)
	k := testworld.Got(h.LoadKeeper(id))(t)
	list := testworld.Got(proc.Descendants(k.PID, ""))(t)
	list = append([]proc.Process{k.Process}, list...)
	p := list[random.IntN(len(list))]
	name := "a process below"
	if args, err := exec.Command("ps", "-o", "args=", "-p", fmt.Sprint(p.PID)).Output(); err == nil {
		switch text := string(args); {
		case strings.Contains(text, "--serve"):
			name = "sidecar"
		case strings.Contains(text, "app-server"):
			name = "app-server"
		case strings.Contains(text, "resume"):
			name = "screen"
		}
	}
	syscall.Kill(p.PID, syscall.SIGKILL) // gone already: killed all the same
	testworld.Wait(t, fmt.Sprintf("the end of %s, process %d, by SIGKILL", name, p.PID), func() bool { return !p.Alive() })
	return name
}

// A model on Codex has netsky's tools, as its own agent and nobody else.
func TestCodexTools(t *testing.T) {
	t.Parallel()
	w, model := mustCodex(t)
	w.mustUp(t, "agent", "0", "--type", "demo")
	w.mustUp(t, "agent", "1", "--type", "codex", "--yes")
	out := w.must(t, "netsky", "ask", "agent1", `loop: call mcp__agent send {"to":"agent0","text":"by tool"}`)
	mustContain(t, "the tool's result", out, "sent to agent0")
	list := w.must(t, "netsky", "channel", "ls", "agent0")
	mustContain(t, "agent0's mail", list, "agent1", "by tool")
	out = w.must(t, "netsky", "ask", "agent1", `loop: call mcp__agent send {"to":"owner","text":"unasked"}`)
	mustContain(t, "the refusal", out, "owner")
	testworld.Lacks(t, w.must(t, "netsky", "inbox", "--all"), "    unasked", "a clone wrote to the owner unasked")
	// What is handed to it by hand beside its own Codex.
	out = w.must(t, "netsky", "codex", "1", "--prompt", "loop: say asked beside it")
	mustContain(t, "a prompt beside it", out, "sent over the bus as prompt-", "its own Codex is running and will process it; the answer goes to agent0's inbox")
	w.mustShow(t, "channel ls agent0", "asked beside it")
	drained, err := w.command(t.Context(), "netsky", "codex", "1", "--drain").CombinedOutput()
	testworld.Fails(t, err, "", "a drain beside it: exit status 0")
	mustContain(t, "a drain beside it", string(drained), "netsky: agent1: is running and takes its mail itself (it runs on codex)")
	if n := len(model.Requests()); n < 4 {
		t.Errorf("%d requests, want one and another after each tool", n)
	}
}
