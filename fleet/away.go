// This file is the work of agents on other hosts of the team: what one tells of it, and how another has it brought.

package fleet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"netsky/agent"
	"netsky/attention"
	"netsky/bus/envelope"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/home"
	"netsky/internal/advice"
	"netsky/internal/words"
	"netsky/link/team"
	"netsky/spawn"
	"netsky/store"
	"netsky/work/away"
	"netsky/work/git"
	"netsky/work/land"
	"netsky/work/tree"
)

// workDeed is the deed by which a host tells of an agent's work.
const workDeed = "work"

// mayAcross returns an error unless an actor may have another host do a deed.
func mayAcross(who agent.ID, deed string) error {
	if deed == workDeed {
		return May(who, "task start")
	}
	return May(who, otherHosts)
}

// A parts writer sends what is written to it as steps.
type parts struct{ ui UI }

// partSize is how much is in one step.
const partSize = 256 << 10

func (p parts) Write(data []byte) (int, error) {
	p.ui.Step(Step{Data: bytes.Clone(data)})
	return len(data), nil
}

// work tells how an agent's work is here, and sends, as steps, a git pack of what the asker lacks.
func (f over) work(ctx context.Context, q away.Request) (there away.There, err error) {
	list, err := f.Launcher.Inspect(ctx)
	if err != nil {
		return there, err
	}
	there.State = list.Find(q.Agent).State
	la, err := f.Home.LoadLaunch(q.Agent)
	if errors.Is(err, fs.ErrNotExist) || err == nil && la.Dir == "" {
		return there, nil
	}
	if err != nil {
		return there, err
	}
	var r git.Repo
	if w, ok := tree.Around(f.Home, q.Agent, la.Dir); ok && w.Ready {
		r, err = tellTree(ctx, w, &there)
	} else {
		r, err = away.Alone(ctx, la.Dir, f.userHome(), &there)
	}
	if err != nil || there.Dir == "" {
		return there, err
	}
	if len(q.Pack) > 0 {
		_ = f.Launcher.Journal.Record(context.WithoutCancel(ctx), store.AddLog{Part: "work", Actor: q.Agent, Text: fmt.Sprintf("%s brings the commit %.12s into %s", f.who(), q.Base, there.Dir)})
	}
	out := bufio.NewWriterSize(parts{f.UI}, partSize)
	if err = away.Tell(ctx, f.Home, r, q, &there, out); err == nil {
		err = out.Flush()
	}
	if errors.Is(err, away.ErrRefused) {
		err = &plan.UsageError{Err: f.bySSH(err, q.Agent, there)}
	}
	return there, err
}

// tellTree tells how an agent's worktree is.
func tellTree(ctx context.Context, w tree.Worktree, there *away.There) (git.Repo, error) {
	r, err := w.Git()
	if errors.Is(err, fs.ErrNotExist) { // its branch is still there
		r, err = land.Repo(ctx, w)
	}
	if err != nil {
		return r, err
	}
	there.Dir, there.Branch = w.Dir, w.Branch
	if there.Head, err = r.Commit(ctx, w.Branch); err == nil && there.Head == "" {
		err = fmt.Errorf("%s: there is no branch %s any more", w.Agent, w.Short())
	}
	loose, lerr := land.LooseIn(ctx, w)
	there.Dirty, there.Aside = loose.Files, loose.Aside
	return r, errors.Join(err, lerr)
}

// bySSH adds to an error how the owner can fetch an agent's work by ssh.
func (f over) bySSH(err error, id agent.ID, there away.There) error {
	self, serr := team.LoadSelf(f.Home)
	if serr != nil || there.Branch == "" {
		return err
	}
	return advice.With(err, "in the repository of the owner's, git fetch %s:%s %s:%s brings it by ssh", self.Name, advice.Word(there.Dir), git.Branch(there.Branch), away.Ref(id.At(self.Name)))
}

// workTime is how long an agent's host may take to send its work; meanwhile the task is held.
const workTime = 30 * time.Minute

// ask returns what asks an agent's host for its work.
func (w Work) ask(id agent.ID) away.Ask {
	return func(ctx context.Context, q away.Request, out io.Writer) (there away.There, err error) {
		ctx, cancel := context.WithTimeout(ctx, workTime)
		defer cancel()
		err = Host{w.Fleet, id.Host()}.do(ctx, workDeed, q, &there, out)
		there.State = agent.State(envelope.Plain(envelope.Line(string(there.State), 40)))
		if err != nil && Status(err) == 2 {
			err = away.Refuse(err)
		}
		return there, err
	}
}

// Bring brings what an agent on another host has committed. To try again helps unless the error matches
// [away.ErrRefused].
func (w Work) Bring(ctx context.Context, id agent.ID) error {
	if err := w.inTeam(id); err != nil {
		return err
	}
	return away.Bring(ctx, w.Home, id, w.ask(id))
}

// inTeam returns an error that is final if an agent's host has left the team.
func (w Work) inTeam(id agent.ID) error {
	t, err := team.Load(w.Home)
	if _, ok := t.Host(id.Host()); err == nil && !ok || errors.Is(err, team.ErrNone) {
		return away.Refuse(fmt.Errorf("%s: %s is no host of the team any more", id, id.Host()))
	}
	return nil
}

