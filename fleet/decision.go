package fleet

import (
	"fmt"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/config"
	"netsky/fleet/plan"
	"netsky/spawn"
)

// A look is all that a Start is decided by, read while nothing else starts or ends agents.
type look struct {
	all      []spawn.Plan       // plans for all that were asked for
	prep     *spawn.Preparation // what there is of them, and what prevents their starts
	noDir    error              // why --dir can't be used; then nothing else was looked at
	bases    map[agent.ID]string
	unserved map[agent.ID]string // why the account of one that is not up serves nobody
	places   []plan.Place        // of those that are not up
	unset    bool                // in one of their worktrees the setup command has yet to run
	agreed   bool                // the owner has agreed to that command
	room     plan.Room
	file     string // netsky.toml
}

// A decision is what a Start does.
type decision struct {
	refused   error        // then nothing is done
	disobeyed error        // what can't be applied to agents that are up
	plans     []spawn.Plan // of these, those that are up stay as they are
	starting  []spawn.Plan // those that are not
	misplaced []spawn.Plan // up on another runtime than requested; they stay, too
	told      string       // of which the owner is told

	// What the owner has to say first.
	warrants []config.Warrant // what agents may do
	many     string           // whether so many are started: what they need
	agree    bool             // whether the setup command may run

	slow bool // it waits for the owner, for agents that end or for the setup command
}

// maxUnasked is how many clones are started without asking.
const maxUnasked = 50

// decide decides a Start. It reads nothing.
func decide(l look, c *config.Config, actor agent.ID, r StartRequest) (d decision) {
	if l.noDir != nil {
		d.refused = usagef("--dir: %w; nothing was started or ended", l.noDir)
		return d
	}
	states := l.prep.States
	d.plans, d.misplaced = plan.RunningElsewhere(l.all, states, r.Runtime)
	d.starting = slices.DeleteFunc(slices.Clone(d.plans), func(p spawn.Plan) bool { return states.Find(p.Agent).Alive() })
	var blocked error
	if len(d.misplaced) > 0 {
		blocked = l.prep.Prevents(d.misplaced[:1])
	}
	d.disobeyed = plan.DisobeyedType(d.misplaced, states, plan.Wish{Runtime: r.Runtime, Dir: r.Dir}, blocked)
	if d.refused = l.prep.Prevents(d.plans); d.refused != nil {
		return d
	}
	if d.disobeyed == nil {
		d.disobeyed = plan.DisobeyedDir(d.plans, states, l.bases)
	}
	if d.disobeyed != nil {
		d.disobeyed = partly(d.disobeyed)
	}
	for _, p := range d.starting {
		why := l.unserved[p.Agent]
		if why != "" && actor != agent.Owner {
			d.refused = partly(fmt.Errorf("%s: not started, and nothing else was: %s; ask again then", p.Agent, why))
			return d
		}
		if d.told == "" {
			d.told = why
		}
	}
	for _, w := range config.Warrants() {
		switch {
		case w.Given(*c) || !slices.ContainsFunc(d.starting, func(p spawn.Plan) bool { return p.Runtime.Name() == w.Runtime }):
		case actor.IsAgent():
			d.refused = usagef("no permission mode is set for %s agents, and only the owner can set one: with their next `netsky up`, or as `%s` under [%s] in %s",
				w.Name, strings.Join(w.Keys, "` and `"), w.Runtime, l.file)
			return d
		default:
			d.warrants = append(d.warrants, w)
		}
	}
	if cost := plan.CostOf(d.starting); cost.Clones > maxUnasked {
		if d.many, d.refused = cost.Fits(l.room); d.refused != nil {
			return d
		}
	}
	d.agree = l.unset && !l.agreed
	d.slow = r.Fresh || l.unset || !r.Yes && (d.many != "" || len(d.warrants) > 0)
	return d
}
