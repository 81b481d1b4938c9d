package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"netsky/agent"
	"netsky/dashboard/live"
	"netsky/store"
)

// A health says whether everything is all right, and what needs the owner.
type health struct {
	Word   string // a state's, or "well"
	Line   string // one sentence: what needs the owner first
	Counts string // how many items need the owner, how many agents are in which state
	Waits  []need
	Groups []needGroup // the same, by kind
}

// A need is something that cannot continue without the owner.
type need struct {
	Key      string
	Kind     needKind
	Agent    agent.ID
	Word     string // a state's
	Title    string
	Runtime  string
	Text     string // the command it would run, or the dialog it waits at
	Why      string
	Dir      string
	Since    store.Time
	Commands []command
	Dialog   bool   // Text is the dialog that the agent's pane shows
	Answer   bool   // Commands begin with two that answer it
	Alone    []need // one dialog that several agents wait at
}

// Agents are those that have the need.
func (n need) Agents() []agent.ID {
	if len(n.Alone) == 0 {
		return []agent.ID{n.Agent}
	}
	var ids []agent.ID
	for _, one := range n.Alone {
		ids = append(ids, one.Agent)
	}
	return ids
}

// sameDialogs merges the needs of agents that wait at the same dialog, in the place of
// the first. One command answers it for all of them.
func sameDialogs(all []need) (list []need) {
	for _, n := range all {
		i := slices.IndexFunc(list, func(m need) bool {
			return n.Dialog && m.Dialog && n.Text != "" && n.Text == m.Text && n.Runtime == m.Runtime && n.Answer == m.Answer
		})
		if i < 0 {
			list = append(list, n)
			continue
		}
		m := &list[i]
		if len(m.Alone) == 0 {
			all := "netsky approve " + string(m.Agent) + " --all-same"
			m.Alone = []need{*m}
			m.Key, m.Title = keyOf("same", n.Runtime, n.Text), "wait at the same dialog"
			if m.Commands = goTo(m.Agent); m.Answer {
				m.Commands = []command{{"Allow all", all}, {"Deny all", all + " --deny"}}
			}
		}
		if m.Alone, m.Since = append(m.Alone, n), min(m.Since, n.Since); !m.Answer {
			m.Commands = append(m.Commands, goTo(n.Agent)...)
		}
	}
	return list
}

// A needKind is a kind of need. The first ones are shown first.
type needKind int

const (
	needPermission needKind = iota
	needDialog
	needBlocked
	needHung
	needCrashing
	needDead
	needDown
	needUnreadable
)

// needKinds are the kinds' texts: a heading, and the verb for one agent and for
// several.
var needKinds = [...]struct{ title, one, many string }{
	needPermission: {"Permission", "asks for permission", "agents ask for permission"},
	needDialog:     {"Dialogs", "waits at a dialog", "agents wait at a dialog"},
	needBlocked:    {"Blocked", "is blocked", "agents are blocked"},
	needHung:       {"Hung", "is hung", "agents are hung"},
	needCrashing:   {"Crashing", "keeps crashing", "agents keep crashing"},
	needDead:       {"Dead", "is dead", "agents are dead"},
	needDown:       {"Down", "is down and should be up", "agents are down and should be up"},
	needUnreadable: {"Unreadable messages", "received an unreadable message", "agents received unreadable messages"},
}

// A needGroup is the needs of one kind: the first few, and the rest.
type needGroup struct {
	Title string
	First []need
	Rest  []need
}

// shownNeeds is how many needs of a kind are shown before the rest is folded.
const shownNeeds = 3

// groupNeeds splits needs, which are sorted by kind, into kinds.
func groupNeeds(all []need) (groups []needGroup) {
	all = sameDialogs(all)
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Kind == all[0].Kind {
			n++
		}
		few := min(n, shownNeeds)
		if n == shownNeeds+1 {
			few = n // a line that says "1 more" would take as much room
		}
		groups = append(groups, needGroup{needKinds[all[0].Kind].title, all[:few], all[few:n]})
		all = all[n:]
	}
	return groups
}

// Count returns how many needs there are of the kind.
func (g needGroup) Count() (n int) {
	for _, one := range slices.Concat(g.First, g.Rest) {
		n += len(one.Agents())
	}
	return n
}

// More returns how many of them are in the rest.
func (g needGroup) More() int { return g.Count() - needGroup{First: g.First}.Count() }

