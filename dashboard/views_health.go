package dashboard

import (
	"fmt"
	"strings"

	"netsky/agent"
	"netsky/store"
)

// A health is the answer to: is everything all right?
type health struct {
	Word   string // a state's, or "well"
	Line   string // one sentence
	Counts string // how many are how
	Waits  []need
}

// A need is something that goes on only when the owner has done something.
type need struct {
	Key      string
	Agent    agent.ID
	Word     string // a state's
	Title    string
	Text     string // the command it would run, the dialog it stands at
	Why      string
	Dir      string
	Since    store.Time
	Commands []command
}

// A command is typed in a terminal; the page only shows it.
type command struct{ Does, Line string }

// healthOf weighs how the agents are. Unsure is set if that could not be found
// out.
func healthOf(list []Agent, asked []Approval, unsure bool) health {
	h := health{Word: "well", Counts: counts(list), Waits: needsOf(list, asked)}
	var ill []Agent
	up, starting := 0, 0
	for _, a := range list {
		switch {
		case isIll(a):
			ill = append(ill, a)
		case a.State == agent.Starting:
			starting++
			up++
		case a.State != agent.Down:
			up++
		}
	}
	switch {
	case len(ill) == 1:
		h.Word, h.Line = string(ill[0].State), illness(ill[0])
	case len(ill) > 1:
		h.Word, h.Line = string(ill[0].State), fmt.Sprintf("%d agents are not well", len(ill))
	case unsure:
		h.Word, h.Line = "unknown", "Not everything can be seen"
	case len(list) == 0:
		h.Word, h.Line = "down", "No agents yet"
	case up == 0:
		h.Word, h.Line = "down", "All agents are down"
	case len(h.Waits) > 0:
		h.Word, h.Line = "waiting", "All is well, and "+plural(len(h.Waits), "thing waits", "things wait")+" for you"
	case starting > 0:
		h.Word, h.Line = "starting", plural(starting, "agent is", "agents are")+" starting"
	default:
		h.Line = "All is well"
	}
	return h
}

// isIll reports whether the agent is not as it should be. One that is down
// although it is wanted is not.
func isIll(a Agent) bool {
	switch a.State {
	case agent.Blocked, agent.Hung, agent.Dead, agent.CrashLooping:
		return true
	case agent.Down:
		return a.Wanted
	}
	return false
}

// evidence is what the verdict rests on, if that says more than its runtime's
// name does.
func (a Agent) evidence() string {
	if a.Evidence == a.Runtime {
		return ""
	}
	return a.Evidence
}

func illness(a Agent) string {
	switch a.State {
	case agent.CrashLooping:
		return string(a.ID) + " keeps crashing"
	case agent.Down:
		return string(a.ID) + " is down, and should be up"
	}
	return string(a.ID) + " is " + string(a.State)
}

// counts says how many agents are how, the usual states first.
func counts(list []Agent) string {
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

// needsOf lists what waits for the owner: questions, the oldest first, then
// agents that need a hand.
func needsOf(list []Agent, asked []Approval) []need {
	all := []need{}
	asks := map[agent.ID]bool{}
	for _, a := range asked {
		asks[a.Agent] = true
		all = append(all, need{
			Key: "approval-" + a.Code, Agent: a.Agent, Word: "waiting", Title: "asks whether it may use " + a.Tool, Text: a.Text, Why: a.Reason,
			Dir: a.Dir, Since: a.Asked, Commands: []command{{"Yes", a.Allow}, {"No", a.Deny}},
		})
	}
	for _, a := range list {
		if w, ok := needOf(a); ok && !(a.State == agent.Waiting && asks[a.ID]) {
			all = append(all, w)
		}
	}
	for _, a := range list { // what holds up nobody comes last
		if a.Poison > 0 {
			all = append(all, need{
				Key: keyOf("poison", a.ID), Agent: a.ID, Word: "poisoned",
				Title:    "got " + plural(a.Poison, "message", "messages") + " that can't be read",
				Commands: []command{{"Show", "netsky channel poison ls"}},
			})
		}
	}
	return all
}

// needOf is what an agent needs of the owner, if anything.
func needOf(a Agent) (need, bool) {
	w := need{Key: keyOf("agent", a.ID), Agent: a.ID, Word: string(a.State), Text: a.Detail, Why: a.evidence(), Since: a.Since}
	attach := command{"Go there", "netsky attach " + string(a.ID)}
	switch {
	case a.State == agent.Waiting:
		w.Title, w.Commands = "stands at a question in its terminal", []command{attach}
	case a.State == agent.Blocked:
		w.Title, w.Commands = "can't go on", []command{attach}
	case a.State == agent.Hung:
		w.Title, w.Commands = "has work and shows no sign of life", []command{attach, {"Stop its turn", "netsky interrupt " + string(a.ID)}}
	case a.State == agent.CrashLooping:
		w.Title, w.Commands = "keeps crashing", []command{{"Its story", "netsky show " + string(a.ID)}}
	case a.State == agent.Dead, a.State == agent.Down && a.Wanted:
		w.Title, w.Commands = "ended, and should be up", []command{startAgain(a.ID)}
	default:
		return need{}, false
	}
	return w, true
}

// startAgain is the command that brings an agent back.
func startAgain(id agent.ID) command {
	return command{"Start it again", "netsky agent " + id.N()}
}
