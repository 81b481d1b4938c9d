//go:build live

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/internal/chaos"
	"netsky/internal/loopmodel/anthropic"
	"netsky/internal/loopmodel/openai"
	"netsky/internal/testworld"
)

// A night is a drill with Claude Code and Codex in it, in a world of the tests'.
type night struct {
	demos, codexes, claudes int
	faults                  []string // none: all
	lasts                   time.Duration
	burst                   int
	every                   time.Duration
}

// TestNight is a short night; scripts/night runs a long one.
func TestNight(t *testing.T) {
	n := night{demos: 4, codexes: 1, claudes: 1, every: 300 * time.Millisecond, faults: []string{"child", "disk", "clock", "claude-limit", "both"}}
	if os.Getenv("NETSKY_NIGHT") != "" {
		n = night{demos: 20, codexes: 2, claudes: 2, every: 250 * time.Millisecond, lasts: duration(t, "NETSKY_NIGHT"), burst: 3}
	}
	if os.Getenv("NETSKY_NIGHT_INSIDE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNight$", "-test.v", "-test.timeout=25h")
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "NETSKY_NIGHT_INSIDE=1"), os.Stdout, os.Stderr
		status, err := chaos.Rerun(t.Context(), cmd, func() os.Signal { return syscall.SIGTERM })
		switch {
		case err == nil && status != 0:
			t.Fatalf("the night has failed, see above (exit status %d)", status)
		case errors.Is(err, chaos.ErrNotApart):
			n.run(t, err)
		case err != nil:
			t.Fatal(err)
		}
		return
	}
	n.run(t, nil)
}

func duration(t *testing.T, name string) time.Duration {
	t.Helper()
	return testworld.Got(time.ParseDuration(os.Getenv(name)))(t)
}

