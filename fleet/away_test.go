package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netsky/agent"
	"netsky/bus"
	"netsky/fleet"
	"netsky/internal/advice"
	"netsky/internal/testworld"
	"netsky/link/team"
	"netsky/spawn"
	"netsky/work"
	"netsky/work/away"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/merge"
	"netsky/work/record"
	"netsky/work/task"
	"netsky/work/tree"
)

// A yard is the owner's host, on which work is done for the owner's repository, and build1, which has a clone of it.
type yard struct {
	*testing.T
	build1      socket
	fleet       *fleet.Fleet
	said        *steps
	here, there testworld.Repo
	away        bool // build1 does not answer
}

const worker agent.ID = "agent1@build1"

func mustYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{T: t, said: &steps{}}
	build1, d := newControlWith(t, nil)
	y.build1 = build1
	_, here := newControlWith(t, func(ctx context.Context, host, name string, request []byte, w io.Writer) error {
		if y.away || host != "build1" {
			return errors.New(host + ": is gone; nothing was done")
		}
		d.Asked(ctx, "laptop", name, request, w)
		return nil
	})
	f := *here.Fleet
	f.UI, y.fleet = y.said, &f
	f.Config.Work.Check, f.Config.Work.CheckTime.Duration = "test ! -e broken", time.Minute
	testworld.Got(team.Found(f.Home, "laptop", team.Server{}))(t)
	key := testworld.Got(team.MakeKey(build1.home))(t)
	testworld.Got(team.Admit(f.Home, team.Host{Name: "build1", Key: key.Public(), Role: team.Worker}))(t)
	testworld.Must(t, f.Launcher.Bus.Link("build1"))

	dir := testworld.Got(filepath.EvalSymlinks(t.TempDir()))(t)
	y.here = testworld.NewRepo(t, filepath.Join(dir, "here"))
	y.here.Git("clone", "-q", y.here.Dir, filepath.Join(dir, "there"))
	y.there = y.here.At(filepath.Join(dir, "there"))
	y.there.Git("config", "user.name", "Ada")
	y.there.Git("config", "user.email", "ada@example.org")
	testworld.Must(t, f.Home.SaveLaunch(agent.Launch{Agent: agent.Root, Dir: y.here.Dir}))
	testworld.Must(t, build1.home.SaveLaunch(agent.Launch{Agent: "agent1", Dir: y.there.Dir}))
	return y
}

func (y *yard) add(title string) string {
	y.Helper()
	return testworld.Got(fleet.Tasks{Fleet: y.fleet}.Add(y.Context(), task.Wish{Title: title, Assignee: worker}))(y).ID
}

func (y *yard) start(id string, queue bool) error {
	_, err := fleet.Tasks{Fleet: y.fleet}.Start(y.Context(), fleet.TaskRequest{Task: id, Queue: queue})
	return err
}

func (y *yard) mail() (list []string) {
	y.Helper()
	all, err := y.fleet.Launcher.Bus.List(worker, bus.Inbox, 0)
	if !errors.Is(err, bus.ErrNoMailbox) {
		testworld.Must(y, err)
	}
	for _, e := range all {
		list = append(list, e.Envelope.Text)
	}
	return list
}

