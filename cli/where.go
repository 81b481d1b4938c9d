package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/cli/view"
	"netsky/fleet/plan"
	"netsky/internal/advice"
	"netsky/spawn"
)

// chooseDir asks where the agents of a first up work if that would be netsky's own
// checkout.
func (a *app) chooseDir(p *plan.Planner, ids []agent.ID, flag string) error {
	own, ok, err := p.OwnCheckout(ids, flag)
	if err != nil || !ok {
		return err
	}
	unsaid := exitError{exitUsage, advice.With(
		fmt.Errorf("%s: is netsky's own checkout, where agents work only if you ask for it; nothing was started", own),
		"cd to your project first, or use --dir DIR (--dir . is this directory)")}
	if _, ok := view.Width(a.in); !ok {
		return unsaid
	}
	fmt.Fprintf(a.err, "This is netsky's own checkout, %s.\nIn which directory should the agents work? They may edit what is there (. is this one): ", tilde(a, own))
	answer, err := view.ReadLine(a.in)
	if err != nil && answer == "" {
		return err
	}
	if answer = strings.TrimSpace(answer); answer == "" {
		return unsaid
	}
	dir, err := a.expand(answer)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usagef("%s: is not a directory; nothing was started", dir)
	}
	p.Here = dir
	return nil
}

// tellWhere warns if agents work in another directory than the caller's only because an
// earlier up has set it. It reports whether agent0 does.
func (a *app) tellWhere(p *plan.Planner, plans []spawn.Plan, flag string) (root bool) {
	here, err := p.Cwd()
	if err != nil {
		return false
	}
	agents, dir := p.Elsewhere(plans, flag, here)
	if len(agents) == 0 {
		return false
	}
	a.warn("%s works in %s, as before; you are in %s", agents[0], tilde(a, dir), tilde(a, here))
	which := strings.Join(agents, " ")
	fmt.Fprintln(a.err, a.called("to have "+which+" work here: netsky down "+which+", then netsky up "+which+" --dir "+advice.Word(here)+"; `dir` under [agents] in netsky.toml sets it for good"))
	return slices.Contains(agents, string(agent.Root))
}

// maxUnasked is how many clones an up starts without asking.
const maxUnasked = 50

// agreeToMany has the owner confirm a large number of clones, on the terminal or by
// --yes. More than this machine has room for are refused in any case.
func (a *app) agreeToMany(plans []spawn.Plan, yes bool) error {
	c := plan.CostOf(plans)
	if c.Clones <= maxUnasked {
		return nil
	}
	cost, err := c.Fits()
	if err != nil || yes {
		return err
	}
	_, in := view.Width(a.in)
	_, out := view.Width(a.err)
	if !in || !out {
		return usagef("up: %s: more than %d clones need --yes", cost, maxUnasked)
	}
	fmt.Fprintf(a.err, "%s.\nStart them? [y/N] ", cost)
	answer, err := view.ReadLine(a.in)
	if err != nil && answer == "" {
		return usagef("up: no answer; nothing was started")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return usagef("up: not confirmed; nothing was started")
}