// run runs the night. noDisk is why there is no small disk here; that fault is reported as
// not tried then.
func (n night) run(t *testing.T, noDisk error) {
	seed := uint64(time.Now().UnixNano() % 1_000_000)
	if text := os.Getenv("NETSKY_NIGHT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	w, codex := mustCodex(t)
	claude := w.addClaude(t)
	w.env = append(w.env, claude.LoginEnv(filepath.Join(w.dir, "cc"))...)
	if noDisk == nil {
		if noDisk = chaos.Mount(w.home, 512<<20); noDisk == nil {
			defer func() {
				w.must(t, "netsky", "down", "--all", "--force")
				if err := errors.Join(w.keep(t), chaos.Unmount(w.home)); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	world := n.world(t, w)
	world.NoDisk = noDisk
	o := chaos.Options{
		World: world, Seed: seed, For: n.lasts, Burst: n.burst, Every: n.every, Within: 3 * time.Minute,
		Faults: n.choose(append(chaos.Faults(15*time.Second, 5*time.Second, 10*time.Second),
			chaos.Children(world.Agents[n.demos:]), clockBack(w), claudeLimit(claude, world), codexLimit(codex, world))),
		Say: func(l chaos.Line) {
			t.Log(l)
			if l.Result == chaos.Failed {
				t.Errorf("%s", l)
			}
			if l.Name == "all up" {
				n.witness(t, w, len(world.Agents)+1) // and the ticker
			}
		},
	}
	trace, err := os.Create(filepath.Join(w.dir, "night.log"))
	testworld.Must(t, err)
	defer trace.Close()
	o.Trace = trace
	r, err := chaos.Run(t.Context(), o)
	testworld.Equal(t, err, nil)
	t.Logf("seed %d: %s", seed, r.Counts())
	t.Logf("counts\n%s", r.Table())
	n.witness(t, w, 0)
	for _, l := range r.Lines {
		if l.Result == chaos.NotTried && (l.Name != "disk" || noDisk == nil) {
			t.Errorf("%s", l)
		}
	}
}

// witness checks that package tmux and gotmux see the same sessions, and how many they are.
func (n night) witness(t *testing.T, w *world, want int) {
	if have, err := w.agree(context.WithoutCancel(t.Context())); err != nil || len(have) != want {
		t.Errorf("the sessions are %v, %v, want %d of them", have, err, want)
	}
}

// keep saves the home of a night that has failed in the directory that NETSKY_NIGHT_KEEP
// names.
func (w *world) keep(t *testing.T) error {
	dir := os.Getenv("NETSKY_NIGHT_KEEP")
	if dir == "" || !t.Failed() {
		return nil
	}
	out, err := exec.Command("cp", "-a", w.home, filepath.Join(w.dir, "night.log"), dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

func (n night) choose(all []chaos.Fault) []chaos.Fault {
	if len(n.faults) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(f chaos.Fault) bool { return !slices.Contains(n.faults, f.Name) })
}

// world configures the agents: first the demos, agentinfinity among them, then those on
// Codex, then those on Claude Code.
func (n night) world(t *testing.T, w *world) chaos.World {
	t.Helper()
	clones := n.demos - 2 + n.codexes + n.claudes
	config := chaos.Config + "[agents]\nruntime = \"demo\"\n" + freely +
		"[codex]\nsandbox = \"danger-full-access\"\napproval = \"never\"\n"
	agents := []agent.ID{agent.Root, agent.Infinity}
	for i := range clones {
		agents = append(agents, agent.Clone(i+1))
		if i >= n.demos-2 {
			runtime := "codex"
			if i >= n.demos-2+n.codexes {
				runtime = "claude"
			}
			config += fmt.Sprintf("[agents.%d]\nruntime = %q\n", i+1, runtime)
		}
	}
	w.config(t, config)
	testworld.Must(t, os.MkdirAll(filepath.Join(w.dir, "src"), 0o700))
	return chaos.World{
		Home: w.mustHome(t), Socket: w.socket(), Agents: agents,
		Demos: append([]agent.ID{agent.Root}, agents[2:n.demos]...),
		Up:    []string{"up", strconv.Itoa(clones), "--no-attach", "--dir", filepath.Join(w.dir, "src")},
		Command: func(ctx context.Context, words ...string) *exec.Cmd {
			cmd := w.command(ctx, "netsky", words...)
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
			cmd.WaitDelay = 15 * time.Second
			return cmd
		},
	}
}

// A quota is a vendor's limit that can be used up for a while.
type quota struct {
	mu    sync.Mutex // guards what follows
	until time.Time
}

func (q *quota) left() (until time.Time, usedUp bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.until, time.Now().Before(q.until)
}

// useUp uses it up for a while and has one of the agents run into it.
func (q *quota) useUp(ctx context.Context, d *chaos.Drill, who string, among []agent.ID) (chaos.Hit, error) {
	const length = 20 * time.Second
	until := time.Now().Add(length).Truncate(time.Second)
	q.mu.Lock()
	q.until = until
	q.mu.Unlock()
	for _, id := range among {
		if err := d.Send(ctx, id, "drill: are you limited?"); err != nil {
			return chaos.Hit{}, err
		}
	}
	return chaos.Hit{
		On: fmt.Sprintf("the model of %s refuses with 429 for %s", who, length), Hold: time.Until(until),
		Owes: []chaos.Notice{{Prefix: "limit-", Why: "the model of " + who + " was cut off", Passes: true}},
	}, nil
}

func claudeLimit(model *anthropic.Server, w chaos.World) chaos.Fault {
	var q quota
	model.Handle(func(anthropic.Request) *anthropic.Reply {
		if until, usedUp := q.left(); usedUp {
			return anthropic.Limit(until)
		}
		return nil
	})
	return chaos.Fault{Name: "claude-limit", Says: "429 from Claude Code's model", Do: func(ctx context.Context, d *chaos.Drill) (chaos.Hit, error) {
		return q.useUp(ctx, d, "Claude Code", onRuntime(w, "claude"))
	}}
}

func codexLimit(model *openai.Server, w chaos.World) chaos.Fault {
	var q quota
	model.Handle(func(openai.Request) *openai.Reply {
		until, usedUp := q.left()
		if !usedUp {
			return nil
		}
		r := openai.Fail(http.StatusTooManyRequests)
		r.Body = fmt.Sprintf(`{"error":{"type":"usage_limit_reached","message":"x","plan_type":"pro","resets_at":%d}}`, until.Unix())
		r.Header["x-codex-primary-reset-at"] = fmt.Sprint(until.Unix())
		return r
	})
	return chaos.Fault{Name: "codex-limit", Says: "429 from Codex's model", Do: func(ctx context.Context, d *chaos.Drill) (chaos.Hit, error) {
		return q.useUp(ctx, d, "Codex", onRuntime(w, "codex"))
	}}
}

// onRuntime lists the agents that run on it.
func onRuntime(w chaos.World, name string) (list []agent.ID) {
	for _, id := range w.Agents {
		if l, err := w.Home.LoadLaunch(id); err == nil && strings.HasPrefix(l.Runtime, name) {
			list = append(list, id)
		}
	}
	return list
}
