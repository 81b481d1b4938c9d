package spawn_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn"
)

// environ is the environment that a process was started with.
func environ(t *testing.T, pid int) map[string]string {
	t.Helper()
	data := testworld.Got(os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)))(t)
	env := make(map[string]string)
	for v := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(v, "=")
		if _, twice := env[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		env[name] = value
	}
	return env
}

// An agent's program inherits the environment of the up that started it, less
// what says which terminal, session or agent that ran in.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "TMUX=/tmp/x,1,0", "TMUX_PANE=%9", "TMUX_TMPDIR=/nowhere", "STY=1.x", "CLAUDECODE=1", "CLAUDECODE_X=1",
		"CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ID=s", "CLAUDE_CODE_MESSAGING_TOKEN=m", "CLAUDE_PID=1", "AI_AGENT=claude",
		"CLAUDE_CODE_USE_BEDROCK=1", "CLAUDE_CONFIG_DIR=/mine", "CODEX_THREAD_ID=t", "AGENT_N=7", "NETSKY_START=other", "NETSKY_PROMPT_FILE=/other",
		"NETSKY_HOME=/other", "MINE=yes", "GIT_DIR=/other/.git", "GIT_WORK_TREE=/other", "GIT_INDEX_FILE=/other/.git/index", "GIT_AUTHOR_NAME=me")
	testworld.Got(w.l.Up(w.ctx, spawn.UpOptions{Plans: w.plans(stays(), "agent3", "agentinfinity"), Ticker: true}))(t)
	for name, n := range map[string]string{"agent3": "3", "agentinfinity": "infinity"} {
		st := w.status(name)
		env := environ(t, st.PID)
		for v := range env {
			configures := v == "CLAUDE_CODE_USE_BEDROCK" || v == "CLAUDE_CONFIG_DIR" // and so is the person's
			if strings.HasPrefix(v, "TMUX") || strings.HasPrefix(v, "CLAUDE") && !configures || v == "STY" || v == "GIT_DIR" || v == "GIT_WORK_TREE" || v == "GIT_INDEX_FILE" || v == "CODEX_THREAD_ID" || v == "AI_AGENT" {
				t.Errorf("%s: inherits %s", name, v)
			}
		}
		for v, want := range map[string]string{
			"MINE": "yes", "GIT_AUTHOR_NAME": "me", "CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CONFIG_DIR": "/mine", "AGENT_N": n, "NETSKY_START": st.Start, "NETSKY_HOME": w.home.Root(),
			"NETSKY_PROMPT_FILE": w.home.Path(home.PromptFile(agent.ID(name))), "PWD": w.work(),
			"PATH": filepath.Dir(netsky) + ":" + os.Getenv("PATH"), "TERM": "tmux-256color",
		} {
			testworld.Equal(t, env[v], want, "%s: %s", name, v)
		}
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", st.PID))
		if err != nil || dir != w.work() {
			t.Errorf("%s: runs in %s, %v", name, dir, err)
		}
		prompt, err := os.ReadFile(env["NETSKY_PROMPT_FILE"])
		if err != nil || !bytes.Contains(prompt, []byte(name)) {
			t.Errorf("%s: prompt %q %v", name, prompt, err)
		}
	}
	// What runs in the panes must not be taken for another agent's process.
	for _, session := range []string{"agent3", "agentinfinity", "netsky-ticker"} {
		if start := environ(t, w.paneProcess(session).PID)["NETSKY_START"]; start == "other" {
			t.Errorf("%s: its first process carries another agent's start", session)
		}
	}
}

// A prompt of any length, and any environment, goes by file and not by tmux.
func TestLongPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BIG="+strings.Repeat("x", 100<<10))
	plans := w.plans(stays(), "agent1")
	plans[0].Prompt.Addenda = append(plans[0].Prompt.Addenda, layer("long", strings.Repeat("a long text; ", 20<<10)))
	ends, err := w.l.Up(w.ctx, spawn.UpOptions{Plans: plans})
	if err != nil || ends[0].Step != spawn.StepReady {
		t.Fatalf("%v %v", ends, err)
	}
	env := environ(t, w.status("agent1").PID)
	testworld.Equal(t, len(env["BIG"]), 100<<10, "bytes of BIG")
	if info, err := os.Stat(env["NETSKY_PROMPT_FILE"]); err != nil || info.Size() < 200<<10 {
		t.Errorf("prompt %v %v", info, err)
	}
}

// What is secret in the environment stands in no argument list and in no file
// that others can read, whatever the umask.
func TestSecrets(t *testing.T) {
	const canary = "sk-canary-4711"
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	w := newWorld(t, "API_KEY="+canary)
	// The server is there before: what up adds to it is not the server's own copy.
	w.upReady(demo{}, "agent0")
	plans := w.plans(demo{}, "agent1")
	w.l.Environ = append(slices.Clone(w.l.Environ), "SECOND_KEY="+canary+"-second")
	plans[0].Prompt.Addenda = append(plans[0].Prompt.Addenda, layer("secret", canary))
	if ends, err := w.l.Up(w.ctx, spawn.UpOptions{Plans: plans, Ticker: true}); err != nil || ends[0].Step != spawn.StepReady {
		t.Fatalf("%v %v", ends, err)
	}
	testworld.Equal(t, environ(t, w.status("agent1").PID)["SECOND_KEY"], canary+"-second", "the program has no SECOND_KEY")
	for _, pid := range w.pids(t) {
		argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // gone meanwhile: shows nothing
		if bytes.Contains(argv, []byte(canary)) {
			t.Errorf("process %d: %q", pid, argv)
		}
	}
	for _, args := range [][]string{
		{"show-environment", "-t", "=agent1"}, {"show-environment", "-t", "=netsky-ticker"}, {"show-options", "-g"}, {"show-options", "-s"},
		{"list-panes", "-a", "-F", "#{pane_start_command} #{session_name}"},
	} {
		if out := w.tmux(args...); strings.Contains(out, canary) {
			t.Errorf("tmux %s: %s", args[0], out)
		}
	}
	if out := w.tmux("show-environment", "-g"); strings.Contains(out, canary+"-second") {
		t.Errorf("up added to the server's environment:\n%s", out)
	}
	err := filepath.WalkDir(w.home.Root(), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v", path, info.Mode())
		}
		return nil
	})
	testworld.Equal(t, err, nil)
}

// pids are all processes of the world: the server's and those below it.
func (w *world) pids(t *testing.T) (list []int) {
	t.Helper()
	server := testworld.Got(strconv.Atoi(w.tmux("display-message", "-p", "#{pid}")))(t)
	below, err := proc.Descendants(server, "NETSKY_HOME="+w.home.Root())
	if err != nil || len(below) < 4 {
		t.Fatalf("%v %v", below, err)
	}
	for _, p := range below {
		list = append(list, p.PID)
	}
	return append(list, server)
}