// A task for an agent on another host tells it where to begin; what it commits there is checked, landed and undone here.
func TestWorkAway(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	id := y.add("one")
	testworld.Fails(t, y.start(id, false), "agent1@build1: is down")
	own := y.here.Commit("own", "c.txt", "c\n")
	testworld.Must(t, y.start(id, true))
	mail := y.mail()
	testworld.Equal(t, len(mail), 1, "briefs")
	testworld.Contains(t, mail[0], "begins at the commit "+own+" of main")
	y.there.Git("merge", "-q", own)
	one := y.there.Commit("one", "b.txt", "b\n")

	w := fleet.Work{Fleet: y.fleet}
	k := testworld.Got(w.Check(t.Context(), fleet.CheckRequest{Agent: worker, Yes: true}))(t)
	testworld.Equal(t, k.State, record.Passed)
	testworld.Equal(t, k.Head, one)
	_, tree, err := land.Current(t.Context(), y.fleet.Home, worker)
	testworld.Must(t, err)
	testworld.Equal(t, tree, k.Tree)

	y.there.Write("d.txt", "not committed\n")
	y.away = true
	l := testworld.Got(w.Land(t.Context(), fleet.LandRequest{Agent: worker}))(t)
	testworld.Equal(t, l.After, one)
	testworld.Equal(t, y.here.Read("b.txt"), "b\n")
	said := strings.Join(y.said.lines, "\n")
	testworld.Contains(t, said, "agent1@build1's work is as of ")
	testworld.Contains(t, said, " ago: build1: ")
	testworld.Contains(t, strings.Join(y.mail(), "\n"), "has landed on main")
	y.away = false
	w.Freshen(t.Context(), time.Minute)
	_, err = w.Land(t.Context(), fleet.LandRequest{Agent: worker})
	testworld.ErrorIs(t, err, land.ErrNothing, "landed twice")

	testworld.Got(w.Undo(t.Context(), fleet.UndoRequest{Landing: l.ID}))(t)
	testworld.Equal(t, y.here.Git("rev-parse", "main"), own)
	_, _, err = land.Current(t.Context(), y.fleet.Home, worker)
	testworld.Fails(t, err, "agent1@build1 has 1 uncommitted file")
	testworld.Equal(t, y.there.Git("status", "--porcelain"), "?? d.txt")
}

// Work that has landed is retired; other is kept, also from a task on another repository.
func TestRetireAway(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	testworld.Must(t, y.start(y.add("one"), true))
	y.there.Commit("one", "b.txt", "b\n")
	w := fleet.Work{Fleet: y.fleet}
	w.Freshen(t.Context(), time.Minute, worker)
	_, err := w.Retire(t.Context(), fleet.RetireRequest{Agents: []agent.ID{worker}})
	testworld.ErrorIs(t, err, fleet.ErrStayed, "not landed")
	testworld.Contains(t, strings.Join(y.said.lines, "\n"), "agent1@build1: its work is not ended: 1 commit has not landed on main")

	other := testworld.NewRepo(t, filepath.Join(t.TempDir(), "other"))
	testworld.Must(t, y.fleet.Home.SaveLaunch(agent.Launch{Agent: agent.Root, Dir: other.Dir}))
	testworld.Got(w.Land(t.Context(), fleet.LandRequest{Agent: worker, LandOptions: land.LandOptions{How: land.Merging, Unchecked: true}}))(t)
	testworld.Equal(t, strings.TrimSpace(y.here.Git("log", "-1", "--format=%s")), "Merge agent1@build1 into main", "the landing's title")
	done := testworld.Got(w.Retire(t.Context(), fleet.RetireRequest{Agents: []agent.ID{worker}}))(t)
	testworld.Equal(t, len(done), 1, "retired")
	_, err = tree.Load(y.fleet.Home, worker)
	testworld.Fails(t, err, "no such file")
	testworld.Equal(t, y.here.Git("for-each-ref", "refs/netsky/hosts"), "")
	testworld.Equal(t, y.there.Read("b.txt"), "b\n")
}

// An agent whose work conflicts with the owner's branch has that in its repository.
func TestConflictAway(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	testworld.Must(t, y.start(y.add("one"), true))
	y.there.Commit("theirs", "a.txt", "theirs\n")
	y.here.Commit("mine", "a.txt", "mine\n")
	w := fleet.Work{Fleet: y.fleet}
	_, err := w.Land(t.Context(), fleet.LandRequest{Agent: worker, LandOptions: land.LandOptions{Unchecked: true}})
	testworld.Fails(t, err, "agent1@build1: its branch and main conflict in 1 file")
	testworld.Contains(t, advice.Of(err), "merge refs/netsky/base/agent1 into your branch")
	testworld.Contains(t, strings.Join(y.mail(), "\n"), "Merge refs/netsky/base/agent1, which is main here")
	_, _ = y.there.Try("merge", "refs/netsky/base/agent1")
	y.there.Commit("both", "a.txt", "mine\ntheirs\n")
	testworld.Got(w.Land(t.Context(), fleet.LandRequest{Agent: worker, LandOptions: land.LandOptions{Unchecked: true}}))(t)
	testworld.Equal(t, y.here.Read("a.txt"), "mine\ntheirs\n")
}