// Names lists the agents of the rest.
func (g needGroup) Names() string {
	var names []string
	for _, n := range g.Rest {
		for _, id := range n.Agents() {
			if name := string(id); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}

// A command is one to type in a terminal; the page only shows it.
type command struct{ Does, Line string }

// healthOf summarizes the agents' states. unsure is set if they could not be read.
func healthOf(list []live.Agent, asked []live.Approval, unsure bool) health {
	h := health{Word: "well", Line: "All healthy", Waits: needsOf(list, asked)}
	h.Groups = groupNeeds(h.Waits)
	up, starting := 0, 0
	for _, a := range list {
		if a.State == agent.Starting {
			starting++
		}
		if a.State != agent.Down {
			up++
		}
	}
	items := plural(len(h.Waits), "item needs you", "items need you")
	h.Counts = counts(list)
	urgent := len(h.Waits) > 0 && h.Waits[0].Kind != needUnreadable
	switch {
	case urgent:
		h.Word, h.Line = h.Waits[0].Word, headline(h.Waits)
		h.Counts = items + " · " + h.Counts
	case unsure:
		h.Word, h.Line = "unknown", "Status unknown"
	case len(list) == 0:
		h.Word, h.Line = "down", "No agents yet"
	case up == 0:
		h.Word, h.Line = "down", "All agents are down"
	case len(h.Waits) > 0:
		h.Word, h.Line = "poisoned", "All healthy · "+items
	case starting > 0:
		h.Word, h.Line = "starting", plural(starting, "agent is", "agents are")+" starting"
	}
	return h
}

// headline names the first need, or how many agents have one of its kind. Beside
// questions it also names the worst failure, which answering them would not end.
func headline(all []need) string {
	line := kindLine(all, all[0].Kind)
	if all[0].Kind > needDialog {
		return line
	}
	for _, k := range []needKind{needDead, needCrashing, needHung, needBlocked, needDown} {
		if more := kindLine(all, k); more != "" {
			return line + ", " + more
		}
	}
	return line
}

// kindLine says which agent has a need of the kind, or how many have; "" if none.
func kindLine(all []need, kind needKind) string {
	of, one := map[agent.ID]bool{}, agent.ID("")
	for _, n := range all {
		if n.Kind == kind {
			of[n.Agent], one = true, n.Agent
		}
	}
	switch len(of) {
	case 0:
		return ""
	case 1:
		return string(one) + " " + needKinds[kind].one
	}
	return fmt.Sprintf("%d %s", len(of), needKinds[kind].many)
}

// isIll reports whether the agent has failed, or is down and should be up.
func isIll(a live.Agent) bool {
	switch a.State {
	case agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping:
		return true
	case agent.Down:
		return a.Wanted
	}
	return false
}

// counts says how many agents are in which state, the usual states first.
func counts(list []live.Agent) string {
	n := map[agent.State]int{}
	for _, a := range list {
		n[a.State]++
	}
	var words []string
	for _, s := range []agent.State{
		agent.Busy, agent.Idle, agent.Waiting, agent.Starting, agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping, agent.Down, agent.Unknown,
	} {
		if n[s] > 0 {
			words = append(words, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return strings.Join(words, " · ")
}

// needsOf lists what needs the owner, by kind: questions, the oldest first, then agents
// that need attention.
func needsOf(list []live.Agent, asked []live.Approval) []need {
	all := []need{}
	asks := map[agent.ID]bool{}
	for _, a := range asked {
		asks[a.Agent] = true
		all = append(all, need{
			Key: "approval-" + a.Code, Kind: needPermission, Agent: a.Agent, Word: "waiting", Title: "asks for permission to use " + a.Tool, Text: a.Text, Why: a.Reason,
			Dir: a.Dir, Since: a.Asked, Commands: []command{{"Allow", a.Allow}, {"Deny", a.Deny}},
		})
	}
	for _, a := range list {
		if w, ok := needOf(a); ok && !(a.State == agent.Waiting && asks[a.ID]) {
			all = append(all, w)
		}
		if a.Poison > 0 {
			all = append(all, need{
				Key: keyOf("poison", a.ID), Kind: needUnreadable, Agent: a.ID, Word: "poisoned",
				Title:    "received " + plural(a.Poison, "unreadable message", "unreadable messages"),
				Commands: []command{{"List them", "netsky channel poison ls"}},
			})
		}
	}
	slices.SortStableFunc(all, func(x, y need) int { return int(x.Kind - y.Kind) })
	return all
}

// needOf returns what an agent needs from the owner, if anything.
func needOf(a live.Agent) (need, bool) {
	w := need{Key: keyOf("agent", a.ID), Agent: a.ID, Runtime: a.Runtime, Word: string(a.State), Text: a.Detail, Since: a.Since}
	attach := command{"Open its terminal", "netsky attach " + string(a.ID)}
	switch {
	case a.State == agent.Waiting:
		w.Kind, w.Title, w.Dialog, w.Answer = needDialog, "waits at a dialog in its terminal", true, a.Decidable
		if a.Decidable {
			yes := "netsky approve " + string(a.ID)
			w.Commands = []command{{"Allow", yes}, {"Deny", yes + " --deny"}}
		}
		w.Commands = append(w.Commands, attach)
	case a.State == agent.Blocked:
		w.Kind, w.Title, w.Commands = needBlocked, "is blocked", []command{attach}
	case a.State == agent.Hung:
		w.Kind, w.Title = needHung, "has work but shows no activity"
		w.Commands = []command{attach, {"Interrupt it", "netsky interrupt " + string(a.ID)}}
	case a.State == agent.CrashLooping:
		w.Kind, w.Title, w.Commands = needCrashing, "keeps crashing", []command{{"See why", "netsky show " + string(a.ID)}}
	case a.State == agent.Dead:
		w.Kind, w.Title, w.Commands = needDead, "is dead", []command{startAgain(a.ID)}
	case a.State == agent.Down && a.Wanted:
		w.Kind, w.Title, w.Commands = needDown, "is down and should be up", []command{startAgain(a.ID)}
	default:
		return need{}, false
	}
	return w, true
}

// goTo is the command that shows one of several agents' panes.
func goTo(id agent.ID) []command {
	return []command{{"Open " + string(id), "netsky attach " + string(id)}}
}

// startAgain is the command that starts an agent again.
func startAgain(id agent.ID) command {
	return command{"Start it again", "netsky agent " + id.N()}
}
