package plan

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"netsky/agent"
	"netsky/internal/advice"
	"netsky/internal/execx"
	"netsky/prompts"
	"netsky/spawn"
	"netsky/work/git"
	"netsky/work/tree"
)

// A Place is where an agent that is about to start works.
type Place struct {
	Agent agent.ID
	Dir   string // the owner's directory, which was asked for
	Why   string // why it works there though clones have worktrees; "" if it has one, or is to have none
	Left  int    // files there that are not committed, and so not in the worktree
	Apart bool   // it has a worktree
	tree.Placed

	repo git.Repo
	told prompts.Input // the prompt without what the worktree adds
}

// Places decides for each planned start whether the agent works in a worktree of its own. It
// changes nothing. here has all work in the directories that were asked for.
func (p *Planner) Places(ctx context.Context, plans []spawn.Plan, here bool) []Place {
	seen := make(map[string]Place) // one directory is asked about once
	var list []Place
	for _, one := range plans {
		at := Place{Agent: one.Agent, Dir: one.Dir}
		if one.Agent.IsClone() && p.Config.Work.Worktrees && !here {
			if known, ok := seen[one.Dir]; ok {
				at = known
				at.Agent = one.Agent
			} else {
				at.look(ctx, p.UserHome)
				seen[one.Dir] = at
			}
		}
		list = append(list, at)
	}
	return list
}

// maxLeft is how many files are counted.
const maxLeft = 10_000

func (at *Place) look(ctx context.Context, userHome string) {
	r, err := git.Open(ctx, at.Dir, userHome)
	if err == nil {
		err = git.Version(ctx)
	}
	switch {
	case errors.Is(err, git.ErrNone) || execx.Find(os.Getenv("PATH"), "git") == "":
		return // no worktrees are expected there
	case err != nil:
		at.Why = err.Error()
		return
	}
	at.repo, at.Apart = r, true
	// What can't be counted is not worth failing for; the worktree itself tells what is wrong.
	at.Left, _ = r.Dirty(ctx, maxLeft)
}

// Make makes the worktrees, several at a time, and adapts the plans: their directory, what their
// prompts say of it, and their environment. Worktrees without work of their own are moved on to what
// is checked out, but not those of agents that still run. Those that are made stay if another fails.
func (p *Planner) Make(ctx context.Context, plans []spawn.Plan, places []Place, running func(agent.ID) bool) error {
	errs := make([]error, len(places))
	var wg sync.WaitGroup
	slots := make(chan struct{}, makers)
	for i := range places {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			errs[i] = p.settle(ctx, &plans[i], &places[i], !running(places[i].Agent))
		})
	}
	wg.Wait()
	if ctx.Err() != nil { // what the gits say that were ended with it helps nobody
		return advice.With(errors.New("interrupted while the worktrees were made"), "the next start finishes them")
	}
	return errors.Join(errs...)
}

// makers is how many worktrees are made at a time: git computes, and the disk writes.
var makers = max(2, min(runtime.NumCPU(), 4))

func (p *Planner) settle(ctx context.Context, one *spawn.Plan, at *Place, follow bool) (err error) {
	h := p.Launcher.Home
	if at.Apart {
		at.Placed, err = tree.Make(ctx, h, one.Agent, at.repo, follow)
		if errors.Is(err, tree.ErrTaken) { // it works as with an earlier netsky
			at.Apart, at.Why, err = false, err.Error(), nil
		}
		if err != nil {
			return fmt.Errorf("%s: its worktree: %w", one.Agent, err)
		}
	}
	if at.Apart {
		one.Dir = filepath.Join(at.Placed.Dir, at.repo.Sub)
		if _, err := os.Stat(one.Dir); errors.Is(err, os.ErrNotExist) {
			at.Notes = append(at.Notes, at.repo.Sub+" is in no commit, so it works at the root")
			one.Dir = at.Placed.Dir
		}
		if at.told.Agent == "" {
			at.told = one.Prompt
		}
		one.Prompt = at.told
		one.Prompt.Dir = one.Dir
		inTree(&one.Prompt, at.Worktree)
	}
	environ := one.Environ
	if environ == nil {
		environ = p.Launcher.Environ
	}
	if one.Agent.IsClone() {
		if environ, err = tree.PrepareHooks(ctx, h, one.Agent, at.repo, environ); err != nil {
			return fmt.Errorf("%s: git hooks: %w", one.Agent, err)
		}
	}
	one.Environ = execx.Without(environ, PortVariable)
	if port := p.Port(one.Agent); port > 0 {
		one.Environ = append(one.Environ, fmt.Sprintf("%s=%d", PortVariable, port))
	}
	return nil
}

