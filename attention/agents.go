package attention

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netsky/agent"
	"netsky/cost/breaker"
	"netsky/home"
	"netsky/store"
	"netsky/view"
)

// permission is how the title of an approval begins; the tool follows.
const permission = "asks for permission to use "

func (s Sources) approvals() (list []Need) {
	for _, q := range s.Approvals {
		n := Need{
			Code: q.Code, Kind: Approval, About: string(q.Agent), Agents: []agent.ID{q.Agent},
			Title: permission + q.Tool, Text: q.Whole(), Closed: q.Closed(), Reason: q.Reason, Dir: q.Dir,
			Options: []string{Allow, Deny}, Since: store.Time(q.AskedMS),
			Otherwise: "nothing is run, and " + string(q.Agent) + " waits",
		}
		own := s.Dirs[q.Agent]
		real, _ := filepath.EvalSymlinks(own)
		n.away = q.Dir != "" && q.Dir != own && q.Dir != real
		if n.Closed != "" {
			n.Options, n.Commands = nil, []Command{attach("Open its terminal to answer there", q.Agent)}
		}
		list = append(list, n)
	}
	return list
}

// dialogs are those at which agents wait, besides the requests with a code. Agents at the
// same dialog share one item.
func (s Sources) dialogs() (list []Need) {
	for _, a := range s.Agents {
		if !a.Asks() || slices.Contains(s.Answered, a.ID) || slices.ContainsFunc(s.Approvals, func(q agent.Approval) bool { return q.Agent == a.ID }) {
			continue
		}
		id := []string{a.Runtime, a.Detail, fmt.Sprint(a.Decidable)}
		if a.Detail == "" || !a.Decidable && (strings.HasPrefix(a.Detail, "permission") || strings.HasSuffix(a.Detail, "…")) {
			// They are not known to be the same, nor is what the agent is at next.
			id = append(id, string(a.ID), a.Start, fmt.Sprint(a.Since))
		}
		if i := slices.IndexFunc(list, func(n Need) bool { return slices.Equal(n.id, id) }); i >= 0 {
			n := &list[i]
			n.Agents, n.Since = append(n.Agents, a.ID), min(n.Since, a.Since)
			n.Title = "wait at the same dialog"
			n.Commands = append(n.Commands, attach("Open "+string(a.ID), a.ID))
			continue
		}
		n := Need{
			Kind: Dialog, Agents: []agent.ID{a.ID}, Title: "waits at a dialog in its terminal", Text: a.Detail, Since: a.Since,
			Commands: []Command{attach("Open "+string(a.ID), a.ID)}, id: id,
		}
		if a.Decidable {
			n.Options = []string{"allow", Deny}
		}
		list = append(list, n)
	}
	for i := range list {
		n := &list[i]
		n.About = Names(n.Agents)
		switch {
		case len(n.Options) > 0 && len(n.Agents) > 1:
			n.Commands = nil // one answer is for all of them
		case len(n.Agents) == 1:
			n.Commands[0].Does = "Open its terminal"
		}
		n.Otherwise = n.About + " waits, and so does its mail"
		if len(n.Agents) > 1 {
			n.Otherwise = n.About + " wait, and so does their mail"
		}
	}
	return list
}

// accounts are the logins and limits, one item for each account, and what blocks only one
// agent.
func (s Sources) accounts() (list []Need) {
	at := map[string]int{} // by kind and account
	for _, a := range s.Agents {
		if a.State != agent.Blocked || a.Fault.Reason == agent.Budget {
			continue
		}
		kind := kindOf(a.Fault.Reason)
		of := string(kind) + " " + a.Fault.Account
		if i, ok := at[of]; ok && a.Fault.Account != "" {
			list[i].Agents, list[i].Since = append(list[i].Agents, a.ID), min(list[i].Since, a.Since)
			continue
		}
		fault, retry := a.Fault, a.Fault.Until()
		if b, ok := s.breaker(a.Fault.Account); ok && kind != Blocked {
			fault, retry = b.Fault, b.Retry()
		}
		n := s.blocked(kind, a, fault, retry)
		if a.Fault.Account != "" && kind != Blocked {
			at[of] = len(list)
			n.About, n.id = a.Fault.Account, []string{a.Fault.Account}
		}
		list = append(list, n)
	}
	for _, b := range s.Breakers {
		kind := kindOf(b.Fault.Reason)
		lasting := kind == Login || b.Fault.Reason == agent.UsageLimit || b.Fault.Reason == agent.Billing
		_, shown := at[string(kind)+" "+b.Account]
		i := slices.IndexFunc(s.Agents, func(a view.Agent) bool { return a.ID == b.By && a.Wanted })
		if shown || !lasting || b.Fault.Reason == agent.Budget || i < 0 || b.Unneeded(s.Now) {
			continue // an account that no agent needs now concerns nobody
		}
		n := s.blocked(kind, s.Agents[i], b.Fault, b.Retry())
		n.About, n.id, n.Since = b.Account, []string{b.Account}, store.Time(b.SinceMS)
		list = append(list, n)
	}
	for i := range list {
		if n := &list[i]; len(n.Agents) > 1 {
			n.Title = map[Kind]string{Login: "are not logged in", Limit: "are not served by their vendor"}[n.Kind]
			n.Otherwise = strings.NewReplacer("its mail waits", "their mail waits", "it continues by itself", "they continue by themselves").Replace(n.Otherwise)
		}
	}
	return list
}

