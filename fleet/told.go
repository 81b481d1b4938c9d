package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/fleet/plan"
	"netsky/internal/advice"
	"netsky/internal/proc"
	"netsky/internal/words"
	"netsky/spawn"
)

// This file is what a Start says beside its steps.

// tellWhere warns if agents work in another directory than the caller's only because an earlier
// start has set it. It reports whether agent0 does.
func (s *starter) tellWhere() (root bool) {
	here, err := s.planner.Cwd()
	if err != nil || s.checks != nil { // in the daemon, whose current directory is nobody's
		return false
	}
	agents, dir := s.planner.Elsewhere(s.all, s.Dir, here)
	if len(agents) == 0 {
		return false
	}
	which := strings.Join(agents, " ")
	s.UI.Warn(advice.With(fmt.Errorf("%s works in %s, as before; you are in %s", agents[0], s.tilde(dir), s.tilde(here)),
		"to have %s work here: netsky down %[1]s, then netsky up %[1]s --dir %s; `dir` under [agents] in netsky.toml sets it for good", which, advice.Word(here)))
	return slices.Contains(agents, string(agent.Root))
}

// tellLeftOut names the owner's MCP servers that agents on Claude Code do not get: once, and again
// when the list changes.
func (s *starter) tellLeftOut(plans []spawn.Plan) {
	names, err := plan.NewlyLeftOut(s.Launcher, plans)
	if len(names) > 0 {
		s.warn("agents on Claude Code do not get these MCP servers of yours: %s (name them in `mcp` under [claude] in netsky.toml to allow them)", strings.Join(names, ", "))
	}
	if err != nil {
		s.UI.Warn(err) // they will be named again
	}
}

// tellPlaces says where the clones work, what is not there, and how to have it otherwise.
func (s *starter) tellPlaces() {
	type group struct {
		agents []string
		at     plan.Place
		fresh  bool
	}
	var groups []group
	for _, at := range s.places {
		for _, n := range at.Notes {
			s.warn("%s: %s", at.Agent, n)
		}
		if !at.Apart && at.Why == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.at.Dir == at.Dir && g.at.Why == at.Why })
		if i < 0 {
			groups, i = append(groups, group{at: at}), len(groups)
		}
		groups[i].agents = append(groups[i].agents, string(at.Agent))
		groups[i].fresh = groups[i].fresh || at.Fresh
	}
	for _, g := range groups {
		who, dir := words.Names(g.agents), s.tilde(g.at.Dir)
		works, own := "works", "a git worktree and on a branch of its own"
		if len(g.agents) > 1 {
			works, own = "work", "git worktrees and on branches of their own"
		}
		if g.at.Why != "" {
			s.warn("%s %s in %s itself: %s", who, works, dir, g.at.Why)
			continue
		}
		if g.fresh {
			s.warn("%s %s in %s, apart from %s; --here has them work there, `worktrees = false` under [work] in netsky.toml does so for good", who, works, own, dir)
		}
		switch left := g.at.Left; {
		case left == 1:
			s.warn("a file in %s is not committed, so it is not in there", dir)
		case left > 1:
			s.warn("%d files in %s are not committed, so they are not in there", left, dir)
		}
	}
}

// tellBehind says which agents begin a new conversation because they worked in another directory
// before.
func (s *starter) tellBehind() {
	for _, at := range s.places { // of those that start
		i := slices.IndexFunc(s.plans, func(p spawn.Plan) bool { return p.Agent == at.Agent })
		if session, dir := plan.Behind(s.Home, s.plans[i]); dir != "" {
			s.warn("%s begins a new conversation: its last, %s, is of %s, and Claude Code continues one only where it began; `claude --resume %s` there shows it",
				at.Agent, session, s.tilde(dir), session)
		}
	}
}

// tellLost reports the agents whose conversations can't be continued.
func (s *starter) tellLost() {
	for _, p := range s.result.Agents {
		if la, err := s.Home.LoadLaunch(p.Agent); err == nil && la.Lost != (agent.Lost{}) && p.Step != spawn.StepAlready {
			s.warn("%s: %s", p.Agent, la.Lost)
		}
	}
}

// tellCarried warns, once, of starts that have just been replaced although something of them may
// still run.
func (s *starter) tellCarried(now, before []spawn.Remnant) {
	if !proc.Reaps {
		return
	}
	var list []spawn.Remnant
	for _, r := range now {
		told := slices.ContainsFunc(before, func(b spawn.Remnant) bool {
			return b.Earlier && b.Agent == r.Agent && b.Start == r.Start && b.Since.Equal(r.Since)
		})
		if r.Earlier && !told {
			list = append(list, r)
		}
	}
	s.TellUnproved(list)
}

// tryLogins has the accounts that refuse their login tried at once: the owner may have seen to it.
func (s *starter) tryLogins() {
	list, _ := breaker.List(s.Home) // an unreadable one stops nobody
	for _, one := range list {
		if !one.Refuses(time.Now()) {
			continue
		}
		if _, err := breaker.Of(s.Home, one.Account).Retry(s.ctx); err != nil {
			s.warn("%s: %s; it is not tried again now: %w", one.Account, one.Fault, err)
			continue
		}
		s.warn("%s: %s; it is tried again now", one.Account, one.Fault)
	}
}