// Foresee adapts a prompt to the worktree that its agent's next start would have. Nothing is made.
func (p *Planner) Foresee(ctx context.Context, one *spawn.Plan) {
	at := p.Places(ctx, []spawn.Plan{*one}, false)[0]
	if !at.Apart {
		return
	}
	w, err := tree.Load(p.Launcher.Home, one.Agent)
	if err != nil {
		w = tree.Foresee(ctx, p.Launcher.Home, one.Agent, at.repo)
	}
	one.Prompt.Dir = filepath.Join(w.Dir, at.repo.Sub)
	inTree(&one.Prompt, w)
}

// PortVariable names the first of ten ports that the agent's servers may use.
const PortVariable = "NETSKY_PORT"

// ports is how many each agent has.
const ports = 10

// Port returns the first of the agent's ports. Without work.ports, homes have different ones: the
// first of agent0's is 20000 plus a multiple of 1000, by a digest of the home's path. 0 is none: there
// are not enough for that many clones.
func (p *Planner) Port(id agent.ID) int {
	base := p.Config.Work.Ports
	if base == 0 {
		sum := fnv.New32a()
		sum.Write([]byte(p.Launcher.Home.Root()))
		base = 20_000 + 1000*int(sum.Sum32()%20)
	}
	n, ok := id.Number()
	if !ok { // agentinfinity has those below agent0's
		return base - ports
	}
	if port := base + ports*n; port+ports <= 1<<16 {
		return port
	}
	return 0
}

// Again prepares the start of an agent that is started again where it was before. If that is its
// worktree, that is made again should it be gone.
func (p *Planner) Again(ctx context.Context, one *spawn.Plan) error {
	at := Place{Agent: one.Agent, Dir: one.Dir}
	if w, ok := p.treeOf(one.Agent, one.Dir); ok {
		r, err := git.Open(ctx, w.Main, p.UserHome)
		if err != nil {
			return w.Found(fmt.Errorf("%s: its worktree %s is of the repository of %s: %w", one.Agent, w.Dir, w.Main, err))
		}
		sub, err := filepath.Rel(w.Dir, one.Dir)
		if err != nil {
			return err
		}
		r.Sub = sub
		at.repo, at.Apart = r, true
	}
	return p.settle(ctx, one, &at, false)
}

// treeOf returns the agent's worktree, if the directory is in it.
func (p *Planner) treeOf(id agent.ID, dir string) (w tree.Worktree, ok bool) {
	return tree.Around(p.Launcher.Home, id, dir)
}

// Leave has the agent's next start begin in the owner's directory that its worktree stands for, also once
// the worktree is gone.
func (p *Planner) Leave(id agent.ID) error {
	la, err := Before(p.Launcher.Home, id)
	if err != nil || la.Dir == "" {
		return err
	}
	base := p.Base(id, la.Dir)
	if base == la.Dir {
		return nil
	}
	la.Dir = base
	return p.Launcher.Home.SaveLaunch(la)
}

// Base returns the owner's directory for one in the agent's worktree, else the directory itself.
func (p *Planner) Base(id agent.ID, dir string) string {
	return tree.OwnersDir(p.Launcher.Home, id, dir)
}