// budgets are those that are used up, unless the owner has left it at that.
func (s Sources) budgets() (list []Need) {
	for _, b := range s.Breakers {
		if b.Fault.Reason != agent.Budget || b.Refused {
			continue
		}
		n := Need{
			Kind: Budget, About: b.Account, Title: "is used up", Text: b.Fault.Text, Budget: b.About, Since: store.Time(b.SinceMS),
			Options: []string{More, Deny}, Commands: []Command{{"See what was used", "netsky cost"}},
			Otherwise: "nothing more is offered, and mail waits", id: []string{b.About, b.Fault.Text},
		}
		if retry := b.Retry(); !retry.IsZero() {
			n.Otherwise += " until " + agent.Clock(retry, s.Now)
		}
		for _, a := range s.Agents {
			if a.ID == b.By || b.Account == breaker.AllBudget {
				n.Agents = append(n.Agents, a.ID)
			}
		}
		if len(n.Agents) == 0 {
			n.Agents = []agent.ID{b.By}
		}
		n.Title = "has used up its budget"
		if len(n.Agents) > 1 {
			n.Title = "have used up their budget"
		}
		list = append(list, n)
	}
	return list
}

func (s Sources) breaker(account string) (breaker.State, bool) {
	i := slices.IndexFunc(s.Breakers, func(b breaker.State) bool { return account != "" && b.Account == account })
	if i < 0 {
		return breaker.State{}, false
	}
	return s.Breakers[i], true
}

func kindOf(r agent.Reason) Kind {
	switch {
	case r == agent.Login:
		return Login
	case r.OfAccount():
		return Limit
	}
	return Blocked
}

func (s Sources) blocked(kind Kind, a view.Agent, f agent.Fault, retry time.Time) Need {
	n := Need{
		Kind: kind, About: string(a.ID), Agents: []agent.ID{a.ID}, Title: phrases[kind].one, Text: a.Detail, Since: a.Since,
		Otherwise: "its mail waits", id: []string{string(a.ID), a.Start},
	}
	if f.Reason != "" {
		n.Text = f.String()
		if f.Account != "" {
			n.Text += " (" + f.Account + ")"
		}
	}
	open := attach("Open its terminal", a.ID)
	switch {
	case f.Reason == agent.ContextFull:
		n.Commands = []Command{
			{compact, open.Line},
			{"Begin a new conversation", "netsky agent " + a.ID.N() + " --fresh"},
		}
	case f.Reason == agent.Unasked:
		n.Commands = []Command{open, {"Let it go on", "netsky send " + string(a.ID) + ` "go on"`}, {"End it", "netsky down " + a.ID.N()}}
		n.Otherwise = "each turn that it begins by itself is interrupted, until a message or a typed text comes"
	case kind == Login:
		n.Commands, n.Otherwise = []Command{{"Open its terminal to log in", open.Line}, {"Try again now", "netsky up"}}, "its mail waits, and it continues by itself after a login"
		if retry.After(s.Now) {
			n.Otherwise += "; else it is tried again at " + agent.Clock(retry, s.Now)
		}
	case !retry.IsZero():
		n.Commands, n.Otherwise = []Command{open}, "its mail waits, and it continues by itself at "+agent.Clock(retry, s.Now)
	case kind == Limit:
		n.Commands, n.Otherwise = []Command{open}, "its mail waits, and it is tried again by itself"
	default:
		n.Commands = []Command{open, {"Start it again", "netsky restart " + a.ID.N()}}
	}
	return n
}

