//go:build live

package cost_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netsky/cost"
	"netsky/internal/loopmodel"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// mustProgram is the path of a real program that the tests use.
func mustProgram(tb testing.TB, variable string) string {
	tb.Helper()
	program := os.Getenv(variable)
	if program == "" {
		tb.Fatalf("%s is not set: run scripts/test, which installs the program that these tests use and says where it is", variable)
	}
	return program
}

// killing reads in a process of its own, which is killed and started again all the time, until the
// returned function is called. That returns how often.
func (w *world) killing() (stop func() int) {
	done, ended, kills := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(ended)
		for {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "METER_HOME="+w.home.Root())
			if err := cmd.Start(); err != nil {
				w.Error(err)
				return
			}
			kill := time.NewTimer(time.Duration(30+rand.IntN(250)) * time.Millisecond)
			select {
			case <-kill.C:
			case <-done:
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
			kills++
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	return func() int { close(done); <-ended; return kills }
}

// spend gives each answer of a model its own usage.
func spend(n *atomic.Int64) *loopmodel.Usage {
	i := int(n.Add(1))
	return &loopmodel.Usage{Input: 3 + i, Output: 7 + 2*i, CacheRead: 100 * (i % 7), CacheWrite: i % 5}
}

// mustAgree fails unless the records have what the model itself has counted.
func (w *world) mustAgree(spent loopmodel.Usage, kills int) {
	w.Helper()
	w.mustRead()
	all, err := cost.Records{DB: w.db}.Sum(context.Background(), cost.ByAll, cost.Filter{})
	if err != nil || len(all) != 1 {
		w.Fatalf("%+v, %v", all, err)
	}
	want := cost.Usage{Input: int64(spent.Input), Output: int64(spent.Output), CacheRead: int64(spent.CacheRead), CacheWrite: int64(spent.CacheWrite)}
	testworld.Equal(w, all[0].Usage, want, "on record")
	w.Logf("%d requests, %d tokens, %.4f stated, %d kills of the reader", all[0].Requests, all[0].Usage.Total(), float64(all[0].Stated)/1e9, kills)
}

const turnsEach = 100

// What real Claude Code writes agrees with what its model has counted, to the token, though both
// it and the reader are killed again and again. What a program was killed before writing is the
// only thing that can't be counted: so it is killed while the model has not answered yet.
func TestClaude(t *testing.T) {
	if testing.Short() {
		t.Skip("100 turns of the real program")
	}
	t.Parallel()
	program := mustProgram(t, "NETSKY_TEST_CLAUDE")
	w := mustWorld(t)
	model := testworld.Got(anthropic.Start())(w)
	defer model.Close()
	var answers atomic.Int64
	model.Handle(func(q anthropic.Request) *anthropic.Reply {
		if strings.Contains(q.Last(), "hold") {
			return &anthropic.Reply{Delay: time.Minute}
		}
		r := anthropic.Directives(q)
		r.Usage = spend(&answers)
		return r
	})
	config := filepath.Join(w.home.Root(), "claude")
	work := filepath.Join(w.home.Root(), "work")
	testworld.Must(w, os.MkdirAll(work, 0o700))
	testworld.Must(w, anthropic.WriteHome(config, work))
	w.mustStart("agent1", "claude", thread, "CLAUDE_CONFIG_DIR="+config)
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + config, anthropic.Sandbox}, model.Env(config)...)

	stop := w.killing()
	for turn := 0; turn < turnsEach; {
		resume := "--session-id"
		if turn > 0 {
			resume = "--resume"
		}
		cmd := exec.CommandContext(t.Context(), program, "-p", "--permission-mode", "bypassPermissions", resume, thread,
			"--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
		cmd.Dir, cmd.Env = work, env
		in := testworld.Got(cmd.StdinPipe())(w)
		out := testworld.Got(cmd.StdoutPipe())(w)
		testworld.Must(w, cmd.Start())
		from := bufio.NewReader(out)
		say := func(text string) {
			testworld.Must(w, json.NewEncoder(in).Encode(map[string]any{"type": "user", "message": map[string]string{"role": "user", "content": text}}))
		}
		for range 5 + rand.IntN(10) {
			text := fmt.Sprintf("turn %d.", turn)
			if turn%4 == 0 {
				text += "\nloop: shell echo " + text
			}
			say(text)
			w.mustResult(from)
			turn++
		}
		// What has been said is in the file before the next request is made.
		if turn%2 == 0 {
			before := len(model.Requests())
			say("hold")
			testworld.Wait(t, "the request that is held", func() bool { return len(model.Requests()) > before })
			testworld.Must(w, cmd.Process.Kill())
		}
		in.Close()
		io.Copy(io.Discard, from)
		_ = cmd.Wait() // possibly killed
	}
	w.mustAgree(model.Spent(), stop())
}