// The work of agents here and elsewhere is merged to see whether it conflicts; that of none is taken for another's.
func TestForecastAway(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	testworld.Must(t, y.start(y.add("one"), true))
	r := testworld.Got(git.Open(t.Context(), y.here.Dir, ""))(t)
	own := testworld.Got(tree.Make(t.Context(), y.fleet.Home, "agent1", r, true))(t)
	y.here.At(own.Dir).Commit("ours", "a.txt", "ours\n")
	y.there.Commit("theirs", "a.txt", "theirs\n")
	fleet.Work{Fleet: y.fleet}.Freshen(t.Context(), time.Minute)
	fc := merge.New(y.fleet.Home)
	defer fc.Close()
	c := testworld.Got(fc.Look(t.Context()))(t)
	testworld.Equal(t, len(c.Conflicts), 1, "conflicts")
	testworld.Equal(t, fmt.Sprint(c.Conflicts[0].Agents, c.Conflicts[0].Files), "[agent1 agent1@build1] [a.txt]")
	testworld.Contains(t, c.Conflicts[0].Message(worker), "agent1, of the host that this comes from, gets the same message")
	rd := work.New(y.fleet.Home, work.Options{})
	defer rd.Close()
	list := testworld.Got(rd.States(t.Context()))(t)
	testworld.Equal(t, fmt.Sprint(len(list), list[1].Agent, list[1].State, list[1].Dir, list[1].Ahead, list[1].Gone), fmt.Sprint(2, worker, "conflict", y.there.Dir, 1, false))
}

// A host that is away gets no task, unless it may wait and is known; one that is gone for good sends no work.
func TestHostAway(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	id := y.add("one")
	y.away = true
	testworld.Fails(t, y.start(id, true), "build1: ")
	testworld.Equal(t, len(y.mail()), 0, "briefs")
	y.away = false
	testworld.Must(t, y.start(id, true))
	y.away = true
	testworld.Must(t, y.start(y.add("two"), true))
	testworld.Equal(t, len(y.mail()), 2, "briefs")
	w := fleet.Work{Fleet: y.fleet}
	if err := w.Bring(t.Context(), worker); err == nil || strings.Contains(err.Error(), "refused") {
		t.Errorf("away: %v", err)
	}
	_, err := team.Remove(y.fleet.Home, "build1")
	testworld.Must(t, err)
	testworld.ErrorIs(t, w.Bring(t.Context(), worker), away.ErrRefused, "removed")
}

// What crosses at once is bounded: more is for ssh.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	testworld.Must(t, y.start(y.add("one"), true))
	large := make([]byte, away.MaxPack+1<<20)
	for i, x := 0, uint32(1); i < len(large); i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		large[i] = byte(x)
	}
	y.there.Git("config", "core.compression", "0") // which would take long, and make nothing smaller
	y.there.Commit("large", "large", string(large))
	err := fleet.Work{Fleet: y.fleet}.Bring(t.Context(), worker)
	testworld.Fails(t, err, "takes more than 16 MiB")
	testworld.ErrorIs(t, err, away.ErrRefused, "final")
}

// An agent here can have no more of another host's done than a task needs.
func TestWhoBrings(t *testing.T) {
	t.Parallel()
	y := mustYard(t)
	id := y.add("one")
	for _, tt := range []struct {
		who  agent.ID
		want string
	}{{agent.Root, ""}, {"agent1", "may start only its own"}} {
		f := *y.fleet
		f.Actor = tt.who
		_, err := fleet.Tasks{Fleet: &f}.Start(t.Context(), fleet.TaskRequest{Task: id, Queue: true})
		if tt.want == "" {
			testworld.Must(t, err)
		} else {
			testworld.Fails(t, err, tt.want)
		}
		var st spawn.Status
		testworld.Fails(t, fleet.Host{Fleet: &f, Name: "build1"}.Do(t.Context(), "peek", fleet.PeekRequest{Agent: "agent1"}, &st), "only the owner")
	}
}
