package land_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"netsky/agent"
	"netsky/home"
	"netsky/internal/testworld"
	"netsky/store"
	"netsky/work"
	"netsky/work/check"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/record"
	"netsky/work/tree"
)

// With these in its environment the test binary is a netsky in that home, which runs one verb, prints
// its steps, and kills itself at the step of that number.
const (
	childHome = "LAND_TEST_HOME"
	childVerb = "LAND_TEST_VERB"
	childKill = "LAND_TEST_KILL"
	childRoom = "LAND_TEST_ROOM" // if set, no file can grow beyond so many bytes
)

func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	if dir := os.Getenv(childHome); dir != "" {
		os.Exit(child(dir))
	}
	os.Exit(m.Run())
}

func child(dir string) int {
	h, err := home.At(dir)
	if err != nil {
		return 2
	}
	last, _ := strconv.Atoi(os.Getenv(childKill))
	if room, err := strconv.ParseUint(os.Getenv(childRoom), 10, 63); err == nil {
		signal.Ignore(syscall.SIGXFSZ) // by git as well, whose writes fail then
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: room, Max: room}); err != nil {
			fmt.Println(err)
			return 2
		}
	}
	n := 0
	d := desk(h)
	d.Step = func(name string) {
		fmt.Println("step", name)
		if n++; n == last {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	if err := run(context.Background(), d, os.Getenv(childVerb)); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// run runs a verb, given as words.
func run(ctx context.Context, d land.Desk, line string) (err error) {
	words := strings.Fields(line)
	switch words[0] {
	case "check":
		_, err = d.Check(ctx, agent.ID(words[1]), land.CheckOptions{})
	case "land", "push":
		o := land.LandOptions{Unchecked: true, PR: words[0] == "push"}
		if o.PR {
			d.Environ = append(d.Environ, "PATH=/nowhere") // neither gh nor glab
		}
		if len(words) > 2 {
			o.How = words[2]
		}
		_, err = d.Land(ctx, agent.ID(words[1]), o)
	case "undo":
		_, err = d.Undo(ctx, words[1])
	}
	return err
}

const goodCheck = "test ! -e broken"

func desk(h home.Dir) land.Desk {
	return land.Desk{
		Home: h, Journal: store.NewJournal(h), Records: func(ctx context.Context) (*store.DB, error) { return store.OpenRead(ctx, h) },
		Command: check.Command{What: "check", Text: goodCheck}, Within: time.Minute, Environ: os.Environ(), Asker: agent.Owner,
	}
}

// A yard is a home, the owner's repository beside it, and what netsky said.
type yard struct {
	testworld.Repo
	t    *testing.T
	home home.Dir
	desk land.Desk

	mu   *sync.Mutex
	said *[]string
	told map[agent.ID]string
}

func newYard(t *testing.T) yard {
	t.Helper()
	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	return yardAt(t, testworld.NewRepo(t, filepath.Join(dir, "src")))
}

func yardAt(t *testing.T, r testworld.Repo) yard {
	t.Helper()
	y := yard{Repo: r, t: t, home: testworld.FastHome(t), mu: new(sync.Mutex), said: new([]string), told: make(map[agent.ID]string)}
	y.desk = desk(y.home)
	y.desk.Say = func(format string, args ...any) {
		y.mu.Lock()
		defer y.mu.Unlock()
		*y.said = append(*y.said, fmt.Sprintf(format, args...))
	}
	y.desk.Tell = func(to agent.ID, _, text string) error {
		y.told[to] = text
		return nil
	}
	testworld.Must(t, y.desk.Command.Agree(y.home))
	return y
}

func (y yard) clone(id agent.ID) testworld.Repo {
	y.t.Helper()
	r := testworld.Got(git.Open(y.t.Context(), y.Dir, ""))(y.t)
	p := testworld.Got(tree.Make(y.t.Context(), y.home, id, r, true))(y.t)
	return y.At(p.Dir)
}

func (y yard) check(id agent.ID) land.Checked {
	y.t.Helper()
	return testworld.Got(y.desk.Check(y.t.Context(), id, land.CheckOptions{}))(y.t)
}

func (y yard) land(id agent.ID, o land.LandOptions) land.Landing {
	y.t.Helper()
	return testworld.Got(y.desk.Land(y.t.Context(), id, o))(y.t)
}

// state returns how the agent's work is, as all who show it have it.
func (y yard) state(id agent.ID) work.State {
	y.t.Helper()
	db := testworld.Got(store.Open(y.t.Context(), y.home))(y.t)
	defer db.Close()
	r := work.New(y.home, work.Options{Records: &record.Records{DB: db}, Command: y.desk.Command})
	defer r.Close()
	list := testworld.Got(r.States(y.t.Context()))(y.t)
	i := slices.IndexFunc(list, func(st work.State) bool { return st.Agent == id })
	if i < 0 {
		y.t.Fatalf("%s has no work: %+v", id, list)
	}
	return list[i]
}

// records returns the landings and the checks.
func (y yard) records() ([]record.Landing, []record.Check) {
	y.t.Helper()
	db, err := store.OpenRead(y.t.Context(), y.home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	testworld.Must(y.t, err)
	defer db.Close()
	r := record.Records{DB: db}
	landings := testworld.Got(r.Landings(y.t.Context(), record.Filter{}))(y.t)
	checks := testworld.Got(r.Checks(y.t.Context(), record.Filter{}))(y.t)
	return landings, checks
}

// tidy reports what must not be left when a verb has ended.
func (y yard) tidy() {
	y.t.Helper()
	if list, _ := os.ReadDir(y.home.Path(tree.ScratchDir)); len(list) > 0 {
		y.t.Errorf("scratch worktrees are left: %v", list)
	}
	if list := y.Git("worktree", "list"); strings.Contains(list, ".scratch") {
		y.t.Errorf("git still has scratch worktrees:\n%s", list)
	}
	testworld.Fails(y.t, testworld.Err(os.Lstat(y.home.Path("state/landing.json"))), "", "state/landing.json is left")
}

// netsky runs a verb in another process, and returns what it printed.
func (y yard) netsky(verb string, kill int, env ...string) string {
	y.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childHome+"="+y.home.Root(), childVerb+"="+verb, childKill+"="+strconv.Itoa(kill))
	cmd.Env = append(cmd.Env, env...)
	out, _ := cmd.CombinedOutput()
	return string(out)
}