// mustResult reads until a turn has ended.
func (w *world) mustResult(from *bufio.Reader) {
	w.Helper()
	for {
		line := testworld.Got(from.ReadBytes('\n'))(w)
		var l struct {
			Type    string
			IsError bool `json:"is_error"`
		}
		if json.Unmarshal(line, &l) == nil && l.Type == "result" {
			if l.IsError {
				w.Fatalf("%s", line)
			}
			return
		}
	}
}

// The same with real Codex.
func TestCodex(t *testing.T) {
	if testing.Short() {
		t.Skip("100 turns of the real program")
	}
	t.Parallel()
	program := mustProgram(t, "NETSKY_TEST_CODEX")
	w := mustWorld(t)
	model, err := openai.Start()
	testworld.Must(w, err)
	defer model.Close()
	var answers atomic.Int64
	model.Handle(func(q openai.Request) *openai.Reply {
		if strings.Contains(q.Last(), "hold") {
			return &openai.Reply{Delay: time.Minute}
		}
		r := openai.Directives(q)
		r.Usage = spend(&answers)
		return r
	})
	codexHome := filepath.Join(w.home.Root(), "codex")
	testworld.Must(w, model.WriteHome(codexHome))
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home.Root()}, openai.Env(codexHome)...)
	run := func(more ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"exec"}, more...)...)
		cmd.Dir, cmd.Env = w.home.Root(), env
		return cmd
	}
	var began struct {
		Thread string `json:"thread_id"`
	}
	out, err := run("--skip-git-repo-check", "--json", "turn 0.").Output()
	testworld.Must(w, err)
	for line := range bytes.Lines(out) {
		if strings.Contains(string(line), "thread.started") {
			testworld.Must(w, json.Unmarshal(line, &began))
		}
	}
	w.mustStart("agent2", "codex", began.Thread, openai.Env(codexHome)...)

	stop := w.killing()
	for turn := 1; turn < turnsEach; turn++ {
		text := fmt.Sprintf("turn %d.", turn)
		if turn%4 == 0 {
			text += "\nloop: shell echo " + text
		}
		if out, err := run("resume", "--skip-git-repo-check", "--json", began.Thread, text).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if turn%20 == 0 {
			before := len(model.Requests())
			cmd := run("resume", "--skip-git-repo-check", "--json", began.Thread, "hold")
			testworld.Must(w, cmd.Start())
			testworld.Wait(t, "the request that is held", func() bool { return len(model.Requests()) > before })
			testworld.Must(w, cmd.Process.Kill())
			_ = cmd.Wait() // killed
		}
	}
	w.mustAgree(model.Spent(), stop())
	list, err := cost.Records{DB: w.db}.Sum(context.Background(), cost.ByModel, cost.Filter{Agent: "agent2"})
	if err != nil || !slices.ContainsFunc(list, func(s cost.Sum) bool { return s.Name == openai.Model }) {
		t.Errorf("by model: %+v, %v", list, err)
	}
}
