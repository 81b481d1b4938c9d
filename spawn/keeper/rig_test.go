package keeper_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/proc"
	"netsky/internal/testworld"
	"netsky/spawn/keeper"
)

// role chooses what the test binary is when a test has started it again.
const role = "KEEPER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "keeper":
		home, err := home.Find(os.Getenv)
		if err != nil {
			panic(err)
		}
		os.Exit(keeper.Run(home, agent.ID(os.Args[1]), "test", func() {}))
	case "screen":
		fullScreen()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A rig is a home and a tmux server of the test's own.
type rig struct {
	tb     testing.TB
	home   home.Dir
	socket string
	starts []string
}

type pane struct {
	id     string
	keeper proc.Process
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	h := testworld.FastHome(tb)
	r := &rig{tb: tb, home: h, socket: filepath.Join(filepath.Dir(h.Root()), "s")}
	tb.Cleanup(func() {
		r.command("kill-server").Run()
		for _, s := range r.starts {
			proc.End(context.Background(), mustDescendants(tb, 0, s), 0)
		}
	})
	return r
}

func (r *rig) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", r.socket, "-f", "/dev/null"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TMUX") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

func (r *rig) tmux(args ...string) string {
	r.tb.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		r.tb.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// launch puts down what agent id is to run.
func (r *rig) launch(id agent.ID, argv ...string) agent.Launch {
	r.tb.Helper()
	l := agent.Launch{
		Agent: id, Start: agent.NewStart(), Runtime: "test", Argv: argv, Dir: r.home.Root(),
		StartedMS: time.Now().UnixMilli(),
	}
	l.Env = append(os.Environ(), "NETSKY_START="+l.Start, "TERM=wrong", role+"=screen")
	r.starts = append(r.starts, l.Start)
	r.save(l)
	return l
}

func (r *rig) save(l agent.Launch) {
	r.tb.Helper()
	testworld.Must(r.tb, r.home.SaveLaunch(l))
}

// open makes a session for each agent, in one call, and gives their panes.
func (r *rig) open(ids ...agent.ID) []pane {
	r.tb.Helper()
	var args []string
	for _, id := range ids {
		args = append(args, "new-session", "-d", "-P", "-F", "#{pane_id} #{pane_pid}",
			"-s", string(id), "-x", "80", "-y", "24", "-c", "/",
			"-e", role+"=keeper", "-e", "NETSKY_HOME="+r.home.Root(),
			"exec "+os.Args[0]+" "+string(id), ";")
	}
	var list []pane
	for line := range strings.Lines(r.tmux(args[:len(args)-1]...)) {
		id, pid, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(pid)
		testworld.Must(r.tb, err, "tmux answered %q", line)
		p, err := proc.Find(n)
		if err != nil {
			p.PID = n // gone already: the test will see
		}
		list = append(list, pane{id, p})
	}
	if len(list) != len(ids) {
		r.tb.Fatalf("tmux made %d of %d sessions", len(list), len(ids))
	}
	return list
}

// run launches a program and opens its pane.
func (r *rig) run(id agent.ID, argv ...string) (pane, agent.Launch) {
	r.tb.Helper()
	l := r.launch(id, argv...)
	return r.open(id)[0], l
}

func (r *rig) capture(p pane) string {
	r.tb.Helper()
	return r.tmux("capture-pane", "-p", "-S", "-", "-t", p.id)
}

func (r *rig) keys(p pane, keys ...string) {
	r.tb.Helper()
	r.tmux(append([]string{"send-keys", "-t", p.id}, keys...)...)
}

// shows waits until the pane holds the text.
func (r *rig) shows(p pane, text string) {
	r.tb.Helper()
	var last string
	testworld.WaitOr(r.tb, func() bool {
		last = r.capture(p)
		return strings.Contains(last, text)
	}, func() string { return "pane without " + strconv.Quote(text) + ":\n" + last })
}

// ended waits for the record of the start's end.
func (r *rig) ended(l agent.Launch) (k agent.Keeper) {
	r.tb.Helper()
	testworld.WaitOr(r.tb, func() bool {
		k, _ = r.home.LoadKeeper(l.Agent)
		return k.Start == l.Start && k.EndedMS != 0
	}, func() string { return string(l.Agent) + ": no end on record" })
	return k
}

// program waits for the record of the program's start.
func (r *rig) program(l agent.Launch) (k agent.Keeper) {
	r.tb.Helper()
	testworld.WaitOr(r.tb, func() bool {
		k, _ = r.home.LoadKeeper(l.Agent)
		return k.Start == l.Start && k.PID != 0
	}, func() string { return string(l.Agent) + ": no program on record" })
	return k
}

// ending is how a program ended, by its record: "3", "SIGKILL"; "" while it runs.
func ending(k agent.Keeper) string {
	switch {
	case k.EndedMS == 0:
		return ""
	case k.Status != nil:
		return strconv.Itoa(*k.Status)
	}
	return k.Signal
}

func gone(tb testing.TB, what string, p proc.Process) {
	tb.Helper()
	testworld.WaitOr(tb, func() bool { return !p.Alive() }, func() string {
		return what + " lives: " + strconv.Itoa(p.PID)
	})
}

func mustDescendants(tb testing.TB, pid int, start string) []proc.Process {
	tb.Helper()
	return testworld.Got(proc.Descendants(pid, "NETSKY_START="+start))(tb)
}