// Begin brings, to an agent on another host that has had tasks, what its work on one begins at and builds on. Its error is as
// Bring's.
func (t Tasks) Begin(ctx context.Context, k store.Task) error {
	if err := Work(t).inTeam(k.Assignee); err != nil {
		return err
	}
	old, err := tree.Load(t.Home, k.Assignee)
	if err != nil {
		return err
	}
	r, err := git.Open(ctx, old.Main, t.userHome())
	if err != nil {
		return err
	}
	w, err := away.Of(ctx, k.Assignee, r)
	if err != nil {
		return err
	}
	w.Made = old.Made
	return t.begin(ctx, w, k.ID, func(away.There) error { return nil })
}

// begin brings what an agent's work on a task begins at and builds on.
func (t Tasks) begin(ctx context.Context, w tree.Worktree, task string, ready func(away.There) error) error {
	list, err := t.Book().Needs(ctx, task)
	if err != nil {
		return err
	}
	var needs []string
	for _, n := range list {
		if n.Head != "" && n.Assignee != w.Agent {
			needs = append(needs, n.Head)
		}
	}
	return away.Begin(ctx, t.Home, w, needs, Work(t).ask(w.Agent), ready)
}

// Freshen brings what agents on other hosts have committed, all of them if none is named: at once from several hosts,
// which do few deeds at a time. What does not come within that time stays as it was seen last, and is warned of.
func (w Work) Freshen(ctx context.Context, within time.Duration, ids ...agent.ID) {
	list, _ := tree.List(w.Home) // one that can't be read is reported by whoever uses it
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	of := make(map[string][]tree.Worktree)
	for _, one := range list {
		if one.Away != nil && (len(ids) == 0 || slices.Contains(ids, one.Agent)) {
			of[one.Agent.Host()] = append(of[one.Agent.Host()], one)
		}
	}
	var all sync.WaitGroup
	for _, there := range of {
		all.Go(func() {
			for _, one := range there {
				if err := w.Bring(ctx, one.Agent); err != nil {
					w.UI.Warn(fmt.Errorf("%s's work is as of %s ago: %w", one.Agent, words.Ago(time.Since(one.Away.Seen.Time())), err))
				}
			}
		})
	}
	all.Wait()
}

// freshTime is how long a check or a landing waits for what is new.
const freshTime = 2 * time.Minute

// Far returns how an agent on another host is, as that has told last. If it is silent, that is not known.
func Far(h home.Dir, id agent.ID) spawn.Status {
	list, _ := attention.Hosts(h, time.Now()) // what can't be read has told nothing
	return spawn.Status{Agent: id, State: stateOf(list, id)}
}

func stateOf(hosts []attention.Host, id agent.ID) agent.State {
	state := agent.Unknown
	for _, host := range hosts {
		if host.Name != id.Host() || !host.Up {
			continue
		}
		if host.More == 0 {
			state = agent.Down // those are not told
		}
		for _, a := range host.Agents {
			if a.ID == id {
				state = a.State
			}
		}
	}
	return state
}

// reach makes sure that an agent on another host gets a task's brief, and that what it then commits can be brought here, if
// there is a repository here.
func (t Tasks) reach(ctx context.Context, id agent.ID, task string, queue bool) error {
	if self, err := team.LoadSelf(t.Home); err == nil && self.Name == id.Host() {
		return usagef("%s: is on this host: write %s", id, id.Local())
	}
	ready := func(there away.There) error {
		if queue || (spawn.Status{State: there.State}).Alive() {
			return nil
		}
		return advice.With(fmt.Errorf("%s: is %s", id, there.State), "`netsky up %s` starts it where it was; `netsky --on %s up %s --dir DIR` in a clone of the repository", id.N(), id.Host(), id.Local().N())
	}
	r, err := t.repository(ctx, id)
	if errors.Is(err, git.ErrNone) {
		there, err := Work(t).ask(id)(ctx, away.Request{Agent: id.Local()}, io.Discard)
		if err == nil {
			err = ready(there)
		}
		if err == nil {
			t.warn("%s: there is no git repository here, so nothing that it commits is brought here", id)
		}
		return err
	}
	if err != nil {
		return err
	}
	w, err := away.Of(ctx, id, r)
	if err != nil {
		return err
	}
	old, lerr := tree.Load(t.Home, id)
	if lerr == nil && old.Repo != w.Repo {
		return advice.With(fmt.Errorf("%s: its work here is on %s, not on %s", id, old.Main, w.Main), "once that has landed, `netsky work retire %s` ends it", id.N())
	}
	if lerr == nil {
		w.Made = old.Made
	}
	err = t.begin(ctx, w, task, ready)
	if err != nil && queue && lerr == nil && !errors.Is(err, away.ErrRefused) {
		t.UI.Warn(fmt.Errorf("it waits for %s: %w", id.Host(), err))
		return nil
	}
	return err
}

// repository returns the repository that tasks are about: the one here, that of the agent's work so far, or where agent0
// works.
func (t Tasks) repository(ctx context.Context, id agent.ID) (git.Repo, error) {
	var dirs []string
	if t.checks == nil { // else the current directory is the daemon's
		if here, err := t.Planner().Cwd(); err == nil {
			dirs = append(dirs, tree.OwnersDir(t.Home, t.Actor, here))
		}
	}
	if w, err := tree.Load(t.Home, id); err == nil {
		dirs = append(dirs, w.Main)
	}
	if la, err := t.Home.LoadLaunch(agent.Root); err == nil {
		dirs = append(dirs, la.Dir)
	}
	if dir, err := config.Expand(t.userHome(), t.Config.Agents.Dir); err == nil && t.Config.Agents.Dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if r, err := git.Open(ctx, dir, t.userHome()); dir != "" && err == nil {
			return r, nil
		}
	}
	return git.Repo{}, git.ErrNone
}