// agent are the failures of one agent.
func (s Sources) agent(a view.Agent) (list []Need) {
	add := func(kind Kind, title, otherwise string, commands ...Command) *Need {
		list = append(list, Need{
			Kind: kind, About: string(a.ID), Agents: []agent.ID{a.ID}, Title: title, Text: a.Detail, Since: a.Since,
			Otherwise: otherwise, Commands: commands, id: []string{string(a.ID), a.Start},
		})
		return &list[len(list)-1]
	}
	again := Command{"Start it again", "netsky agent " + a.ID.N()}
	if s.Mistake != "" {
		again = correct
	}
	show := Command{"See why", "netsky show " + string(a.ID)}
	switch {
	case a.Deaf:
		n := add(Blocked, "has lost its receiver", "its mail waits, and it is started again once its turn has ended",
			Command{"Start it again on its conversation", "netsky restart " + a.ID.N()}, attach("Open its terminal", a.ID))
		n.Text = cmp.Or(a.Detail, a.Evidence)
	case a.State == agent.Starting && a.Since != 0 && s.Now.Sub(a.Since.Time()) >= agent.StartsWithin:
		n := add(Unready, "has been started, and does not report that it is ready", "it stays so, and its mail waits",
			attach("Open its terminal", a.ID), Command{"Look for the cause", "netsky doctor"},
			Command{"Start it again, once the cause is gone", "netsky restart " + a.ID.N() + " --force"})
		n.Text = cmp.Or(a.Detail, a.Evidence)
	case a.State == agent.Hung:
		add(Hung, "has work but shows no activity", "it keeps running, and you are told again",
			Command{"Interrupt it", "netsky interrupt " + string(a.ID)}, attach("Open its terminal", a.ID),
			Command{"If it obeys neither, start it again on its conversation", "netsky restart " + a.ID.N() + " --force"})
	case a.State == agent.CrashLooping:
		n := add(Looping, "keeps crashing", cmp.Or(a.Restart, "it is not restarted"), show, again)
		n.id = []string{string(a.ID)} // a start that fails as the ones before is no other matter
	case a.State == agent.Dead:
		otherwise := "it stays dead, and its mail waits"
		switch {
		case s.Daemon != DaemonRuns || !a.Wanted:
		case s.Blind.Why != "":
			otherwise = "it is started again once netsky can look after the agents"
		default: // the daemon has not looked at it yet
			otherwise = "it is started again"
		}
		n := add(Dead, "is dead", cmp.Or(a.Restart, otherwise), again, show)
		n.Text = cmp.Or(a.Detail, a.Evidence)
	case a.State == agent.Down && a.Wanted:
		add(Down, "is down and should be up", "it stays down, and its mail waits", again)
	}
	if a.Poison > 0 {
		n := add(Unreadable, fmt.Sprintf("received %d unreadable messages", a.Poison), "they are kept aside, and nobody reads them",
			Command{"List them", "netsky channel poison ls"})
		if a.Poison == 1 {
			n.Title = "received 1 unreadable message"
		}
		n.Text, n.Since, n.id = "", 0, []string{string(a.ID)}
	}
	return list
}

// mistake is the need for a netsky.toml without one.
func (s Sources) mistake() Need {
	return Need{
		Kind: Config, About: home.ConfigFile, Title: "has a mistake", Text: s.Mistake, Otherwise: s.Prevents,
		Commands: []Command{correct}, id: []string{s.Mistake},
	}
}

// correct is what to do about a mistake in netsky.toml.
var correct = Command{"Show it, to correct it", "netsky doctor"}

func (s Sources) daemon() (n Need, ok bool) {
	switch s.Daemon {
	case DaemonHung:
		n.Title, n.Commands = "does not answer", []Command{{"End it and start another", "netsky up"}}
	case DaemonGone:
		n.Title, n.Commands = "is not running, but should be", []Command{{"Start it again", "netsky up"}}
	case DaemonRuns:
		if s.Blind.Why == "" {
			return n, false
		}
		return Need{
			Kind: Daemon, About: "the daemon", Title: "can't look after the agents", Text: s.Blind.Why, Since: store.Time(s.Blind.SinceMS),
			Otherwise: "none that dies is started again, and you are told of none that hangs",
			Commands:  []Command{{"Look for the cause", "netsky doctor"}}, id: []string{"blind"},
		}, true
	default:
		return n, false
	}
	n.Kind, n.About, n.id = Daemon, "the daemon", []string{s.Daemon}
	if n.Otherwise = "outboxes, schedules and the records of deaths wait"; s.Ticks {
		n.Otherwise += " until the ticker's next tick starts another"
	}
	return n, true
}

func (s Sources) unreached() (n Need, ok bool) {
	if len(s.Failed) == 0 {
		return n, false
	}
	last := s.Failed[len(s.Failed)-1]
	return Need{
		Kind: Unreached, About: "an alert", Title: "did not reach you", Text: last.String(), Since: store.Time(last.MS),
		Otherwise: "later alerts may not reach you either", Commands: []Command{{"Forget it, once you have seen to it", "netsky escalate --clear"}},
	}, true
}

func attach(does string, id agent.ID) Command { return Command{does, "netsky attach " + string(id)} }
